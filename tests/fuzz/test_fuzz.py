"""Malformed input of every kind: exit code 2 and one line, or a valid result; never more than that."""

from __future__ import annotations

import pytest

from tests.fuzz.campaign import run
from tests.fuzz.targets import TARGETS, Stock

SAMPLE = 40  # cases of a target in `make test`
SOAK = 1_000  # of a target: 10,000 in all


@pytest.fixture(scope="module")
def stock(tmp_path_factory) -> Stock:
    return Stock.make(tmp_path_factory.mktemp("stock"))


@pytest.mark.parametrize("name", TARGETS)
def test_a_sample_of_malformed_input(name, stock, tmp_path):
    run(name, range(SAMPLE), stock, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("name", TARGETS)
def test_a_thousand_malformed_inputs_of_a_kind(name, stock, tmp_path):
    run(name, range(SAMPLE, SAMPLE + SOAK), stock, tmp_path)
