"""Theorem A(iii) from zero: its pages prove, and their proofs fail for every stronger bound."""

import pytest

from theory import notation as nt
from theory.lemmas import direction_distance, log_bounds
from theory.notation import Lam, R, e, eta, margin, path_length
from theory.proof.kernel import KernelError
from theory.proof.terms import Fraction, as_real, log, minimum
from theory.theorems import direction_apriori, direction_path, direction_steady, polyak

PAGES = [
    direction_distance.DISTANCE,
    *log_bounds.PAGES,
    direction_path.PATH,
    direction_steady.STEADY,
    direction_apriori.NGD,
    direction_apriori.POLYAK,
]
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


e_min, e_max = direction_steady.e_min, direction_steady.e_max


def harmonic(front=e_max**2 * R / (2 * margin * e_min), two=2, below=2):
    """The bound on the curvature of steps between e_min and e_max, with one part changed."""
    return front * log(1 + two * margin**2 * e_min * as_real(t) / (margin**2 * e_min + below * R * Lam))


STRONGER_HARMONIC = {
    "the front halved": harmonic(front=e_max**2 * R / (4 * margin * e_min)),
    "a little less in front": harmonic(front=Fraction(99, 200) * e_max**2 * R / (margin * e_min)),
    "R dropped": harmonic(front=e_max**2 / (2 * margin * e_min)),
    "the margin dropped": harmonic(front=e_max**2 * R / (2 * e_min)),
    "the longest step once": harmonic(front=e_max * R / (2 * margin)),
    "the shortest step for the longest": harmonic(front=e_min * R / (2 * margin)),
    "a little less inside": harmonic(two=Fraction(199, 100)),
    "a little more below": harmonic(below=Fraction(201, 100)),
    "no logarithm": e_max**2 * R / (2 * margin * e_min),
    "nothing": 0 * e_min,
}


def test_the_page_states_the_harmonic_bound_that_is_varied():
    assert harmonic() == direction_steady.HARMONIC


@pytest.fixture(scope="module")
def step_cost():
    return direction_steady.step_cost()


@pytest.mark.parametrize("name", STRONGER_HARMONIC)
def test_a_stronger_harmonic_bound_is_not_proved(name, monkeypatch, step_cost):
    monkeypatch.setattr(direction_steady, "step_cost", lambda: step_cost)
    direction_steady.harmonic()
    monkeypatch.setattr(direction_steady, "HARMONIC", STRONGER_HARMONIC[name])
    with pytest.raises(KernelError):
        direction_steady.harmonic()


STEPS, HARMONIC = as_real(t) + 1, direction_steady.HARMONIC
STRONGER_STEADY = {
    "the longest step for the path": direction_path.bound(e_max * STEPS, e_max, HARMONIC),
    "the shortest step for the first": direction_path.bound(e_min * STEPS, e_min, HARMONIC),
    "one step more": direction_path.bound(e_min * (STEPS + 1), e_max, HARMONIC),
    "no curvature": direction_path.bound(e_min * STEPS, e_max, 0 * e_max),
}


@pytest.mark.parametrize("name", STRONGER_STEADY)
def test_a_stronger_bound_by_the_steps_is_not_proved(name, monkeypatch):
    monkeypatch.setattr(direction_steady, "BOUND", STRONGER_STEADY[name])
    with pytest.raises(KernelError):
        direction_steady.prove_steady()


def ngd_bound(first_step=eta, front=eta * R / (2 * margin), inside=margin * eta * STEPS / R):
    """The bound for normalized gradient descent, with one part changed."""
    wave = front * log(1 + 2 * margin**2 * eta * as_real(t) / (margin**2 * eta + 2 * R * Lam))
    turned = Lam / margin * log((margin * inside + Lam) / (margin * eta + Lam))
    return (first_step + turned + wave) / (margin * (eta * STEPS) / R)


STRONGER_NGD = {
    "half of the first step": ngd_bound(first_step=eta / 2),
    "an eighth for a half": ngd_bound(front=eta * R / (8 * margin)),
    "R halved in the front": ngd_bound(front=eta * R / (4 * margin)),
    "R halved in the norm's place": ngd_bound(inside=margin * eta * STEPS / R / 2),
    "one step less in the norm's place": ngd_bound(inside=margin * eta * as_real(t) / R),
}


def test_the_page_states_the_bound_of_normalized_gradient_descent():
    unchanged = ngd_bound(inside=margin * (eta * STEPS) / R)
    assert unchanged == direction_apriori.NGD_BOUND


@pytest.mark.parametrize("name", STRONGER_NGD)
def test_a_stronger_bound_of_normalized_gradient_descent_is_not_proved(name, monkeypatch):
    monkeypatch.setattr(direction_apriori, "NGD_BOUND", STRONGER_NGD[name])
    with pytest.raises(KernelError):
        direction_apriori.prove_ngd()


def test_polyak_steps_are_no_longer_than_proved(monkeypatch):
    """With 1/(R rho) for 1/(2 R rho) the lower bound on the steps stays an open hypothesis."""
    assert direction_apriori.prove_polyak().hypotheses == set(direction_apriori.POLYAK.hypotheses.values())
    longer = minimum(1 / (R * polyak.rho), polyak.e_max)
    monkeypatch.setattr(polyak, "LEAST_STEP", longer)
    assert nt.always(longer <= e(t)) in direction_apriori.prove_polyak().hypotheses


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
