"""Compiled code on disk: dropped when any compiled file's source is another one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import numerics._gram_cache as cache
from numerics._gram_lanes import advance


def test_entries_of_other_sources_are_dropped_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = SimpleNamespace(stats=SimpleNamespace(cache_path=str(tmp_path)))
    ours = [tmp_path / "_gram_lanes.advance-1.py311.nbi", tmp_path / "_joint_compiled.advance-1.1.nbc"]
    others = [tmp_path / "_gram_lanes.cpython-311.pyc", tmp_path / "own.step-1.py311.nbi"]

    def made() -> list[bool]:
        for path in (*ours, *others):
            path.write_bytes(b"code")
        cache.drop_stale(function)
        return [path.exists() for path in (*ours, *others)]

    assert made() == [False, False, True, True]  # of unknown origin
    assert made() == [True, True, True, True]  # of this source
    monkeypatch.setattr(cache, "_digest", lambda: "another source")
    assert made() == [False, False, True, True]
    assert made() == [True, True, True, True]


def test_the_stamp_stands_where_numba_keeps_the_code() -> None:
    folder = Path(advance.stats.cache_path)
    assert (folder / cache._STAMP).read_text() == cache._digest()


def test_without_a_cache_there_is_nothing_to_do() -> None:
    cache.drop_stale(SimpleNamespace(stats=SimpleNamespace(cache_path=None)))
