"""Both sides of every page scale alike, and a page of the wrong dimension is caught."""

import dataclasses

import pytest
from flint import fmpq

from theory import catalog
from theory import notation as nt
from theory.falsify import Search
from theory.model import UndecidedError, precision
from theory.notation import R, t
from theory.proof.terms import log, norm
from theory.scaling import DECODER, SYMMETRIES, check_scaling, check_scalings, respects

PAGES = {key: page for key, page in catalog.theorems().items() if page.claim is not None}
TOKENS, LOSS = SYMMETRIES


@pytest.mark.parametrize("key", PAGES)
def test_no_page_violates_a_symmetry(key):
    states = {name: s.state for name, s in check_scalings(PAGES[key]).items()}
    assert "violated" not in states.values(), states
    assert states[TOKENS] == "respected"


@pytest.mark.parametrize(
    ("key", "weights"),
    [
        ("norm-growth", {"R/0": 1, "M/0": -1, "e/1": -1, "D/1": 1, "C/1": 0}),
        ("ngd-norm-lower", {"eta/0": -1}),
        ("gd-path-lower", {"eta/0": -2, "e0/0": 2, "alpha/2": -2}),
        ("polyak-step-lower", {"e_max/0": -1, "rho/0": 0}),
    ],
)
def test_weights_of_constants(key, weights):
    """Tokens x c: lengths in weight space shrink by c, gradient descent's step by c^2."""
    found = check_scaling(PAGES[key], TOKENS).weights
    assert {k: found[k] for k in weights} == weights


@pytest.mark.parametrize(
    ("key", "claim"),
    [
        ("path-lower", nt.always(nt.path_length(t) / R**2 <= nt.separator_path(t))),
        ("norm-growth", nt.always(nt.path_length(t) / R <= norm(nt.layer(t).W))),
        ("norm-upper", nt.always(norm(nt.layer(t).W) <= 1 + nt.path_length(t))),
        ("gradient-upper", norm(nt.STATIC.descent) <= log(R) * nt.STATIC.C),
    ],
)
def test_wrong_dimensions_are_caught(key, claim):
    page = dataclasses.replace(PAGES[key], claim=claim)
    assert check_scaling(page, TOKENS).state == "violated"


def test_scaling_the_decoder_is_no_symmetry_of_the_loss():
    assert respects(PAGES["slope-positive"], DECODER).state == "no symmetry"
    assert respects(PAGES["separator-correlation"], DECODER).state == "respected"  # it sees no score


def test_counting_the_sequences_breaks_the_scaling_of_the_loss():
    assert check_scaling(PAGES["loss-static"], LOSS).state == "respected"
    assert check_scaling(PAGES["loss-decay"], LOSS).state == "no symmetry"


@pytest.mark.parametrize("key", ["norm-growth", "sparsification-static", "alignment", "gradient-upper"])
def test_scaled_models_give_the_same_ratios(key):
    """The weights in action: every symbol's value times 3^weight, and the claim's ratios are as before."""
    page = PAGES[key]
    weights = check_scaling(page, TOKENS).weights
    search = Search(tuple(page.hypotheses.values()), page.claim, key, 0)
    checked = 0
    with precision():
        for number in range(60):
            plain, scaled = (search.model(search.fresh(number)) for _ in range(2))
            if plain is None:
                continue
            try:  # first of all: a model settles its tight bounds in the order in which it is asked
                before = list(plain.sides(page.claim))
            except UndecidedError:  # W along M: the square root of 1 - cos = 0
                continue
            if not all(plain.holds(f) is True for f in search.hypotheses):
                continue
            real, vec = scaled._real, scaled._vector

            def power(name, at):
                w = weights.get(f"{name}/{len(at)}", 0)
                assert w.denominator == 1 if w else True
                return fmpq(3) ** int(w)

            scaled._real = lambda name, at, f=real: power(name, at) * f(name, at)
            scaled._vector = lambda name, at, f=vec: tuple(power(name, at) * x for x in f(name, at))
            for a, b in zip(before, scaled.sides(page.claim), strict=True):
                assert a.state == b.state
                if a.ratio == a.ratio:
                    assert b.ratio == pytest.approx(a.ratio, rel=1e-12)
                    checked += 1
    assert checked > 10
