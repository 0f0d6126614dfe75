"""The problem: derived quantities against their definitions, files, and every bad input."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from numerics.errors import InputError
from numerics.problem import Problem


def draw(seed: int, n: int = 4, T: int = 5, d: int = 6, ragged: bool = True) -> Problem:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    mask = np.arange(T) < rng.integers(2, T + 1, size=n)[:, None] if ragged else None
    return Problem(
        rng.standard_normal((n, T, d)),
        rng.standard_normal((n, d)),
        rng.choice([-1.0, 1.0], size=n),
        rng.standard_normal(d),
        mask,
    )


def explicit_constraints(p: Problem) -> np.ndarray:
    """The A_k of the definition, one by one."""
    A = []
    for i in range(p.n):
        valid = np.flatnonzero(p.mask[i])
        scores = [p.labels[i] * float(p.tokens[i, t] @ p.decoder) for t in valid]
        best = valid[int(np.argmax(scores))]
        A += [np.outer(p.tokens[i, best] - p.tokens[i, t], p.queries[i]) for t in valid if t != best]
    return np.array(A)


@pytest.mark.parametrize("seed", range(5))
def test_everything_follows_from_the_definition(seed: int) -> None:
    p = draw(seed)
    A = explicit_constraints(p)
    flat = A.reshape(len(A), -1)
    assert p.n_constraints == len(A) == (p.lengths - 1).sum()
    np.testing.assert_allclose(p.gram(), flat @ flat.T, rtol=1e-12, atol=1e-12)
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, len(A), 7), rng.integers(0, len(A), 3)
    np.testing.assert_allclose(p.gram_block(rows, columns), (flat @ flat.T)[rows][:, columns], atol=1e-12)
    np.testing.assert_allclose(p.constraint_norms, np.linalg.norm(flat, axis=1), rtol=1e-12)
    W, c = rng.standard_normal((p.d, p.d)), rng.standard_normal(len(A))
    np.testing.assert_allclose(p.logit_gaps(W), flat @ W.ravel(), atol=1e-12)
    np.testing.assert_allclose(p.combine(c), np.tensordot(c, A, 1), atol=1e-12)
    i, tau = p.constraint_sequence, p.constraint_token
    np.testing.assert_allclose(p.score_gaps, p.scores[i, p.optimal[i]] - p.scores[i, tau], atol=1e-14)
    assert (p.score_gaps > 0).all()
    assert (np.lexsort((tau, i)) == np.arange(len(A))).all()
    assert np.isneginf(p.scores[~p.mask]).all()


@pytest.mark.parametrize("seed", range(3))
def test_padding_does_not_matter(seed: int) -> None:
    p = draw(seed)
    tokens = np.concatenate([p.tokens, np.full((p.n, 2, p.d), np.nan)], axis=1)
    tokens[:, : p.T][~p.mask] = np.inf
    mask = np.concatenate([p.mask, np.zeros((p.n, 2), dtype=bool)], axis=1)
    padded = Problem(tokens, p.queries, p.labels, p.decoder, mask)
    np.testing.assert_array_equal(padded.gram(), p.gram())
    np.testing.assert_array_equal(padded.optimal, p.optimal)
    np.testing.assert_array_equal(padded.differences, p.differences)


def test_default_query_is_the_first_valid_token() -> None:
    tokens = np.random.default_rng(0).standard_normal((2, 3, 4))
    mask = np.array([[True, True, True], [False, True, True]])
    p = Problem(tokens, None, [1, -1], np.ones(4), mask)
    np.testing.assert_array_equal(p.queries, tokens[[0, 1], [0, 1]])


def test_torch_and_lists_give_the_same_problem() -> None:
    torch = pytest.importorskip("torch")
    p = draw(0)
    arrays = (p.tokens, p.queries, p.labels, p.decoder, p.mask)
    tensors = [torch.tensor(a, requires_grad=a.dtype == float) for a in arrays]
    assert Problem(*tensors) == p == Problem(*(a.tolist() for a in arrays))
    half = torch.ones(1, 2, 3, dtype=torch.bfloat16) * torch.tensor([[[1.0], [2.0]]], dtype=torch.bfloat16)
    assert Problem(half, None, [1], [1, 1, 1]).optimal[0] == 1


def test_arrays_are_copies_and_read_only() -> None:
    p = draw(0)
    tokens = np.array(p.tokens)
    q = Problem(tokens, p.queries, p.labels, p.decoder, p.mask)
    tokens[:] = 0.0
    assert q == p
    for array in (q.tokens, q.queries, q.scores, q.differences, q.score_gaps, q.lengths, q.constraint_norms):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_hash_sees_every_array_and_shape() -> None:
    p = draw(0, ragged=False)
    arrays = [p.tokens, p.queries, p.labels, p.decoder, p.mask]
    seen = {p.hash}
    for k, index in ((0, (1, 2, 3)), (1, (1, 1)), (3, (2,))):
        changed = [np.array(a) for a in arrays]
        changed[k][index] = np.nextafter(changed[k][index], np.inf)
        seen.add(Problem(*changed).hash)
    flipped = [np.array(a) for a in arrays]
    flipped[2][0] *= -1
    seen.add(Problem(*flipped).hash)
    shorter = [np.array(a) for a in arrays]
    shorter[4][0, (p.optimal[0] + 1) % p.T] = False
    seen.add(Problem(*shorter).hash)
    assert len(seen) == 6


def test_optimal_tokens_are_exact_where_floats_err() -> None:
    # In floats 1 + 2^-60 rounds to 1: both tokens seem to score the same, and only the second is optimal.
    tokens = [[[1.0, 0.0], [1.0, 2.0**-60], [0.0, 0.0]]]
    p = Problem(tokens, None, [1], [1.0, 1.0])
    assert p.optimal[0] == 1
    assert p.score_gaps[0] == 2.0**-60
    # Cancellation loses the 1 of the first token in floats.
    big = [[[1e17, 1.0, -1e17], [0.5, 0.0, 0.0]]]
    p = Problem(big, None, [1], [1.0, 1.0, 1.0])
    assert p.optimal[0] == 0
    assert p.score_gaps[0] == 0.5


def test_tiny_numbers_do_not_escape_the_tie_check() -> None:
    with pytest.raises(InputError, match="sequence 0: tokens 0, 1 tie"):
        Problem([[[3e-200, 1e-200], [1e-200, 3e-200]]], None, [1], [1.0, 1.0])


def bad_inputs() -> dict[str, tuple[dict, str]]:
    nan, inf, far = np.ones((2, 3, 4)), np.ones((2, 4)), np.ones((2, 3, 4))
    nan[1, 2, 3] = np.nan
    inf[1, 0] = -np.inf
    far[0, 1] = 1e160
    none = np.ones((2, 3), dtype=bool)
    none[1] = False
    tied = np.zeros((2, 3, 4))
    tied[0, 0] = tied[1, 1] = tied[1, 2] = 1
    return {
        "nan": ({"tokens": nan}, r"tokens\[1, 2, 3\] is nan"),
        "infinite query": ({"queries": inf}, r"queries\[1, 0\] is -inf"),
        "nan decoder": ({"decoder": [1, 1, np.nan, 1]}, r"decoder\[2\] is nan"),
        "two axes": ({"tokens": np.ones((2, 3))}, r"shape \(n, T, d\), not \(2, 3\)"),
        "no sequence": ({"tokens": np.ones((0, 3, 4))}, "n = 0"),
        "no number": ({"tokens": np.ones((2, 0, 4))}, "holds no number"),
        "queries' shape": ({"queries": np.ones((2, 5))}, r"queries must have shape \(2, 4\).*\(2, 5\)"),
        "labels' shape": ({"labels": [1]}, r"labels must have shape \(2,\)"),
        "decoder's shape": ({"decoder": [1, 1]}, r"decoder must have shape \(4,\)"),
        "mask's shape": ({"mask": np.ones((2, 4), dtype=bool)}, r"mask must have shape \(2, 3\)"),
        "mask's values": ({"mask": np.full((2, 3), 2)}, "mask must hold booleans"),
        "label zero": ({"labels": [1, 0]}, r"labels\[1\] is 0"),
        "label nan": ({"labels": [np.nan, 1]}, r"labels\[0\] is nan"),
        "labels text": ({"labels": ["a", "b"]}, "labels must hold real numbers"),
        "complex": ({"tokens": np.ones((2, 3, 4)) * 1j}, "tokens must hold real numbers"),
        "objects": ({"tokens": np.full((2, 3, 4), None)}, "tokens must hold real numbers"),
        "ragged list": ({"tokens": [[[1.0]], [[1.0], [2.0]]]}, "tokens is not an array"),
        "no valid token": ({"mask": none}, "sequence 1 has no valid token"),
        "tie": ({"tokens": tied}, "sequence 1: tokens 1, 2 tie"),
        "too large": ({"tokens": far}, "overflow"),
    }


@pytest.mark.parametrize("name", bad_inputs())
def test_bad_input_is_named(name: str) -> None:
    good = np.zeros((2, 3, 4))
    good[:, 1] = 1.0
    arguments = {
        "tokens": good,
        "queries": np.ones((2, 4)),
        "labels": [1, 1],
        "decoder": [1, 1, 1, 1],
        "mask": None,
    }
    Problem(**arguments)
    changes, message = bad_inputs()[name]
    with pytest.raises(InputError, match=message) as caught:
        Problem(**(arguments | changes))
    assert "\n" not in str(caught.value)


def test_sequences_of_one_token_are_allowed_and_said() -> None:
    mask = np.array([[True, False], [True, True]])
    p = Problem([[[1.0], [9.0]], [[1.0], [2.0]]], None, [1, 1], [1.0], mask)
    assert p.n_constraints == 1
    assert p.notes == ("sequence 0 has one token and contributes no constraint",)
    lone = Problem([[[1.0]]], None, [1], [1.0])
    assert lone.n_constraints == 0
    assert lone.gram().shape == (0, 0)
    assert "N = 0" in lone.notes[-1]


@pytest.mark.parametrize("seed", range(3))
def test_files_round_trip_bitwise(seed: int, tmp_path) -> None:
    p = draw(seed)
    path = tmp_path / "p.npz"
    p.save(path)
    q = Problem.load(path)
    assert q == p
    for name in ("tokens", "queries", "labels", "decoder", "mask", "scores", "optimal"):
        assert getattr(q, name).tobytes() == getattr(p, name).tobytes()
    first = path.read_bytes()
    q.save(path)
    assert path.read_bytes() == first
    assert [f.name for f in tmp_path.iterdir()] == ["p.npz"]


def test_a_users_own_file_loads(tmp_path) -> None:
    p = draw(0, ragged=False)
    np.savez(tmp_path / "mine.npz", tokens=p.tokens, labels=p.labels.astype(int), decoder=p.decoder)
    mine = Problem.load(tmp_path / "mine.npz")
    np.testing.assert_array_equal(mine.queries, p.tokens[:, 0])


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch) -> None:
    path = tmp_path / "p.npz"
    draw(0).save(path)
    before = path.read_bytes()

    def fail(stream, **_):
        stream.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        draw(1).save(path)
    assert path.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["p.npz"]


def saved(tmp_path) -> dict[str, np.ndarray]:
    draw(0).save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as data:
        return dict(data)


@pytest.mark.parametrize(
    "array", ["tokens", "queries", "labels", "decoder", "mask", "hash", "version", "format"]
)
def test_altered_files_are_refused(array: str, tmp_path) -> None:
    data = saved(tmp_path)
    value = np.array(data[array])
    if array == "labels":
        value[0] *= -1
    elif array == "mask":
        value[np.unravel_index(np.flatnonzero(value)[-1], value.shape)] = False
    elif value.dtype.kind == "f":
        value.flat[0] = np.nextafter(value.flat[0], np.inf)
    else:
        value = np.array({"hash": "0" * 64, "version": 2, "format": "other"}[array])
    path = tmp_path / "altered.npz"
    np.savez(path, **(data | {array: value}))
    with pytest.raises(InputError, match=r"altered\.npz: .*(altered|version 2|not a problem file)"):
        Problem.load(path)
    without = {key: stored for key, stored in data.items() if key != array}
    np.savez(path, **without)
    with pytest.raises(InputError, match=r"altered\.npz: "):
        Problem.load(path)


def test_foreign_files_are_refused(tmp_path) -> None:
    good = tmp_path / "good.npz"
    draw(0).save(good)
    content = good.read_bytes()
    cases = {
        "missing.npz": None,
        "folder.npz": "folder",
        "empty.npz": b"",
        "truncated.npz": content[: len(content) // 2],
        "no_end.npz": content[:-30],
        "flipped.npz": content[:200] + bytes([content[200] ^ 255]) + content[201:],
        "pickle.npz": pickle.dumps({"tokens": 1}),
        "text.npz": b"tokens,labels\n1,2\n",
        "zip.npz": "zip",
        "digits.npz": "digits",
        "extra.npz": "extra",
        "object.npz": "object",
        "nan.npz": "nan",
    }
    p = draw(0)
    for name, what in cases.items():
        path = tmp_path / name
        if isinstance(what, bytes):
            path.write_bytes(what)
        elif what == "folder":
            path.mkdir()
        elif what == "zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("tokens", "hello")
        elif what == "digits":
            np.savez(path, X=np.ones((3, 3)), y=np.ones(3))
        elif what == "extra":
            np.savez(path, tokens=p.tokens, labels=p.labels, decoder=p.decoder, masks=p.mask)
        elif what == "object":
            np.savez(
                path, tokens=np.array([p.tokens, None], dtype=object), labels=p.labels, decoder=p.decoder
            )
        elif what == "nan":
            np.savez(path, tokens=p.tokens * np.nan, labels=p.labels, decoder=p.decoder)
        with pytest.raises(InputError) as caught:
            Problem.load(path)
        assert str(path) in str(caught.value), name
        assert "\n" not in str(caught.value), name


def test_importing_numerics_is_light() -> None:
    heavy = ("torch", "cvxpy", "numba", "pandas", "matplotlib", "sklearn")
    code = f"import sys, numerics.problem, numerics.errors; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
