"""Logistic regression: proved, not provable when strengthened, and true on random separable data."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.special import lambertw

from theory.lemmas import harmonic_sum
from theory.notation import N, R, margin, t
from theory.page import ProofError, without
from theory.proof import terms
from theory.proof.kernel import KernelError
from theory.proof.terms import as_real, exp, inner, log, norm, real
from theory.theorems import logistic_rate as rate
from theory.theorems import logistic_regression as page

PAGES = (*page.PAGES, *harmonic_sum.PAGES, *rate.PAGES)


@pytest.mark.parametrize("theorem", PAGES, ids=lambda p: p.key)
def test_the_page_proves_its_claim(theorem):
    assert theorem.proved().conclusion == theorem.claim
    assert theorem.status == "proved"


# --- strengthened ------------------------------------------------------------------------------------------


def _with_constant(monkeypatch, constant):
    """The page's statements and proofs for another value of Lam."""
    monkeypatch.setattr(page, "Lam", constant)
    monkeypatch.setattr(page, "B", margin * norm(page.W) + constant)
    monkeypatch.setattr(page, "HEIGHT", page.w_max * exp(-page.B - 1))
    monkeypatch.setattr(page, "ALIGNED", inner(page.D, page.W) <= page.B * inner(page.D, page.M))


@pytest.mark.parametrize(
    "argument",
    [
        (N - 2) * (page.w_max / page.w_min) * exp(real(-1)),
        (N - 1) * exp(real(-1)),
        (N - 1) * (page.w_max / page.w_min) * exp(real(-2)),
    ],
    ids=["N - 2", "no ratio", "e^2"],
)
def test_a_smaller_constant_does_not_align(monkeypatch, argument):
    _with_constant(monkeypatch, terms.lambertw(argument))
    with pytest.raises(KernelError):
        page.prove_alignment()


def test_the_logarithm_does_not_replace_lambert_w(monkeypatch):
    _with_constant(monkeypatch, log(page.Lam[2]))
    with pytest.raises(KernelError):
        page.prove_alignment()


@pytest.mark.parametrize("factor", [0, page.Fraction(1, 2)], ids=["no curvature", "a quarter"])
def test_less_curvature_is_not_provable(monkeypatch, factor):
    curvature = page.curvature
    monkeypatch.setattr(page, "curvature", lambda at: factor * curvature(at))
    with pytest.raises(KernelError):
        page.one_step()


@pytest.mark.parametrize(
    "stronger",
    [
        lambda constant: rate.eta**2 * margin / (2 * constant),
        lambda constant: _bracket(constant) / 2,
        lambda constant: _bracket(constant) - rate.eta**2 * margin / (2 * constant),
    ],
    ids=["no logarithms", "half", "no first step"],
)
def test_a_smaller_bracket_is_not_provable(monkeypatch, stronger):
    monkeypatch.setattr(rate, "bracket", stronger)
    with pytest.raises(KernelError):
        rate.lag_at_most()


_bracket = rate.bracket


def test_a_shorter_path_is_not_provable(monkeypatch):
    monkeypatch.setattr(rate, "least_size", lambda at: 2 * margin * rate.eta * at / R)
    with pytest.raises(KernelError):
        rate.size_at_least(t)


def test_a_smaller_harmonic_sum_is_not_provable(monkeypatch):
    r, ell = harmonic_sum.r, harmonic_sum.ell
    smaller = harmonic_sum.HARMONIC_CLAIM[1] <= log(1 + r * as_real(t) / ell) / r
    monkeypatch.setattr(harmonic_sum, "HARMONIC_CLAIM", smaller)
    with pytest.raises(KernelError):
        harmonic_sum.prove_harmonic()


@pytest.mark.parametrize("constant", [terms.lambertw((N - 1) * exp(real(-1)))], ids=["exponential loss"])
def test_the_logistic_loss_needs_its_own_constant(monkeypatch, constant):
    monkeypatch.setattr(rate, "LOGISTIC_CONSTANT", constant)
    with pytest.raises(KernelError):
        rate.prove_logistic_rate()


def test_another_claim_or_fewer_hypotheses_are_refused():
    stronger = dataclasses.replace(
        page.CORRELATION, key="changed", claim=2 * page.over(page.c(page.k)) <= inner(page.D, page.M)
    )
    with pytest.raises(ProofError, match="the page says"):
        stronger.proved()
    fewer = without(rate.LOGISTIC_RATE.hypotheses, "there are two examples")
    with pytest.raises(ProofError, match="also needs"):
        dataclasses.replace(rate.LOGISTIC_RATE, key="fewer", hypotheses=fewer).proved()


# --- random data -------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Data:
    z: np.ndarray
    M: np.ndarray

    @property
    def margin(self) -> float:
        return float(1 / np.linalg.norm(self.M))

    @property
    def R(self) -> float:
        return float(np.linalg.norm(self.z, axis=1).max())


def _data(seed: int) -> Data:
    """Random examples on one side of a random plane, and their max-margin solution."""
    rng = np.random.default_rng(seed)
    count, d = int(rng.integers(2, 8)), int(rng.integers(2, 8))
    z = rng.standard_normal((count, d)) * rng.exponential(1, (count, 1))
    z *= np.sign(z @ rng.standard_normal(d))[:, None]
    # least distance programming (Lawson and Hanson, chapter 23): M is the residual, scaled
    system, goal = np.vstack([z.T, np.ones(count)]), np.eye(d + 1)[-1]
    residual = system @ nnls(system, goal)[0] - goal
    M = -residual[:-1] / residual[-1]
    assert np.all(z @ M >= 1 - 1e-8)
    return Data(z, M)


def _log_weights(mu: np.ndarray, loss: str) -> np.ndarray:
    return -np.logaddexp(0, mu) if loss == "logistic" else -mu


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_the_weights_are_aligned(seed, loss):
    print("seed", seed)
    data, rng = _data(seed), np.random.default_rng(100 + seed)
    constant = lambertw((2 if loss == "logistic" else 1) * (len(data.z) - 1) / np.e).real
    for _ in range(20):
        W = rng.standard_normal(data.M.size) * 10 ** rng.uniform(-3, 0) + data.M * data.margin
        W *= 10 ** rng.uniform(-2, 2) * data.margin
        mu = data.z @ W
        weights = np.exp(_log_weights(mu, loss) - _log_weights(mu, loss).max())
        D = weights @ data.z
        bound = (data.margin * np.linalg.norm(W) + constant) * (D @ data.M)
        assert bound + 1e-12 * np.linalg.norm(D) * np.linalg.norm(W) >= D @ W


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_the_rate_holds(seed, loss):
    print("seed", seed)
    data = _data(seed)
    g, R, eta = data.margin, data.R, 10 ** np.random.default_rng(seed).uniform(-2, 1.5)
    constant = lambertw((2 if loss == "logistic" else 1) * (len(data.z) - 1) / np.e).real
    W = np.zeros(data.M.size)
    for step in range(400):
        mu = data.z @ W
        D = np.exp(_log_weights(mu, loss) - _log_weights(mu, loss).max()) @ data.z
        W = W + eta * D / np.linalg.norm(D)
        gap = 1 - (W @ data.M) * g / np.linalg.norm(W)
        turned = constant / g * np.log1p(g * eta * (step + 1) / constant)
        later = eta * R / (2 * g) * np.log1p(g**2 * eta * step / (R * constant))
        bound = R / (g * eta * (step + 1)) * (turned + eta**2 * g / (2 * constant) + later)
        assert gap <= bound + 1e-12
