"""The falsifier finds what is false, and finds nothing against what is proved."""

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from theory import catalog
from theory import notation as nt
from theory.__main__ import main, page_text
from theory.examples import example
from theory.falsify import Search, falsify, summary, worst_side
from theory.model import UndecidedError, precision
from theory.notation import STATIC, M, R, a_min, layer, t
from theory.page import without
from theory.proof.terms import Fraction, inner, norm

PAGES = {key: page for key, page in catalog.theorems().items() if page.claim is not None}
PATH = nt.path_length(t)


@given(key=st.sampled_from(sorted(PAGES)), number=st.integers(0, 10**9), moves=st.integers(0, 3))
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_random_model_refutes_a_page(key, number, moves):
    """Hypothesis picks page, seed and perturbations; the numbers are in the message when it fails."""
    import random

    page, rng = PAGES[key], random.Random(number)
    search = Search(tuple(page.hypotheses.values()), page.claim, key, number)
    draw = search.fresh(number)
    with precision():
        for _ in range(moves + 1):
            model = search.model(draw)
            if model is not None and all(model.holds(f) is True for f in search.hypotheses):
                try:
                    _, _, broken = worst_side(model, page.claim)
                except UndecidedError:
                    broken = None
                assert broken is None, f"{key}: {broken} with {draw}"
            draw = draw.neighbour(rng) if draw.used else draw


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize(
    "key",
    ["separator-correlation", "alignment", "norm-growth", "global-direction", "sparsification", "loss-decay",
     "gd-path-lower", "polyak-step-lower"],
)  # fmt: skip
def test_no_directed_search_refutes_a_page(key, seed):
    found = falsify(PAGES[key], seed=seed, tries=120 if "direction" in key else 60)
    print(summary([found]))
    assert found.counterexample is None
    assert found.met > 0


FALSE = {
    "separator-correlation": inner(STATIC.descent, M) >= STATIC.C + STATIC.C,
    "gradient-upper": 2 * norm(STATIC.descent) <= R * STATIC.C,
    "norm-growth": nt.always(nt.margin * PATH / R <= norm(layer(t).W)),  # without the start
    "path-lower": nt.always(nt.separator_path(t) >= PATH / R + PATH / R),
    "norm-upper": nt.always(norm(layer(t).W) <= PATH),
    "slope-lower": nt.each_sequence(2 * a_min <= STATIC.a(nt.i)),
    "sparsification-static": nt.each_sequence(1 - STATIC.p(nt.i) <= 0),
}


@pytest.mark.parametrize("key", FALSE)
def test_false_claims_are_refuted_by_a_model_that_can_be_built_again(key):
    page = dataclasses.replace(PAGES[key], claim=FALSE[key])
    found = falsify(page, seed=0, tries=200)
    assert found.counterexample is not None
    assert "REFUTED" in summary([found])[key]
    search = Search(tuple(page.hypotheses.values()), page.claim, key, 0)
    with precision():
        again = search.model(found.counterexample.draw)
        assert all(again.holds(f) is True for f in page.hypotheses.values())
        assert again.holds(page.claim) is False


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("separator-correlation", "(S)"),
        ("separator-correlation", "c >= 0"),
        ("gradient-upper", "R bounds the constraints"),
        ("path-lower", "steps are nonnegative"),
        ("sparsification-static", "T bounds the lengths"),
        ("gradient-lower", "gradient"),
    ],
)
def test_hypotheses_are_needed(key, name):
    """Without it the falsifier refutes the page: it is no decoration."""
    page = PAGES[key]
    weaker = dataclasses.replace(page, hypotheses=without(page.hypotheses, name))
    assert falsify(weaker, seed=0, tries=400).counterexample is not None


def test_the_search_is_reproducible():
    one, two = (falsify(PAGES["norm-growth"], seed=5, tries=40) for _ in range(2))
    assert one == two
    assert falsify(PAGES["norm-growth"], seed=6, tries=40) != one


@pytest.mark.parametrize("key", ["gradient-lower", "path-lower", "loss-upper", "ngd-norm-upper"])
def test_attained_bounds_are_seen_to_be_tight(key):
    found = falsify(PAGES[key], seed=0, tries=120)
    assert found.tightness is not None
    assert Fraction(99, 100) < found.tightness <= 1


def test_paper_claims_are_not_searched():
    with pytest.raises(ValueError, match="no formal claim"):
        falsify(catalog.theorems()["paper-global"])


@pytest.mark.parametrize("key", ["norm-growth", "alignment", "global-direction"])
def test_examples_keep_their_bounds(key):
    text = example(PAGES[key])
    assert "small problem" in text or "falsifier" in text
    lines = [line.split() for line in text.splitlines() if " <= " in line and line.startswith("  ")]
    numbers = [(float(words[0]), float(words[2])) for words in lines if words[1] == "<="]
    assert numbers
    assert all(small <= large for small, large in numbers)


def test_pages_print(capsys):
    assert main([]) == 0
    assert "norm-growth" in capsys.readouterr().out
    assert main(["no-such-page"]) == 2
    assert "no page is called" in capsys.readouterr().err
    text = page_text(PAGES["separator-correlation"])
    assert "(lemma, proved)" in text
    assert "Example" in text
    assert "claimed" in page_text(catalog.theorems()["paper-global"])
