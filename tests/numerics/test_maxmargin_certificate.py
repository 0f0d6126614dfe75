"""Certificates: against brute force in rationals, against alteration, and where they must refuse."""

from __future__ import annotations

import ast
import contextlib
import copy
import itertools
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from numerics import max_margin
from numerics.datasets import load
from numerics.errors import CertificationError, InfeasibleError, InputError
from numerics.maxmargin import active_set, certificate, checker, exact, fast, infeasible, max_margins
from numerics.maxmargin.certificate import certify
from numerics.maxmargin.rounding import Rounded, is_rounding, rounded
from numerics.problem import Problem


def draw(seed: int, n: int = 3, T: int = 3, d: int = 3, grid: bool = False) -> Problem:
    """A random problem; on a small integer grid, margins of exactly 1 off the support are common."""
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    tokens, queries = rng.standard_normal((n, T, d)), rng.standard_normal((n, d))
    if grid:
        tokens = rng.integers(-1, 2, size=(n, T, d)).astype(float)
        queries = rng.integers(0, 2, size=(n, d)) + np.eye(d)[0]
    return Problem(tokens, queries, rng.choice([-1.0, 1.0], size=n), rng.standard_normal(d))


def rational_gram(p: Problem) -> list[list[Fraction]]:
    """<A_k, A_l> from the definition, in Python's rationals."""
    A = []
    for i, tau in zip(p.constraint_sequence, p.constraint_token, strict=True):
        best, other = p.tokens[i, p.optimal[i]], p.tokens[i, tau]
        difference = [Fraction(a) - Fraction(b) for a, b in zip(best.tolist(), other.tolist(), strict=True)]
        A.append([x * Fraction(z) for x in difference for z in p.queries[i].tolist()])
    return [[sum(x * y for x, y in zip(a, b, strict=True)) for b in A] for a in A]


def solve(K: list[list[Fraction]]) -> list[Fraction] | None:
    """K x = 1 by Gauss and Jordan; None when singular."""
    rows = [[*row, Fraction(1)] for row in K]
    for c in range(len(rows)):
        pivot = next((r for r in range(c, len(rows)) if rows[r][c] != 0), None)
        if pivot is None:
            return None
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [x / rows[c][c] for x in rows[c]]
        for r in range(len(rows)):
            if r != c and rows[r][c] != 0:
                rows[r] = [x - rows[r][c] * y for x, y in zip(rows[r], rows[c], strict=True)]
    return [row[-1] for row in rows]


def brute_force(p: Problem) -> tuple[Fraction, list[Fraction]] | None:
    """(||M||^2, all margins) by trying every support; None when no support satisfies the KKT conditions."""
    K = rational_gram(p)
    for size in range(1, len(K) + 1):
        for P in itertools.combinations(range(len(K)), size):
            x = solve([[K[a][b] for b in P] for a in P])
            if x is None or min(x) <= 0:
                continue
            mu = [sum(K[k][b] * v for b, v in zip(P, x, strict=True)) for k in range(len(K))]
            if min(mu) >= 1:
                return sum(x), mu
    return None


def reread(content: dict) -> dict:
    return json.loads(json.dumps(content))


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_certificates_state_the_truth(seed: int, grid: bool) -> None:
    p = draw(seed, grid=grid) if not grid else _grid(seed)
    truth = brute_force(p)
    if truth is None:
        with pytest.raises(InfeasibleError) as caught:
            max_margin(p)
        assert checker.check(p, reread(caught.value.certificate.to_json())) == "infeasible"
        return
    square, mu = truth
    proved = max_margin(p).certify(bits=80)
    with ctx.workprec(400):
        norm = arb(fmpq(square.numerator, square.denominator)).sqrt()
        assert is_rounding(norm, proved.norm, 80)
        assert is_rounding(1 / norm, proved.margin, 80)
        assert proved.norm.ball.contains(norm)
        assert proved.margin.ball.contains(1 / norm)
        for status, stated, true in zip(proved.status, proved.margins, mu, strict=True):
            assert (status == "inactive") == (true > 1)
            assert stated.ball.contains(arb(fmpq(true.numerator, true.denominator)))
        total = sum((x.ball for x in proved.dual), arb(0))
        assert total.overlaps(norm * norm)
    assert all((x.mantissa > 0) == (s == "support") for x, s in zip(proved.dual, proved.status, strict=True))
    assert checker.check(p, reread(proved.to_json())) == "optimal"


