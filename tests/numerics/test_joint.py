"""Joint training: both spaces against each other, against textbook autograd and against mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch

from numerics import GradientDescent, InputError, NormalizedGD, Polyak, Problem, Run, train_joint
from numerics._joint_record import COLUMNS
from numerics.datasets import load
from numerics.joint import train_joint_batch
from tests.numerics.oracles import random_problem

torch.set_num_threads(1)

NGD = NormalizedGD(0.1, exponent=2 / 3)
RULES = {
    "ngd-ngd": (NGD, NormalizedGD(0.3, exponent=2 / 3)),
    "ngd-polyak": (NormalizedGD(0.2), Polyak(0.7)),
    "polyak-ngd": (Polyak(2.0), NormalizedGD(0.05)),
    "gd-gd": (GradientDescent(1.0), GradientDescent(0.5, exponent=0.25)),
    "polyak-gd": (Polyak(1.0), GradientDescent(0.5)),
    "gd-polyak": (GradientDescent(2.0, exponent=0.5), Polyak(0.5)),
}


def starts(problem: Problem, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(100 + seed)
    return {
        "init": 0.5 * rng.standard_normal((problem.d, problem.d)),
        "decoder_init": rng.standard_normal(problem.d),
    }


def assert_same(one: Run, other: Run, tolerance: float) -> None:
    assert list(one.history.columns) == list(COLUMNS)
    for name in COLUMNS:
        a, b = one.recorded[name].astype(float), other.recorded[name].astype(float)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)
    np.testing.assert_array_equal(one.joint.optimal, other.joint.optimal)
    np.testing.assert_allclose(one.weights, other.weights, atol=tolerance * (1 + np.abs(one.weights).max()))
    np.testing.assert_allclose(one.decoder, other.decoder, atol=tolerance * (1 + np.abs(one.decoder).max()))


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("given", [False, True], ids=["from zero", "from given"])
@pytest.mark.parametrize("seed", range(3))
def test_both_spaces_agree(rules: str, given: bool, seed: int) -> None:
    problem = random_problem(seed, n=5, T=4, d=7)
    more = starts(problem, seed) if given else {}
    # Not more steps: where the data are not separable long steps of fixed length go on a chaotic walk.
    gram = train_joint(problem, *RULES[rules], steps=60, record="all", **more)
    weight = train_joint(problem, *RULES[rules], steps=60, record="all", space="weight", **more)
    assert_same(gram, weight, 1e-9)


def autograd_loop(problem, rules, steps, W, u):
    """The textbook: autograd through softmax, both gradients normalized, both steps from the same point."""
    tokens, queries = torch.tensor(problem.tokens), torch.tensor(problem.queries)
    mask, labels = torch.tensor(problem.mask), torch.tensor(problem.labels)
    W, u = torch.tensor(W, requires_grad=True), torch.tensor(u, requires_grad=True)
    for t in range(steps):
        logits = torch.einsum("ntd,de,ne->nt", tokens, W, queries).masked_fill(~mask, -torch.inf)
        outputs = torch.einsum("nt,ntd,d->n", torch.softmax(logits, 1), tokens, u)
        loss = torch.nn.functional.softplus(-labels * outputs).mean()
        gradients = torch.autograd.grad(loss, (W, u))
        with torch.no_grad():
            for variable, gradient, rule in zip((W, u), gradients, rules, strict=True):
                norm = gradient.norm()
                if norm > 0:
                    length = rule.step * (t + 1) ** -rule.exponent
                    variable.sub_(length * gradient / (norm if rule.name == "ngd" else 1.0))
    return W.detach().numpy(), u.detach().numpy()


@pytest.mark.parametrize("rules", ["ngd-ngd", "gd-gd"])
@pytest.mark.parametrize("space", ["gram", "weight"])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_textbook_loop(rules: str, space: str, seed: int) -> None:
    problem = random_problem(seed, n=4, T=5, d=9)
    for more in ({}, starts(problem, seed)):
        W0 = more.get("init", np.zeros((9, 9)))
        u0 = more.get("decoder_init", np.zeros(9))
        W, u = autograd_loop(problem, RULES[rules], 60, W0, u0)
        run = train_joint(problem, *RULES[rules], steps=60, space=space, **more)
        np.testing.assert_allclose(run.weights, W, atol=1e-11)
        np.testing.assert_allclose(run.decoder, u, atol=1e-11)


class Exact:
    """Everything at one (W, u) by mpmath, floats taken as exact; o the reference tokens."""

    def __init__(self, problem: Problem, W: np.ndarray, u: np.ndarray, o: np.ndarray) -> None:
        with mpmath.workdps(700):
            W, u = mpmath.matrix(W.tolist()), mpmath.matrix(u.tolist())
            losses, excesses, leaks, losts, gaps, weights, margins = [], [], [], [], [], [], []
            grad_W = mpmath.zeros(problem.d, problem.d)
            grad_u = mpmath.zeros(problem.d, 1)
            for i in range(problem.n):
                own = np.flatnonzero(problem.mask[i])
                x = [mpmath.matrix(problem.tokens[i, k].tolist()) for k in own]
                z, y = mpmath.matrix(problem.queries[i].tolist()), int(problem.labels[i])
                a = [(v.T * W * z)[0] for v in x]
                g = [y * (v.T * u)[0] for v in x]
                phi = [mpmath.exp(v - max(a)) for v in a]
                phi = [v / mpmath.fsum(phi) for v in phi]
                m = mpmath.fsum(p * v for p, v in zip(phi, g, strict=True))
                sigma = 1 / (1 + mpmath.exp(m)) / problem.n
                losses.append(mpmath.log(1 + mpmath.exp(-m)))
                excesses.append(losses[-1] - mpmath.log(1 + mpmath.exp(-max(g))))
                margins.append(m)
                best = int(np.searchsorted(own, o[i]))
                others = [k for k in range(len(x)) if k != best]
                leaks.append(mpmath.fsum(phi[k] for k in others))
                losts.append(g[best] - m)
                gaps += [a[best] - a[k] for k in others]
                weights += [sigma * phi[best] * (m - g[k]) for k in others]
                mean = sum((p * v for p, v in zip(phi, x, strict=True)), mpmath.zeros(problem.d, 1))
                grad_u -= sigma * y * mean
                pull = sum(
                    (p * (v - m) * w for p, v, w in zip(phi, g, x, strict=True)), mpmath.zeros(problem.d, 1)
                )
                grad_W -= sigma * pull * z.T
            mean = mpmath.fsum(losses) / problem.n
            self.values = {
                "log_loss": mpmath.log(mean),
                "log_excess_loss": mpmath.log(mpmath.fsum(excesses) / problem.n),
                "log_attention_gap": mpmath.log(max(leaks)),
                "log_total_attention_gap": mpmath.log(mpmath.fsum(leaks)),
                "log_leak": mpmath.log(max(losts)),
                "min_logit_gap": min(gaps),
                "min_margin": min(margins),
                "log_gradient_norm": mpmath.log(mpmath.mnorm(grad_W, "f")),
                "log_decoder_gradient_norm": mpmath.log(mpmath.norm(grad_u)),
            }
            if min(weights) > 0:
                self.values["log_weight_ratio"] = mpmath.log(max(weights) / min(weights))


@pytest.mark.parametrize("space", ["gram", "weight"])
@pytest.mark.parametrize(("scale", "steps"), [(0.1, 40), (10.0, 90)], ids=["near", "far"])
@pytest.mark.parametrize("seed", range(2))
def test_the_columns_are_right_even_below_1e_minus_300(
    space: str, scale: float, steps: int, seed: int
) -> None:
    problem = load("gaussian:n=3,T=4,d=12,noise=0.3,orthogonal=false", seed)
    run = train_joint(problem, NormalizedGD(scale), NormalizedGD(scale), steps=steps, space=space)
    exact = Exact(problem, run.weights, run.decoder, run.joint.reference.optimal).values
    last = run.history.iloc[-1]
    if scale > 1:
        assert last["log_loss"] < -700
        assert last["loss"] == 0.0
        assert last["log_attention_gap"] < -200
    for name, value in exact.items():
        assert last[name] == pytest.approx(float(value), rel=1e-10, abs=1e-12), name


@pytest.mark.parametrize("space", ["gram", "weight"])
@pytest.mark.parametrize("long", ["weights", "decoder"])
def test_steps_that_overflow_are_refused(space: str, long: str) -> None:
    problem = load("gaussian:n=4,T=3,d=20", 0)
    rules = NGD, NormalizedGD(1e308)
    with pytest.raises(InputError, match="run 0 overflowed by step"):
        train_joint(problem, *(rules if long == "decoder" else rules[::-1]), steps=50, space=space)


@pytest.mark.parametrize("space", ["gram", "weight"])
def test_no_logarithm_underflows_at_gaps_of_thousands(space: str) -> None:
    """Long steps: soon 1 - p and the loss are below the smallest float; the logs stay those of the loop."""
    problem = load("gaussian:n=4,T=3,d=40,noise=0.2", 0)
    rule = NormalizedGD(20.0)
    history = train_joint(problem, rule, rule, steps=400, record="all", space=space).history
    last = history[history["optimal_since"] == history["optimal_since"].iloc[-1]].iloc[1:]
    assert last["min_logit_gap"].iloc[-1] > 2000
    assert len(last) > 300
    np.testing.assert_allclose(last["log_leak"], last["interval_log_leak"], rtol=1e-10)
    np.testing.assert_allclose(last["log_optimal_loss"].iloc[-9:], last["log_loss"].iloc[-9:], rtol=1e-10)


@pytest.mark.parametrize("space", ["gram", "weight"])
def test_w_rests_while_its_gradient_is_zero(space: str) -> None:
    problem = load("gaussian:n=4,T=3,d=20", 0)
    run = train_joint(problem, NGD, NGD, steps=3, record="all", space=space)
    h = run.history
    assert h["step_length"][0] == 0.0
    assert h["log_gradient_norm"][0] == -np.inf
    assert h["weight_norm"][1] == 0.0
    assert h["decoder_step_length"][0] == pytest.approx(0.1)
    assert h["step_length"][1] == pytest.approx(0.1 * 2 ** (-2 / 3))
    assert (run.joint.optimal[0] == -1).all()
    assert h["score_gap"][0] == 0.0
    assert h["optimal_reference"][0] == 0


def direct(run: Run, W: np.ndarray, u: np.ndarray) -> dict[str, float]:
    """The columns on directions from W and u themselves, in extended precision."""
    reference, M, m = run.joint.reference, run.target.direction, run.joint.target
    W, u, M = (np.asarray(v, dtype=np.longdouble) for v in (W, u, M))
    v = np.sum(W * M)
    r = np.sqrt(np.sum((W - v * M) ** 2))
    size = np.sqrt(np.sum(W * W))
    best = reference.tokens[np.arange(reference.n), reference.optimal].astype(np.longdouble)
    margin = np.min(reference.labels * (best @ u)) / np.sqrt(u @ u)
    target = np.asarray(m.weights, dtype=np.longdouble)
    target = target / np.sqrt(target @ target)
    along = u @ target
    rest = np.sqrt(np.sum((u - along * target) ** 2))
    return {
        "weight_norm": size,
        "target_component": v,
        "residual_norm": r,
        "direction_gap": r / size * (r / (size + v)),
        "decoder_norm": np.sqrt(u @ u),
        "decoder_target_component": along,
        "decoder_residual_norm": rest,
        "decoder_margin": margin,
        "decoder_margin_share": margin * m.norm,
    }


@pytest.mark.parametrize("space", ["gram", "weight"])
@pytest.mark.parametrize("given", [False, True], ids=["from zero", "from given"])
def test_directions_are_those_of_w_and_u(space: str, given: bool) -> None:
    problem = load("gaussian:n=6,T=4,d=30,noise=0.2", 1)
    more = starts(problem, 1) if given else {}
    run = train_joint(problem, NormalizedGD(0.1), NGD, steps=3000, space=space, **more)
    assert run.joint.target is not None
    for name, value in direct(run, run.weights, run.decoder).items():
        assert run.history[name].iloc[-1] == pytest.approx(float(value), rel=1e-9), name


@pytest.mark.parametrize("rules", ["ngd-ngd", "gd-polyak"])
@pytest.mark.parametrize("space", ["gram", "weight"])
def test_sums_and_extremes_cover_every_step(rules: str, space: str) -> None:
    problem = random_problem(3, n=5, T=4, d=40, ragged=True)
    every = train_joint(problem, *RULES[rules], steps=200, record="all", space=space)
    some = [0, 1, 2, 30, 31, 100, 200]
    few = train_joint(problem, *RULES[rules], steps=200, record=some, space=space)
    h, rows = every.history, few.history
    e, f = h["step_length"].to_numpy(), h["decoder_step_length"].to_numpy()

    def before(values: np.ndarray) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(values[:-1])])

    def by(values: np.ndarray, norm: str) -> np.ndarray:
        size = h[norm].to_numpy()
        return np.where(size > 0, values / np.where(size > 0, size, 1.0), 0.0)

    sums = {
        "path_length": before(e),
        "path_squares": before(e**2),
        "curvature_sum": before(by(e**2, "weight_norm")),
        "decoder_path_length": before(f),
        "decoder_path_squares": before(f**2),
        "decoder_curvature_sum": before(by(f**2, "decoder_norm")),
    }
    for name, values in sums.items():
        np.testing.assert_allclose(h[name], values, rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(rows[name], values[some], rtol=1e-9, err_msg=name)
    largest = ("score_spread", "log_attention_gap", "log_weight_ratio", "log_leak")
    intervals = [name for name in COLUMNS if name.startswith("interval_")]
    assert len(intervals) == 8
    settled = h["optimal_reference"].to_numpy() == problem.n  # present = reference tokens
    assert settled.sum() > 100
    for name in intervals:
        state = name.removeprefix("interval_")
        np.testing.assert_allclose(h[name][settled], h[state][settled], rtol=1e-7, err_msg=name)
        extreme = np.max if state in largest else np.min
        for row in range(1, len(some)):
            wanted = extreme(h[name].to_numpy()[some[row - 1] + 1 : some[row] + 1])
            assert rows[name][row] == pytest.approx(wanted, rel=1e-9), name


@pytest.mark.parametrize("space", ["gram", "weight"])
def test_sums_along_the_gradients_are_those_of_their_definitions(space: str) -> None:
    problem = load("gaussian:n=4,T=4,d=10,noise=0.3,orthogonal=false", 0)
    run = train_joint(problem, NGD, NGD, steps=25, record="all", space=space)
    assert run.history["optimal_changes"].iloc[-1] == 1  # settled from step 1 on
    C, mass, leak = (np.zeros(26) for _ in range(3))
    for t in range(1, 26):
        at = train_joint(problem, NGD, NGD, steps=t, space=space)
        W, u = at.weights, at.decoder
        for i in range(problem.n):
            a, g = problem.tokens[i] @ W @ problem.queries[i], problem.labels[i] * (problem.tokens[i] @ u)
            phi = np.exp(a - a.max()) / np.exp(a - a.max()).sum()
            m, o = phi @ g, np.argmax(g)
            sigma = 1 / (1 + np.exp(m)) / problem.n
            C[t] += sigma * phi[o] * (g[o] - m)
            mass[t] += sigma
            leak[t] += sigma * (1 - phi[o])
    mass[0] = 0.5
    leak[0] = 0.5 * np.mean(1 - 1 / problem.lengths)
    h = run.history
    norm, decoder_norm = (np.exp(h[name]) for name in ("log_gradient_norm", "log_decoder_gradient_norm"))
    for name, values, norms, length in (
        ("separator_path", C, norm, "step_length"),
        ("decoder_separator_path", mass, decoder_norm, "decoder_step_length"),
        ("decoder_leak_path", leak, decoder_norm, "decoder_step_length"),
    ):
        steps = np.where(h[length] > 0, h[length] * values / np.where(norms > 0, norms, 1.0), 0.0)
        np.testing.assert_allclose(h[name].to_numpy()[1:], np.cumsum(steps)[:-1], rtol=1e-8, err_msg=name)


@pytest.mark.parametrize("seed", range(4))
def test_the_optimal_tokens_are_followed(seed: int) -> None:
    problem = random_problem(seed, n=6, T=5, d=4)
    run = train_joint(problem, NormalizedGD(0.1), NormalizedGD(0.1), steps=300, record="all")
    changed = np.any(run.joint.optimal[1:] != run.joint.optimal[:-1], axis=1)
    np.testing.assert_array_equal(run.history["optimal_changes"], np.concatenate([[0], np.cumsum(changed)]))
    since = np.maximum.accumulate(np.where(changed, np.arange(1, 301), 0))
    np.testing.assert_array_equal(run.history["optimal_since"][1:], since)
    counts = np.sum(run.joint.optimal == run.joint.reference.optimal, axis=1)
    np.testing.assert_array_equal(run.history["optimal_reference"], counts)
    assert run.history["optimal_reference"].iloc[-1] == problem.n
    data = np.sum(run.joint.optimal == problem.optimal, axis=1)
    np.testing.assert_array_equal(run.history["optimal_data"], data)


def test_the_reference_may_be_the_data_s_own_decoder() -> None:
    problem = load("gaussian:n=8,T=5,d=200,noise=1", 0)
    final = train_joint(problem, NGD, NGD, steps=2000)
    data = train_joint(problem, NGD, NGD, steps=2000, reference="data")
    assert final.joint.reference != problem
    assert data.joint.reference == problem
    np.testing.assert_array_equal(final.decoder, data.decoder)
    np.testing.assert_allclose(final.weights, data.weights, atol=1e-12)
    assert final.history["direction_gap"].iloc[-1] < 1e-2
    assert data.history["direction_gap"].iloc[-1] > 1
    assert final.history["score_gap"].iloc[-1] > 0 > data.history["score_gap"].iloc[-1]


def test_nothing_depends_on_the_dimension() -> None:
    problem = random_problem(0, n=4, T=4, d=9)
    rng = np.random.default_rng(5)
    turn = np.linalg.qr(rng.standard_normal((40, 9)))[0]
    wide = Problem(
        problem.tokens @ turn.T,
        problem.queries @ turn.T,
        problem.labels,
        turn @ problem.decoder,
        problem.mask,
    )
    one = train_joint(problem, *RULES["ngd-ngd"], steps=300)
    other = train_joint(wide, *RULES["ngd-ngd"], steps=300)
    for name in COLUMNS:
        a, b = one.recorded[name].astype(float), other.recorded[name].astype(float)
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10, err_msg=name)


def test_a_common_offset_of_a_sequence_s_tokens_costs_no_digit() -> None:
    problem = load("gaussian:n=3,T=4,d=20", 0)
    tokens = problem.tokens + 1e6 * np.ones((3, 1, 20))
    start = np.zeros(20)
    start[:2] = problem.decoder[:2]
    there = Problem(tokens, problem.queries, problem.labels, problem.decoder)
    still = NormalizedGD(1e-300)  # the decoder rests: its own gradient does see the offset
    one = train_joint(problem, NGD, still, steps=100, decoder_init=start, reference="data")
    other = train_joint(there, NGD, still, steps=100, decoder_init=start, reference="data")
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-8)


def test_a_batch_is_its_runs() -> None:
    problems = [load("gaussian:n=4,T=3,d=20", seed) for seed in range(3)]
    rules = [NGD, Polyak(1.0), GradientDescent(1.0)]
    for space in ("gram", "weight"):
        batch = train_joint_batch(problems, rules, NGD, steps=50, seeds=[0, 1, 2], space=space)
        for seed, run in enumerate(batch):
            alone = train_joint(problems[seed], rules[seed], NGD, steps=50, space=space)
            np.testing.assert_array_equal(run.history, alone.history)
            assert run.seed == seed


def test_sequences_of_one_token_and_infeasible_constraints_do_no_harm() -> None:
    rng = np.random.default_rng(0)
    mask = np.array([[True, True, True], [True, False, False], [True, True, False]])
    problem = Problem(rng.standard_normal((3, 3, 5)), None, [1, -1, 1], rng.standard_normal(5), mask)
    assert_same(
        train_joint(problem, NGD, NGD, steps=50),
        train_joint(problem, NGD, NGD, steps=50, space="weight"),
        1e-8,
    )
    tokens = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    queries = np.array([[1.0, 0.0], [1.0, 0.0]])
    clash = Problem(tokens, queries, [1, -1], [1.0, -1.0])  # each label wants the other token
    for space in ("gram", "weight"):
        run = train_joint(clash, NGD, NGD, steps=50, space=space, decoder_init=np.array([0.3, -0.2]))
        assert run.target is None
        assert np.isnan(run.history["direction_gap"]).all()
        assert np.isfinite(run.history["weight_norm"]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": -1}, "steps"),
        ({"space": "dual"}, "space"),
        ({"reference": "other"}, "reference"),
        ({"device": "cuda"}, "CPU"),
        ({"device": "tpu"}, "device"),
        ({"init": np.zeros((3, 3))}, "init"),
        ({"decoder_init": np.zeros(3)}, "decoder_init"),
        ({"decoder_init": np.full(20, np.nan)}, "decoder_init"),
        ({"record": [11]}, "record"),
        ({"memory_limit": 1000}, "available"),
        ({"memory_limit": 1000, "space": "weight"}, "available"),
        ({"checkpoint": "x", "checkpoint_every": 0}, "checkpoint_every"),
        ({"steps": 0}, "final decoder"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, message: str) -> None:
    problem = load("gaussian:n=3,T=3,d=20", 0)
    with pytest.raises(InputError, match=message):
        train_joint(problem, NGD, NGD, **({"steps": 10} | arguments))


def test_more_bad_arguments_are_named() -> None:
    problem = load("gaussian:n=3,T=3,d=20", 0)
    with pytest.raises(InputError, match="2 entries for 3 runs"):
        train_joint_batch(problem, [NGD] * 3, [NGD] * 2, steps=3)
    with pytest.raises(InputError, match="agree in n, d and N"):
        train_joint_batch([problem, load("gaussian:n=4,T=3,d=20", 0)], NGD, NGD, steps=3)
    single = Problem(np.ones((2, 1, 3)), None, [1, -1], np.ones(3))
    with pytest.raises(InputError, match="nothing to train"):
        train_joint(single, NGD, NGD, steps=3)
    with pytest.raises(InputError, match="overflowed"):
        train_joint(problem, NormalizedGD(1e200), NormalizedGD(1e200), steps=100)


def test_a_run_of_no_step_has_the_data_s_reference() -> None:
    problem = load("gaussian:n=3,T=3,d=20", 0)
    run = train_joint(problem, NGD, NGD, steps=0, reference="data")
    assert len(run.history) == 1
    assert not run.decoder.any()
