"""What is claimed and why it is true: assumptions, lemmas and theorems proved through a small kernel.

``verify()`` puts every page through the kernel, ``theorems()`` lists them, ``check(run, key)`` holds a
recorded run against one. Nothing here imports torch.
"""

from theory.assumptions import Check
from theory.catalog import theorems
from theory.observation import Observation
from theory.page import Rate, Theorem
from theory.verdict import Verdict, check
from theory.verdict import check_run as check_all
from theory.verify import Report, TheoremReport, verify

__all__ = [
    "Check",
    "Observation",
    "Rate",
    "Report",
    "Theorem",
    "TheoremReport",
    "Verdict",
    "check",
    "check_all",
    "theorems",
    "verify",
]
