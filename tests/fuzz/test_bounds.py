"""Memory and time: what would take too much is refused up front, with the number; pipes and devices too."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import numpy as np
import pytest

from numerics import InputError, _room
from numerics._npz import read_arrays
from numerics._record import record_steps
from numerics.files import read_json
from tests.fuzz.mutations import zip_bomb

SMALL = ("--rule", "ngd", "--step", "0.1", "--steps", "3")


def refused(result, *words: str) -> None:
    assert result.code == 2, result
    assert result.out == ""
    (line,) = result.err.splitlines()
    assert line.startswith("attnrates: ")
    for word in words:
        assert word in line


def test_an_archive_that_inflates_beyond_memory_is_refused_unread(attnrates, tmp_path, monkeypatch):
    size = 1 << 28
    zip_bomb(tmp_path / "bomb.npz", size)
    assert (tmp_path / "bomb.npz").stat().st_size < size // 500
    monkeypatch.setattr(_room, "free_memory", lambda: 1 << 27)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = attnrates("train", "--data", tmp_path / "bomb.npz", *SMALL, "--out", tmp_path / "out")
    refused(result, "needs about", "GB", "are available")
    assert 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 1 << 26
    assert not (tmp_path / "out").exists()


def test_the_same_archive_is_read_where_there_is_room(tmp_path):
    zip_bomb(tmp_path / "zeros.npz", 1 << 24)
    np.testing.assert_array_equal(read_arrays(tmp_path / "zeros.npz")["tokens"], np.zeros(1 << 21))


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/null", "pipe"])
@pytest.mark.parametrize(
    "command",
    [
        ("train", "--data", "{}", *SMALL, "--out", "out"),
        ("sweep", "{}", "--out", "out"),
        ("finetune", "--data", "{}", "--out", "out"),
        ("survey", "--out", "{}/x.csv"),
        ("check", "{}"),
    ],
    ids=lambda command: command[0],
)
def test_devices_and_pipes_are_refused_at_once(attnrates, tmp_path, monkeypatch, place, command):
    monkeypatch.chdir(tmp_path)
    if place == "pipe":
        os.mkfifo(tmp_path / "pipe")
    began = time.perf_counter()
    refused(attnrates(*(part.format(place) for part in command)))
    assert time.perf_counter() - began < 30
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("train", "--data", "gaussian:n=100000,T=1000", *SMALL), "needs about"),
        (("train", "--data", "gaussian:d=100000000000", *SMALL), "needs about"),
        (("train", "--data", "gaussian:n=2,T=2,d=100000", *SMALL), "needs about"),
        (("train", "--data", "gaussian:n=2,T=2,d=4", *SMALL[:-1], str(10**17)), "at most 2^53"),
        (("train", "--data", "gaussian", *SMALL, "--seeds", str(10**12)), "at most 1000000"),
        (("survey", "--n", "100000", "--tokens", "100"), "needs about"),
        (("survey", "--problems", str(10**9)), "at most 1000000"),
        (("survey", "--d", str(10**400)), "up to 10^15"),
        (("survey", "--n", "4,x"), "numbers separated by commas"),
        (("gaussian", "--n", "3", "--tokens", str(10**400)), "up to 10^15"),
        (("gaussian", "--n", "3", "--tokens", "3", "--d", str(10**400)), "up to 10^30"),
        (("gaussian", "--n", str(10**12), "--tokens", str(10**9)), "no dimension up to"),
        (("gaussian", "--n", "3", "--tokens", "3", "--simulate", str(10**9)), "at most 1000000"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else "",
)
def test_absurd_sizes_are_refused_with_the_number(attnrates, tmp_path, arguments, reason):
    out = () if arguments[0] == "gaussian" else ("--out", tmp_path / "out")
    began = time.perf_counter()
    refused(attnrates(*arguments, *out), reason)
    assert time.perf_counter() - began < 30
    assert list(tmp_path.iterdir()) == []


def test_recording_every_step_of_a_run_too_long_is_refused():
    with pytest.raises(InputError, match=r"recording 1000000000001 steps needs about .* GB"):
        record_steps("all", 10**12)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not JSON"),
        (b'{"a": 1', "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b" " * 2000, "at most 1000"),
    ],
    ids=["deep", "twice", "nan", "huge", "cut", "bytes", "long"],
)
def test_json_within_bounds(tmp_path: Path, content: bytes, reason: str):
    (tmp_path / "file.json").write_bytes(content)
    limit = 1000 if b" " * 1500 in content else 1 << 20
    with pytest.raises(InputError, match=reason) as caught:
        read_json(tmp_path / "file.json", limit=limit)
    assert "file.json" in str(caught.value)
