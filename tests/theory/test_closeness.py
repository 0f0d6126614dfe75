"""The stored tightness of each bound: reproducible from its seed, of the very statement, never foreign."""

import dataclasses
import json

import pytest

from numerics.errors import InputError
from theory import catalog, closeness
from theory.closeness import Tightness, save, search, search_all, statement_digest, stored, tightness_of
from theory.notation import STATIC, R
from theory.proof.terms import norm

PAGES = {key: page for key, page in catalog.theorems().items() if page.claim is not None}
# sections 3, 4 and 8: the layer's lemmas, every step-size rule, logistic regression
BOTH_SIDES_OF_GD = ("gd-path-lower", "gd-path-upper", "gd-path-upper-near-acute", "gd-exponentially-slower",
                    "gd-exponentially-slower-near-acute")  # fmt: skip


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty store in a folder of its own."""
    monkeypatch.setattr(closeness, "STORE", tmp_path / "closeness.json")
    stored.cache_clear()
    yield closeness.STORE
    stored.cache_clear()


@pytest.mark.parametrize(
    "key", ["separator-correlation", "path-lower", "ngd-norm-lower", *BOTH_SIDES_OF_GD[2::2]]
)
def test_the_stored_ratio_comes_out_again(key):
    known = tightness_of(PAGES[key])
    assert known is not None, "search it: attnrates verify --falsify"
    again, counterexample = search(PAGES[key])
    assert not counterexample
    assert again == known


@pytest.mark.parametrize("key", ["norm-growth", "alignment", "global-direction", *BOTH_SIDES_OF_GD])
def test_models_are_met_and_no_bound_is_passed(key):
    known = tightness_of(PAGES[key])
    assert known is not None, "search it: attnrates verify --falsify"
    assert known.models > 0
    assert known.ratio is not None
    assert 0 < known.ratio <= 1


def test_no_stored_ratio_is_above_one():
    assert stored()
    assert all(row.ratio is None or row.ratio <= 1 for row in stored().values())


def test_a_changed_statement_has_no_stored_ratio(store):
    page = PAGES["gradient-upper"]
    save({"gradient-upper": Tightness(ratio=1.0, models=3, tried=5, statement=statement_digest(page))})
    assert tightness_of(page) is not None
    assert tightness_of(dataclasses.replace(page, claim=norm(STATIC.descent) <= 2 * R * STATIC.C)) is None
    fewer = dict(list(page.hypotheses.items())[1:])
    assert tightness_of(dataclasses.replace(page, hypotheses=fewer)) is None


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"ratio": 1}}', "not json"])
def test_a_foreign_file_is_refused(store, text):
    store.write_text(text)
    with pytest.raises(InputError, match=r"closeness\.json: not a table"):
        stored()


def test_only_new_statements_are_searched(store, monkeypatch):
    few = {key: PAGES[key] for key in ("gradient-upper", "path-lower")}
    monkeypatch.setattr(catalog, "theorems", lambda: few)
    monkeypatch.setattr(closeness, "TRIES", 30)
    seen = []
    assert search_all(progress=seen.append) == {}
    assert seen == list(few)
    assert set(json.loads(store.read_text())) == set(few)
    assert search_all(progress=seen.append) == {}
    assert seen == list(few)
    assert search_all(anew=True, progress=seen.append) == {}
    assert seen == [*few, *few]


def test_a_refuted_page_is_told_and_not_stored(store, monkeypatch):
    false = dataclasses.replace(PAGES["gradient-upper"], claim=2 * norm(STATIC.descent) <= R * STATIC.C)
    monkeypatch.setattr(catalog, "theorems", lambda: {"gradient-upper": false})
    broken = search_all()
    assert set(broken) == {"gradient-upper"}
    assert not json.loads(store.read_text())
