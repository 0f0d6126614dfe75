"""The hash of the code changes with any source file and with nothing else."""

import sys

from paper_figs.provenance import source_hash


def test_the_hash_follows_names_and_contents(tmp_path, monkeypatch):
    package = tmp_path / "some_package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "data.json").write_text("1")
    monkeypatch.syspath_prepend(tmp_path)

    def value():
        source_hash.cache_clear()
        sys.modules.pop("some_package", None)
        return source_hash("some_package")

    first = value()
    assert value() == first
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").write_bytes(b"compiled")
    assert value() == first
    (package / "inner" / "data.json").write_text("2")
    second = value()
    assert second != first
    (package / "inner" / "data.json").rename(package / "inner" / "other.json")
    assert value() not in (first, second)
    source_hash.cache_clear()