def _grid(seed: int) -> Problem:
    for attempt in itertools.count():
        try:
            return draw(1000 * attempt + seed, grid=True)
        except InputError:  # tied optimal tokens are common on a grid
            continue
    raise AssertionError


def test_the_grid_has_margins_of_exactly_one_off_the_support() -> None:
    """Otherwise the cases above would not test what they are for."""
    tied = 0
    for seed in range(25):
        with contextlib.suppress(InfeasibleError):
            tied += "active" in max_margin(_grid(seed)).certify().status
    assert tied >= 3


@pytest.mark.parametrize("bits", [8, 53, 64, 300, 1024])
def test_every_width_of_statement(bits: int) -> None:
    p = load("digits:3v5,n=10")
    solution = max_margin(p)
    proved = solution.certify(bits=bits)
    assert all(x.mantissa.bit_length() in {0, bits} for x in proved.dual)
    assert checker.check(p, reread(proved.to_json())) == "optimal"
    tolerance = max(2.0**-bits, 1e-11)
    np.testing.assert_allclose([float(x) for x in proved.dual], solution.dual, rtol=tolerance)
    np.testing.assert_allclose(float(proved.norm), solution.norm, rtol=tolerance)


@pytest.mark.parametrize("seed", range(3))
def test_full_support_is_decided(seed: int) -> None:
    p = load("gaussian", seed)
    assert max_margin(p).certify().full_support == "holds"
    assert max_margin(load("digits:3v5", seed)).certify().full_support == "fails"


def test_full_support_survives_duplicates_and_fails_at_a_unique_zero() -> None:
    p = load("gaussian:n=2,T=3,d=60")
    double = Problem(
        np.concatenate([p.tokens, p.tokens[:1]]),
        np.concatenate([p.queries, p.queries[:1]]),
        np.concatenate([p.labels, p.labels[:1]]),
        p.decoder,
    )
    proved = max_margin(double).certify()
    assert (proved.independent, proved.full_support) == (False, "holds")
    assert proved.status.count("active") == 2
    assert checker.check(double, reread(proved.to_json())) == "optimal"
    # <A_1, A_1> = 1, A_2 = A_1 + (something orthogonal): its margin is exactly 1 with multiplier zero.
    touching = Problem([[[1.0, 0, 0], [0, 0, 0], [0, 1.0, 0]]], [[1.0, 0, 0]], [1], [1.0, -0.5, 0])
    proved = max_margin(touching).certify()
    assert proved.status == ("support", "active")
    assert (proved.independent, proved.full_support) == (True, "fails")
    assert checker.check(touching, reread(proved.to_json())) == "optimal"


@pytest.mark.parametrize("seed", range(5))
def test_a_wrong_support_is_corrected_not_believed(seed: int) -> None:
    p = load("digits:3v5,n=4", seed)
    solution = max_margin(p)
    right = solution.certify().to_json()
    rng = np.random.default_rng(seed)
    for _ in range(4):
        wrong = np.array(solution.dual)
        flips = rng.choice(p.n_constraints, 3, replace=False)
        wrong[flips] = np.where(wrong[flips] > 0, 0.0, 1.0)
        assert certify(p, wrong).to_json() == right
    assert certify(p, np.zeros(p.n_constraints)).to_json() == right


def test_refusals_name_the_reason(monkeypatch) -> None:
    p = load("digits:3v5,n=10")
    solution = max_margin(p)
    for bits in (7, 1025):
        with pytest.raises(CertificationError, match="bits must lie between"):
            solution.certify(bits=bits)
    monkeypatch.setattr(exact, "SIZE_LIMIT", 0)  # no exact arithmetic: balls must do, or refuse
    assert solution.certify().full_support == "fails"
    near_orthogonal = load("gaussian")
    wrong = np.array(max_margin(near_orthogonal).dual)
    wrong[np.argmax(wrong)] = 0.0
    with pytest.raises(CertificationError, match=r"the margin of \(\d+, \d+\) is below 1"):
        certify(near_orthogonal, wrong)
    wrong = np.ones(p.n_constraints)
    with pytest.raises(CertificationError, match=r"the multiplier of \(\d+, \d+\) is negative"):
        certify(p, wrong)
    tokens, queries, labels, mask = (np.concatenate([a, a]) for a in (p.tokens, p.queries, p.labels, p.mask))
    twins = Problem(tokens, queries, labels, p.decoder, mask)
    with pytest.raises(CertificationError, match=r"the margin of \(\d+, \d+\) cannot be told from 1"):
        certify(twins, np.concatenate([solution.dual, np.zeros(p.n_constraints)]))
    with pytest.raises(CertificationError, match="cannot be enclosed"):
        certify(twins, np.concatenate([solution.dual, solution.dual]))


