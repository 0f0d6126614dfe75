"""The command `attnrates`, a thin layer on theory (claimed), numerics (run) and paper_figs (shown)."""

from importlib.metadata import version

__version__ = version("attnrates")
__all__ = ["__version__"]
