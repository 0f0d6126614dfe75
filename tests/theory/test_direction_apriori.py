"""Theorem A(iii) from zero: its pages prove, and their proofs fail for every stronger bound."""

import pytest

from theory.lemmas import direction_distance, log_bounds
from theory.notation import Lam, R, e, eta, margin, path_length
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, as_real, log
from theory.theorems import direction_apriori, direction_path

PAGES = [direction_distance.DISTANCE, *log_bounds.PAGES, direction_path.PATH, direction_apriori.NGD]
end, first, t = direction_path.end, direction_path.first, direction_path.t
FIRST = e(first)


@pytest.mark.parametrize("theorem", PAGES, ids=lambda theorem: theorem.key)
def test_the_page_proves(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


def test_only_the_initial_weights_and_the_step_size_are_asked_of_the_run():
    of_the_run = set(direction_apriori.NGD.hypotheses) - set(direction_path.direction.GLOBAL.hypotheses)
    assert of_the_run == {"W_0 = 0", "normalized gradient descent", "eta > 0"}


def path_bound(path, start=FIRST, factor=Lam / margin, inside=Lam, size=None, scale=1):
    """The bound by the step lengths, with one part changed."""
    size = margin * path / R if size is None else size
    turned = factor * log((margin * size + inside) / (margin * FIRST + inside))
    flat = direction_path.curvature(direction_path.guaranteed_size)
    return (start + turned + scale * flat) / size


E = path_length(end)
STRONGER_PATH = {
    "no first step": path_bound(E, start=0),
    "a little less of the first step": path_bound(E, start=Fraction(99, 100) * FIRST),
    "half of Lam outside the log": path_bound(E, factor=Lam / margin / 2),
    "half of Lam inside the log": path_bound(E, inside=Lam / 2),
    "R halved": path_bound(E, size=2 * margin * E / R),
    "R dropped": path_bound(E, size=margin * E),
    "a little less curvature": path_bound(E, scale=Fraction(99, 100)),
}


def test_the_pages_state_the_bounds_that_are_varied():
    flat = direction_path.curvature(direction_path.guaranteed_size)
    bracket = log_bounds.bracket(margin * E / R, e(first), 1 * flat, margin, Lam)
    assert direction_path.bound(E, e(first), 1 * flat) == bracket / (margin * E / R)
    assert path_bound(E) == direction_path.bound(E, e(first), 1 * flat)


@pytest.fixture(scope="module")
def since_one():
    return direction_path.direction_since_one()


@pytest.mark.parametrize("name", STRONGER_PATH)
def test_a_stronger_bound_by_the_path_is_not_proved(name, monkeypatch, since_one):
    monkeypatch.setattr(direction_path, "direction_since_one", lambda: since_one)
    direction_path.prove_path()
    monkeypatch.setattr(direction_path, "bound", lambda *_: STRONGER_PATH[name])
    with pytest.raises(KernelError):
        direction_path.prove_path()


def harmonic(front=eta * R / (2 * margin), two=2, below=2):
    """The bound on the curvature of normalized gradient descent, with one part changed."""
    return front * log(1 + two * margin**2 * eta * as_real(t) / (margin**2 * eta + below * R * Lam))


STRONGER_HARMONIC = {
    "the front halved": harmonic(front=eta * R / (4 * margin)),
    "a little less in front": harmonic(front=Fraction(99, 200) * eta * R / margin),
    "R dropped": harmonic(front=eta / (2 * margin)),
    "the margin dropped": harmonic(front=eta * R / 2),
    "eta squared": harmonic(front=eta**2 * R / (2 * margin)),
    "a little less inside": harmonic(two=Fraction(199, 100)),
    "a little more below": harmonic(below=Fraction(201, 100)),
    "no logarithm": eta * R / (2 * margin),
    "nothing": 0 * eta,
}


def test_the_page_states_the_harmonic_bound_that_is_varied():
    assert harmonic() == direction_apriori.HARMONIC


@pytest.mark.parametrize("name", STRONGER_HARMONIC)
def test_a_stronger_harmonic_bound_is_not_proved(name, monkeypatch):
    monkeypatch.setattr(direction_apriori, "HARMONIC", STRONGER_HARMONIC[name])
    with pytest.raises(KernelError):
        direction_apriori.harmonic()


x, u, a, k, m, ell, y, h = (getattr(log_bounds, name) for name in ("x", "u", "a", "k", "m", "ell", "y", "h"))


@pytest.mark.parametrize(
    "claim",
    [
        2 * log_bounds.bracket(u, a, k, m, ell) / u <= log_bounds.bracket(x, a, k, m, ell) / x,
        log_bounds.bracket(u, a, k, m, ell) / u <= log_bounds.bracket(x, a, k, m, ell) / u,
        log_bounds.bracket(u, a, k, m, ell) / u <= log_bounds.bracket(x, a / 2, k, m, ell) / x,
    ],
)
def test_the_bracket_falls_no_faster(claim, monkeypatch):
    monkeypatch.setattr(log_bounds, "FALLS_CLAIM", claim)
    with pytest.raises(KernelError):
        log_bounds.prove_falls()


@pytest.mark.parametrize(
    "claim",
    [
        Fraction(201, 100) * h / y <= log(y + h) - log(y - h),
        2 * h / (y - h) <= log(y + h) - log(y - h),
        2 * h / y <= log(y + h) - log(y),
    ],
)
def test_the_midpoint_is_no_higher(claim, monkeypatch):
    monkeypatch.setattr(log_bounds, "MIDPOINT_CLAIM", claim)
    with pytest.raises(KernelError):
        log_bounds.prove_midpoint()