def test_refuses_to_certify_the_infeasible_and_the_feasible() -> None:
    crowded = draw(0, n=30, T=4, d=3)
    with pytest.raises(CertificationError, match="infeasible"):
        certify(crowded, np.ones(crowded.n_constraints))
    feasible = load("gaussian")
    with pytest.raises(CertificationError, match="only nearly so"):
        infeasible.certify_infeasible(feasible, np.ones(feasible.n_constraints))


def test_an_exact_midpoint_between_roundings_is_refused() -> None:
    # <A, M> = 1 with A = 2 e1 e1': alpha = 1/4, ||M|| = 1/2; scaled so that alpha = 257/2 at 8 bits is a tie.
    p = Problem([[[1.0, 0.0], [0.0, 0.0], [-1.5703125, 3.0]]], [[1.0, 0.0]], [1], [1.0, -1.0])
    proved = max_margin(p)
    with pytest.raises(CertificationError, match="exactly between two roundings"):
        proved.certify(bits=8)  # the second margin is 2.5703125 = 329/128: 9 bits, the last one set
    assert checker.check(p, reread(proved.certify(bits=9).to_json())) == "optimal"


@pytest.mark.parametrize("bits", [8, 20, 64])
def test_rounding_is_correct_and_unique(bits: int) -> None:
    rng = np.random.default_rng(bits)
    with ctx.workprec(bits + 100):
        cases = [arb(fmpq(int(a), int(b))) for a, b in rng.integers(1, 10**6, size=(200, 2))]
        cases += [arb(2) ** k + s * arb(2) ** (k - bits - 5) for k in (-3, 0, 5) for s in (-1, 1)]
        for x in cases:
            r = rounded(x, bits)
            assert r is not None
            assert r.mantissa.bit_length() == bits
            assert r.ball.contains(x)
            for m, e in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                assert not is_rounding(x, Rounded(r.mantissa + m, r.exponent + e), bits)
            half = [r.mantissa, r.exponent]
            assert checker._rounds_to(x, half, bits, "x")
        wide = arb(1, 2.0 ** (-bits))
        assert rounded(wide, bits) is None
    assert rounded(arb(0), bits) is None
    assert rounded(arb(-1), bits) is None


# -- alteration ---------------------------------------------------------------------------------------


def certificates() -> list[tuple[Problem, dict]]:
    """One of every kind: optimal with inactive constraints, full support, ties; infeasible; bound."""
    cases = [load("digits:3v5,n=2,patch=4"), load("gaussian:n=2,T=3,d=40")]
    first = cases[1]
    stacked = (np.concatenate([a, a]) for a in (first.tokens, first.queries, first.labels))
    cases.append(Problem(*stacked, first.decoder))
    found = [(p, reread(max_margin(p).certify().to_json())) for p in cases]
    for p in (draw(0, n=20, T=4, d=3), Problem(*(np.concatenate(x) for x in _twins(first)), first.decoder)):
        with pytest.raises(InfeasibleError) as caught:
            max_margin(p)
        found.append((p, reread(caught.value.certificate.to_json())))
    near = draw(0, n=20, T=4, d=3)
    weights = max_margin_beta(near)
    weights[np.argmax(weights)] *= 1 + 1e-12
    found.append((near, reread(infeasible.bound(near, weights).to_json())))
    spanned = infeasible.spanned(near, [int(k) for k in np.flatnonzero(weights)])
    assert spanned is not None
    found.append((near, reread(spanned.to_json())))
    assert [c["kind"] for _, c in found] == ["optimal"] * 3 + ["infeasible"] * 2 + ["bound", "spanned"]
    return found


