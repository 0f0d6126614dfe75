"""What is run and observed: problems, data sets, max-margin solutions, training runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numerics._joint_margin import DecoderMargin as DecoderMargin
    from numerics._joint_margin import decoder_max_margin as decoder_max_margin
    from numerics._joint_part import Joint as Joint
    from numerics.certified import CertifiedRun as CertifiedRun
    from numerics.certified import certify as certify
    from numerics.errors import AttnratesError as AttnratesError
    from numerics.errors import CertificationError as CertificationError
    from numerics.errors import InfeasibleError as InfeasibleError
    from numerics.errors import InputError as InputError
    from numerics.joint import train_joint as train_joint
    from numerics.joint import train_joint_batch as train_joint_batch
    from numerics.maxmargin import MaxMargin as MaxMargin
    from numerics.maxmargin import max_margin as max_margin
    from numerics.maxmargin import max_margins as max_margins
    from numerics.problem import Problem as Problem
    from numerics.run import Run as Run
    from numerics.steps import GradientDescent as GradientDescent
    from numerics.steps import NormalizedGD as NormalizedGD
    from numerics.steps import Polyak as Polyak
    from numerics.training import train as train
    from numerics.training import train_batch as train_batch

# Names are resolved on first use, so that `import numerics` loads neither torch nor cvxpy nor numba.
_HOME = {
    "AttnratesError": "numerics.errors",
    "CertificationError": "numerics.errors",
    "CertifiedRun": "numerics.certified",
    "DecoderMargin": "numerics._joint_margin",
    "GradientDescent": "numerics.steps",
    "InfeasibleError": "numerics.errors",
    "InputError": "numerics.errors",
    "Joint": "numerics._joint_part",
    "MaxMargin": "numerics.maxmargin",
    "NormalizedGD": "numerics.steps",
    "Polyak": "numerics.steps",
    "Problem": "numerics.problem",
    "Run": "numerics.run",
    "certify": "numerics.certified",
    "decoder_max_margin": "numerics._joint_margin",
    "max_margin": "numerics.maxmargin",
    "max_margins": "numerics.maxmargin",
    "train": "numerics.training",
    "train_batch": "numerics.training",
    "train_joint": "numerics.joint",
    "train_joint_batch": "numerics.joint",
}
__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Import a public name's module on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'numerics' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
