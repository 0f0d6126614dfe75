"""Many cases of a target; `python -m tests.fuzz.campaign TARGET FIRST COUNT` says what is wrong."""

from __future__ import annotations

import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.harness import faults
from tests.fuzz.targets import TARGETS, Stock, stubs

MEMORY = 1 << 30  # bytes that a target may take beyond what it starts with


def fuzz(name: str, seeds: range, stock: Stock, folder: Path) -> dict[str, list[str]]:
    """Make the cases of these seeds; give the faults by case. Case and seed determine all that is done."""
    found = {}
    home = Path.cwd()
    for seed in seeds:
        rng = random.Random(f"{name} {seed}")
        place = folder / f"{seed}"
        place.mkdir()
        os.chdir(place)
        try:
            call = TARGETS[name](rng, place, stock)
            wrong = faults(call, place)
        finally:
            os.chdir(home)
        if wrong:
            arguments = " ".join(ascii(argument)[:200] for argument in call.arguments)
            found[f"{name} {seed}"] = [call.about, arguments, *wrong]
        else:
            shutil.rmtree(place)
    return found


def run(name: str, seeds: range, stock: Stock, folder: Path) -> None:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    with stubs():
        found = fuzz(name, seeds, stock, folder)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    seconds = time.perf_counter() - began
    print(
        f"{name}: seeds {seeds.start} to {seeds.stop - 1}, {seconds:.1f} s, {grown / 1e6:.0f} MB more at most"
    )
    lines = [f"\n--- {case}\n" + "\n".join(wrong) for case, wrong in found.items()]
    kinds = Counter(line for wrong in found.values() for line in wrong[2:-1])
    assert not found, f"{len(found)} of {len(seeds)} cases; {kinds}" + "".join(lines[:30])
    assert grown < MEMORY


def main(name: str, first: str, count: str) -> None:
    """Run one target, or all."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "stock").mkdir()
        stock = Stock.make(Path(folder) / "stock")
        for target in TARGETS if name == "all" else [name]:
            (Path(folder) / target).mkdir()
            try:
                run(target, range(int(first), int(first) + int(count)), stock, Path(folder) / target)
            except AssertionError as error:
                print(f"{target}: {error}")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