def _twins(p: Problem) -> tuple:
    return (p.tokens, p.tokens), (p.queries, -p.queries), (p.labels, p.labels)


def max_margin_beta(p: Problem) -> np.ndarray:
    with pytest.raises(InfeasibleError) as caught:
        max_margin(p)
    return np.array(caught.value.beta)


def numbers(content, path=()) -> list[tuple]:
    """Where the numbers are: paths to every integer leaf."""
    if isinstance(content, bool) or content is None or isinstance(content, str):
        return []
    if isinstance(content, int):
        return [path]
    items = content.items() if isinstance(content, dict) else enumerate(content)
    return [found for key, value in items for found in numbers(value, (*path, key))]


def alter(value: int, rng: np.random.Generator) -> int:
    """Another number: the neighbour, a flipped digit or sign, another size, or anything."""
    digits = list(str(abs(value)))
    spot = int(rng.integers(len(digits)))
    digits[spot] = str((int(digits[spot]) + int(rng.integers(1, 10))) % 10)
    options = [
        value + 1,
        value - 1,
        -value,
        0,
        2 * value,
        value // 2,
        int("".join(digits)),
        int(rng.integers(2**60)),
    ]
    options = [option for option in options if option != value]
    return options[int(rng.integers(len(options)))]


def put(content, path: tuple, value) -> dict:
    changed = copy.deepcopy(content)
    spot = changed
    for key in path[:-1]:
        spot = spot[key]
    spot[path[-1]] = value
    return changed


def test_500_random_alterations_of_a_number_are_all_rejected() -> None:
    cases = certificates()
    rng = np.random.default_rng(20240205)
    for p, content in cases:
        assert checker.check(p, content) == content["kind"]
    for trial in range(500):
        p, content = cases[trial % len(cases)]
        paths = numbers(content)
        path = paths[int(rng.integers(len(paths)))]
        old = content
        for key in path:
            old = old[key]
        new = alter(old, rng)
        print(f"trial {trial}: {content['kind']} {path} {old} -> {new}")
        with pytest.raises(CertificationError):
            checker.check(p, put(content, path, new))


def test_every_other_alteration_is_rejected() -> None:
    for p, content in certificates():
        for key in content:
            with pytest.raises(CertificationError):
                checker.check(p, {k: v for k, v in content.items() if k != key})
            for junk in (None, "x", [], {}, 1.5, 7, True, False):
                if junk is content[key]:
                    continue
                with pytest.raises(CertificationError):
                    checker.check(p, content | {key: junk})
        with pytest.raises(CertificationError, match="wrong fields"):
            checker.check(p, content | {"note": 1})
        for path in numbers(content):
            for junk in (None, "1", 1.0, True, []):
                with pytest.raises(CertificationError):
                    checker.check(p, put(content, path, junk))
        if content["kind"] == "optimal":
            for k, row in enumerate(content["constraints"]):
                for status in {"support", "active", "inactive"} - {row["status"]}:
                    with pytest.raises(CertificationError):
                        checker.check(p, put(content, ("constraints", k, "status"), status))
            for claim in {"holds", "fails", "unknown"} - {content["full_support"]}:
                with pytest.raises(CertificationError, match="full support"):
                    checker.check(p, content | {"full_support": claim})
            with pytest.raises(CertificationError, match="independence"):
                checker.check(p, content | {"independent": not content["independent"]})


def test_a_certificate_does_not_fit_another_problem() -> None:
    p = load("gaussian", 0)
    content = max_margin(p).certify().to_json()
    tokens = np.array(p.tokens)
    largest = int(np.argmax(tokens[0, 0]))
    tokens[0, 0, largest] = np.nextafter(tokens[0, 0, largest], 1)
    other = Problem(tokens, p.queries, p.labels, p.decoder)
    with pytest.raises(CertificationError, match="another problem"):
        checker.check(other, reread(content))
    with pytest.raises(CertificationError, match="is not the stated number"):
        checker.check(other, reread(content) | {"problem": other.hash})


