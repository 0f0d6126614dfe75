"""The pytest plugin: `assert_proved`, `assert_rate` and `assert_bound` as fixtures, and the versions on top.

Nothing heavy is imported before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def assert_proved() -> Callable[..., None]:
    """Fail unless a theorem is proved; see `attnrates.testing.assert_proved`."""
    from attnrates.testing import assert_proved as function

    return function


@pytest.fixture(scope="session")
def assert_rate() -> Callable[..., Any]:
    """Fail unless a theorem's bound holds on a run; see `attnrates.testing.assert_rate`."""
    from attnrates.testing import assert_rate as function

    return function


@pytest.fixture(scope="session")
def assert_bound() -> Callable[..., None]:
    """Fail unless values stay within a bound; see `attnrates.testing.assert_bound`."""
    from attnrates.testing import assert_bound as function

    return function


def pytest_report_header() -> str:
    """Name the version whose theorems are asserted."""
    from attnrates import __version__

    return f"attnrates: {__version__}"