def test_the_checker_imports_nothing_of_the_solver() -> None:
    tree = ast.parse(Path(checker.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    ours = {name for name in imported if name and name.startswith("numerics")}
    assert ours == {"numerics.errors", "numerics.files", "numerics.problem"}


def test_files_and_the_checkers_exit_codes(tmp_path) -> None:
    p = load("gaussian")
    p.save(tmp_path / "p.npz")
    proved = max_margin(p).certify()
    proved.save(tmp_path / "c.json")
    (tmp_path / "text.json").write_text("not json")
    wrong = put(proved.to_json(), ("norm", 0), proved.norm.mantissa + 1)
    certificate.write_json(tmp_path / "wrong.json", wrong)
    for problem, file, code, message in (
        ("p.npz", "c.json", 0, "verified: optimal"),
        ("p.npz", "wrong.json", 1, "certificate rejected: norm is not the stated number"),
        ("p.npz", "text.json", 2, "is not JSON"),
        ("p.npz", "none.json", 2, "No such file"),
        ("c.json", "c.json", 2, "is not an .npz file"),
    ):
        command = [sys.executable, "-m", "numerics.maxmargin.checker", tmp_path / problem, tmp_path / file]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert message in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    assert checker.main([]) == 2


# -- infeasible ---------------------------------------------------------------------------------------


def test_200_random_infeasible_problems_have_certificates_that_check() -> None:
    found = 0
    for seed in itertools.count():
        rng = np.random.default_rng([seed, 2])
        n, T, d = (int(rng.integers(low, high)) for low, high in ((2, 40), (2, 7), (2, 7)))
        p = draw(seed, n, T, d)
        (outcome,) = max_margins([p])
        if isinstance(outcome, InfeasibleError):
            assert checker.check(p, reread(outcome.certificate.to_json())) == "infeasible", f"seed {seed}"
            gap = np.linalg.norm(p.combine(outcome.beta))
            assert gap <= 1e-13 * p.constraint_norms.max(), f"seed {seed}"
            found += 1
        else:
            assert outcome.margins.min() > 1 - 1e-9, f"seed {seed}: neither solved nor infeasible"
        if found == 200:
            break


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1e-4, 1e-7, 1e-10, 1e-13])
def test_nearly_infeasible_is_not_infeasible(seed: int, size: float) -> None:
    p = load("gaussian:n=3,T=3,d=12", seed)
    clash = (
        np.concatenate([p.tokens, p.tokens]),
        np.concatenate([p.queries, -p.queries]),
        np.tile(p.labels, 2),
    )
    with pytest.raises(InfeasibleError) as caught:
        max_margin(Problem(*clash, p.decoder))
    assert set(caught.value.certificate.weights) == {1}
    assert len(caught.value.certificate.support) == 2
    rng = np.random.default_rng(seed)
    queries = clash[1] + size * rng.standard_normal(clash[1].shape)
    near = Problem(clash[0], queries, clash[2], p.decoder)
    solution = max_margin(near)
    assert solution.margin / near.constraint_norms.max() < 10 * size
    proved = solution.certify()
    assert checker.check(near, reread(proved.to_json())) == "optimal"
    np.testing.assert_allclose(float(proved.norm), solution.norm, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_spanning_sets_prove_what_rationals_prove(seed: int) -> None:
    p = draw(seed, n=25, T=4, d=3)
    with pytest.raises(InfeasibleError) as caught:
        max_margin(p)
    exactly = caught.value.certificate
    by_balls = infeasible.spanned(p, exactly.support)
    assert by_balls is not None
    assert by_balls.support == exactly.support
    for w, ball in zip(exactly.weights, by_balls.weights, strict=True):
        with ctx.workprec(200):
            assert ball.ball.contains(arb(fmpq(w, exactly.weights[0])))
    assert infeasible.spanned(p, exactly.support[1:]) is None  # one fewer spans no more
    feasible = load("gaussian", seed)
    assert infeasible.spanned(feasible, list(range(feasible.n_constraints))) is None


@pytest.mark.parametrize("seed", range(5))
def test_problems_too_large_for_rationals_are_still_proved_infeasible(seed: int, monkeypatch) -> None:
    p = draw(seed, n=150, T=5, d=9)
    monkeypatch.setattr(exact, "SIZE_LIMIT", 20)
    with pytest.raises(InfeasibleError) as caught:
        max_margin(p)
    proved = caught.value.certificate
    assert (proved.kind, len(proved.support)) == ("spanned", 82)
    assert checker.check(p, reread(proved.to_json())) == "spanned"


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_hundreds_of_clashing_constraints(seed: int) -> None:
    p = draw(seed, n=500, T=5, d=22)
    with pytest.raises(InfeasibleError) as caught:
        max_margin(p)
    assert checker.check(p, reread(caught.value.certificate.to_json())) == "spanned"


def _stall(solve):
    """A float method that loses its way halfway to the solution."""

    def stalled(units, progress=None):
        full = solve(units, progress)
        half = full.support[::2]
        raise active_set.StalledError("for the test", half, np.ones(half.size))

    return stalled


@pytest.mark.parametrize("spec", ["digits:3v5,n=4", "gaussian:n=3,T=3,d=60"])
def test_long_floats_take_over_where_floats_stall(spec: str, monkeypatch) -> None:
    p = load(spec)
    right = max_margin(p)
    monkeypatch.setattr(fast, "solve_units", _stall(fast.solve_units))
    recovered = max_margin(p)
    assert recovered.solver == "long-floats"
    np.testing.assert_allclose(recovered.dual, right.dual, rtol=1e-10)
    assert recovered.residual < 1e-13
    monkeypatch.setattr(exact, "LONG", exact.Arithmetic(bits=16))  # too short: rationals settle it
    recovered = max_margin(p)
    np.testing.assert_allclose(recovered.dual, right.dual, rtol=1e-10)


@pytest.mark.parametrize("exponent", [20, 60, 100])
def test_precision_is_raised_as_far_as_needed(exponent: int, monkeypatch) -> None:
    tiny = 2.0**-exponent
    queries = np.random.default_rng(exponent).standard_normal((6, 8))
    queries[1] = -queries[0]
    queries[:, 7] = 0.0
    queries[1, 7] = tiny  # ||M|| is about 2^exponent
    tokens = np.zeros((6, 2, 8))
    tokens[:, 0, :2] = 1.0, 0.3
    p = Problem(tokens, queries, np.ones(6), np.eye(8)[0])
    solution = max_margin(p)
    assert exponent - 1 < np.log2(solution.norm) < exponent + 3
    monkeypatch.setattr(exact, "SIZE_LIMIT", 0)
    proved = solution.certify()  # K has condition number 4^exponent
    assert checker.check(p, reread(proved.to_json())) == "optimal"
    monkeypatch.setattr(certificate, "PRECISION_LIMIT", 129)
    if exponent == 100:
        with pytest.raises(CertificationError, match="not certified at 129 bits"):
            solution.certify()


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_for_the_true_solution(seed: int) -> None:
    p = load("digits:3v5,n=4", seed)
    solution = max_margin(p)
    rng = np.random.default_rng(seed)
    for weights in (rng.random(p.n_constraints), np.array(solution.dual)):
        content = infeasible.bound(p, weights)
        assert checker.check(p, reread(content.to_json())) == "bound"
        assert float(content.norm_at_least) <= solution.norm * (1 + 1e-14)
    assert float(content.norm_at_least) > solution.norm * (1 - 1e-9)  # the optimal dual's bound is tight


def test_what_is_too_large_for_rationals_gets_a_bound(monkeypatch) -> None:
    p = draw(0, n=30, T=4, d=3)
    monkeypatch.setattr(exact, "SIZE_LIMIT", 4)
    with pytest.raises(InfeasibleError, match="cancel with weights") as caught:
        max_margin(p)
    assert caught.value.certificate.kind == "spanned"
    monkeypatch.setattr(infeasible, "spanned", lambda *_: None)
    with pytest.raises(InfeasibleError, match="proved for every W of norm below") as caught:
        max_margin(p)
    proved = caught.value.certificate
    assert checker.check(p, reread(proved.to_json())) == "bound"
    assert float(proved.norm_at_least) * p.constraint_norms.max() > 1e8


@pytest.mark.parametrize("size", [200])
def test_200_constraints_are_certified_in_time(size: int) -> None:
    import time

    p = load("gaussian:n=22,T=10,d=400")
    assert p.n_constraints >= size - 2
    start = time.perf_counter()
    max_margin(p).certify()
    assert time.perf_counter() - start < 5
