"""Sweeps on real clusters of processes: whatever is killed, nothing finished is lost or corrupt."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import cloudpickle
import distributed
import numpy as np
import pandas as pd
import psutil
import pytest

from attnrates.sweep import apart
from attnrates.sweep import cell as work
from attnrates.sweep import cluster as cluster_module
from attnrates.sweep import grid as grids
from attnrates.sweep.grid import Cell
from attnrates.sweep.store import DamagedError, Store
from numerics import NormalizedGD, train
from numerics.datasets import load
from numerics.errors import InputError
from paper_figs.runs import Setting

ROOT = Path(__file__).parents[2]
GRID = """
data = ["gaussian:n=3,T=3,d=40", "gaussian:n=2,T=4,d=30"]
seeds = {seeds}
steps = {steps}
check = {check}
[[rules]]
rule = "ngd"
step = [0.05, 0.1]
[[rules]]
rule = "polyak"
"""


def grid(folder, *, seeds=2, steps=60, check="false", name="grid.toml"):
    path = folder / name
    path.write_text(GRID.format(seeds=seeds, steps=steps, check=check), encoding="utf-8")
    return path


def start(*arguments, before="", **environment):
    """Run the command in a process of its own, as a user does; the code `before` is run before it."""
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += before + "from attnrates.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "sweep", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def sweep(*arguments, seconds=540, before="", **environment):
    process = start(*arguments, before=before, **environment)
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def content(folder):
    """The bytes of every file of the data set."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.parquet")}


def wait_for(condition, seconds=240.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def workers_of(process):
    """The worker processes of a sweep: those that Dask started to compute, not those that watch over them."""
    try:
        children = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    found = []
    for child in children:
        try:
            if any("spawn_main" in word for word in child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    path = grid(folder, check="true")
    return path, folder / "out", sweep(path, "--out", folder / "out", "--workers", 2)


def test_every_cell_is_there_with_the_numbers_of_a_run(undisturbed):
    path, out, (code, stdout, err) = undisturbed
    assert code == 0, err
    assert stdout.split() == [str(out / "history"), str(out / "verdicts")]
    assert "no bound is violated" in err
    frame = pd.read_parquet(out / "history")
    cells = frame.groupby(["data", "rule", "step_size", "seed"], dropna=False, observed=True)
    assert cells.ngroups == len(grids.read(path).cells) == 12
    data = "gaussian:n=2,T=4,d=30"
    run = train(load(data, seed=1), NormalizedGD(step=0.1), steps=60, space="gram", seed=1)
    own = frame[(frame["data"] == data) & (frame["rule"] == "ngd")]
    own = own[(own["step_size"] == 0.1) & (own["seed"] == 1)]
    for column in run.history:
        np.testing.assert_array_equal(own[column], run.history[column])


def test_verdicts_are_those_of_the_check(undisturbed):
    out = undisturbed[1]
    frame = pd.read_parquet(out / "verdicts")
    assert frame["holds"].dropna().all()
    assert frame["holds"].notna().sum() > 100
    assert (frame.loc[frame["holds"].notna(), "worst_ratio"] <= 1 + 1e-9).all()
    assert (frame.loc[frame["holds"].isna(), "unmet"] != "").any()


def test_a_file_names_where_it_comes_from(undisturbed):
    from pyarrow import parquet

    for path in (undisturbed[1] / "history").rglob("*.parquet"):
        about = json.loads(parquet.read_schema(path).metadata[b"attnrates"])
        assert about["code"] == work.code()
        manifest = about["manifest"]
        assert manifest["problem_hash"] == load(about["setting"]["data"], seed=about["setting"]["seed"]).hash
        assert {"rule", "seed", "device", "versions"} <= set(manifest)
        assert Cell(Setting(**about["setting"])).key == path.stem


def test_finished_cells_are_not_run_again_and_missing_ones_are(undisturbed, tmp_path):
    path, out, _ = undisturbed
    copy = tmp_path / "out"
    shutil.copytree(out, copy)
    files = sorted((copy / "history").rglob("*.parquet"))
    files[0].unlink()
    times = {file: file.stat().st_mtime_ns for file in files[1:]}
    code, _, err = sweep(path, "--out", copy, "--workers", 1)
    assert (code, "12 cells, 11 finished before" in err) == (0, True)
    assert {file: file.stat().st_mtime_ns for file in files[1:]} == times
    assert content(copy) == content(out)


def test_a_changed_grid_keeps_its_cells_and_mends_damage(undisturbed, tmp_path):
    """More seeds, a rule less; one cell's verdicts are gone, one's are damaged, one's history is cut."""
    path, out, _ = undisturbed
    copy = tmp_path / "out"
    shutil.copytree(out, copy)
    text = path.read_text(encoding="utf-8").replace("seeds = 2", "seeds = [1, 2]")
    changed = tmp_path / "changed.toml"
    changed.write_text(text.replace('[[rules]]\nrule = "polyak"\n', ""), encoding="utf-8")
    histories = sorted((copy / "history" / "rule=ngd").iterdir())
    seeds = [pd.read_parquet(file)["seed"].iloc[0] for file in histories]
    gone, damaged, cut, kept = [file for file, seed in zip(histories, seeds, strict=True) if seed == 1]
    _verdicts(gone).unlink()
    _spoil(_verdicts(damaged))
    cut.write_bytes(cut.read_bytes()[:-100])
    before = kept.stat().st_mtime_ns
    code, _, err = sweep(changed, "--out", copy, "--workers", 1)
    assert code == 0, err
    assert "8 cells, 1 finished before" in err
    assert f"8 other cells in {copy}, not in this grid: left as they are" in err
    assert "2 cells are run anew; the first: " in err
    assert "is damaged" in err
    assert kept.stat().st_mtime_ns == before
    found, known = content(copy), content(out)
    assert known.items() <= found.items()
    assert len(found) == len(known) + 2 * 4
    frame = pd.read_parquet(copy / "history")
    assert frame.groupby(["data", "rule", "step_size", "seed"], dropna=False, observed=True).ngroups == 16


def _verdicts(history):
    return history.parents[2] / "verdicts" / history.parent.name / history.name


def _spoil(file, place=None):
    content = bytearray(file.read_bytes())
    content[len(content) // 3 if place is None else place] ^= 0x10
    file.write_bytes(content)


def _known(store, cell):
    try:
        store.violated(cell, check=True)
    except DamagedError:
        return True
    return False


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_file_is_known_wherever_it_is(tmp_path, seed):
    """Whichever bit is flipped: the cell is run anew, or what is read is unchanged."""
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    path = tmp_path / "grid.toml"
    path.write_text(toml(seeds="1", steps="30", data='"gaussian:n=2,T=2,d=5"'), encoding="utf-8")
    store = Store(tmp_path / "out")
    (cell,) = grids.read(path).cells
    store.add(cell, work.compute(cell.setting, check=True))
    assert store.violated(cell, check=True) == 0
    file = store.history(cell)
    whole, table = file.read_bytes(), pd.read_parquet(file)
    known = 0
    for place in rng.integers(len(whole), size=150):
        _spoil(file, place)
        if _known(store, cell):
            known += 1
        else:
            pd.testing.assert_frame_equal(pd.read_parquet(file), table, check_exact=True)
        file.write_bytes(whole)
    assert known > 75
    for text in (b"", b"PAR1", whole[:50], store.verdicts(cell).read_bytes() + b"x"):
        file.write_bytes(text)
        with pytest.raises(DamagedError):
            store.violated(cell, check=False)


def test_violated_bounds_are_those_of_the_grid(tmp_path, attnrates, monkeypatch):
    """Those of cells outside the grid were counted, too."""
    path = tmp_path / "grid.toml"
    path.write_text(toml(data='"gaussian:n=2,T=2,d=5"'), encoding="utf-8")
    store = Store(tmp_path / "out")
    store.begin()
    first, second = grids.read(path).cells
    store.add(first, work.compute(first.setting, check=True))
    rows = [
        {"theorem": f"t{i}", "holds": i > 2, "worst_ratio": 2.0, "worst_step": 1, "unmet": ""}
        for i in range(9)
    ]
    monkeypatch.setattr(work, "_verdicts", lambda run: rows)
    store.add(second, work.compute(second.setting, check=True))
    result = attnrates("sweep", path, "--out", tmp_path / "out")
    assert (result.code, result.err.splitlines()) == (
        1, ["2 cells, 2 finished before", "3 bounds violated"],
    )  # fmt: skip
    path.write_text(toml(data='"gaussian:n=2,T=2,d=5"', seeds="1"), encoding="utf-8")
    result = attnrates("sweep", path, "--out", tmp_path / "out")
    assert (result.code, result.err.splitlines()[-1]) == (0, "no bound is violated")


def test_a_problem_file_that_changed_is_run_anew(tmp_path):
    """Its name is the same; what was finished was of the other problem."""
    problem = tmp_path / "mine.npz"
    load("gaussian:n=2,T=2,d=5", seed=0).save(problem)
    path = tmp_path / "grid.toml"
    path.write_text(toml(data=f'"{problem}"', seeds="1"), encoding="utf-8")
    store = Store(tmp_path / "out")
    (cell,) = grids.read(path).cells
    store.add(cell, work.compute(cell.setting, check=False))
    store.violated(cell, check=False, problem_hash=cell.setting.problem().hash)
    load("gaussian:n=2,T=2,d=5", seed=1).save(problem)
    with pytest.raises(DamagedError, match="made of other data"):
        store.violated(cell, check=False, problem_hash=cell.setting.problem().hash)


@pytest.mark.parametrize("reader", ["polars", "duckdb"])
def test_polars_and_duckdb_open_the_results(undisturbed, reader):
    module = pytest.importorskip(reader)
    out = undisturbed[1]
    for name in ("history", "verdicts"):
        own = pd.read_parquet(out / name)
        if reader == "polars":
            frame = module.read_parquet(out / name)
            rules = set(frame["rule"])
        else:
            frame = module.sql(f"select * from read_parquet('{out / name}/**/*.parquet')")
            rules = {
                row[0]
                for row in module.sql(f"select distinct rule from '{out / name}/**/*.parquet'").fetchall()
            }
        assert set(frame.columns) == set(own.columns)
        assert frame.shape == own.shape
        assert rules == {"ngd", "polyak"}


def test_pyarrow_opens_the_results(undisturbed):
    from pyarrow import dataset

    out = undisturbed[1]
    for name in ("history", "verdicts"):
        table = dataset.dataset(out / name, partitioning="hive").to_table()
        assert (table.num_rows, set(table.column_names)) == (
            len(pd.read_parquet(out / name)), set(pd.read_parquet(out / name).columns),
        )  # fmt: skip


def test_killed_workers_lose_nothing(undisturbed, tmp_path):
    path, out, _ = undisturbed
    process = start(path, "--out", tmp_path / "out", "--workers", 2)
    killed = 0
    while process.poll() is None and killed < 4:
        for worker in workers_of(process)[-1:]:
            if list((tmp_path / "out").rglob("*.parquet")) or killed == 0:
                worker.send_signal(signal.SIGKILL)
                killed += 1
        time.sleep(1.5)
    _, err = process.communicate(timeout=540)
    assert process.returncode == 0, err
    assert killed
    assert content(tmp_path / "out") == content(out)


def test_workers_that_dask_gives_up_are_started_anew(undisturbed, tmp_path):
    """Dask drops a worker that is not back in time, here in no time at all: the sweep had no workers left."""
    path, out, _ = undisturbed
    process = start(
        path, "--out", tmp_path / "out", "--workers", 2, DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT="1ms"
    )
    wait_for(lambda: list((tmp_path / "out").rglob("history/*/*.parquet")))
    killed = workers_of(process)
    for worker in killed:
        worker.send_signal(signal.SIGKILL)
    try:
        _, err = process.communicate(timeout=240)
    finally:
        process.kill()
    assert killed
    assert process.returncode == 0, err
    assert content(tmp_path / "out") == content(out)


DEADLY = """
import os
from attnrates.sweep import cluster

cluster.ATTEMPTS = 1
compute = cluster.work.compute


def deadly(setting, *, check):
    if setting.seed == 1:
        os._exit(9)
    return compute(setting, check=check)


cluster.work.compute = deadly
"""


@pytest.mark.parametrize("lost", ["15s", "1ms"])
def test_a_cell_that_kills_its_workers_is_refused_and_its_neighbours_are_not(tmp_path, lost):
    """The only worker took finished results along before they were fetched: they were waited for for ever."""
    path = tmp_path / "grid.toml"
    path.write_text(toml(data='"gaussian:n=3,T=3,d=40"', seeds="4", check="false"), encoding="utf-8")
    code, _, err = sweep(
        path,
        "--out",
        tmp_path / "out",
        "--workers",
        1,
        before=DEADLY,
        DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT=lost,
    )
    assert code == 2, err
    last = err.splitlines()[-1]
    assert last.startswith("attnrates: 1 of 4 cells cannot be run, the others are finished; the first is ")
    assert "seed1: its workers died, and 2 processes that ran it alone, the last by exit code 9" in last
    assert "Traceback" not in err
    cells = {cell.setting.seed: cell.key for cell in grids.read(path).cells}
    assert {file.stem for file in (tmp_path / "out").rglob("*.parquet")} == {
        cells[seed] for seed in (0, 2, 3)
    }
    assert [file.stem for file in (tmp_path / "out" / "refused").iterdir()] == [cells[1]]


class Fetched:
    """A future of Dask's as its result is brought here, or not."""

    def __init__(self, status, gives):
        self.status, self.gives = status, gives

    def result(self, timeout):
        assert timeout
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


def test_a_result_may_be_gone_before_it_is_brought():
    outcome = work.Outcome(work.code(), history=b"")
    assert cluster_module._result(Fetched("finished", outcome)) is outcome
    for status in ("lost", "cancelled", "pending"):
        assert cluster_module._result(Fetched(status, ValueError())) is None
    for gone in (distributed.TimeoutError(), distributed.CancelledError()):
        assert cluster_module._result(Fetched("finished", gone)) is None
    died = KeyError("computed again, and its worker died once more")
    for status in ("finished", "error"):
        assert cluster_module._result(Fetched(status, died)) is died


def shot(setting, *, check):
    os.kill(os.getpid(), signal.SIGTERM)


def faulty(setting, *, check):
    raise OSError(f"seed {setting.seed}")


def leaving(setting, *, check):
    sys.exit("no more")


def interrupted(setting, *, check):
    raise KeyboardInterrupt


def silent(setting, *, check):
    os._exit(setting.seed)


def orphan(setting, *, check):
    Path(setting.data).write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(600)


def test_a_cell_apart_gives_the_same_or_says_how_it_died():
    setting = Setting(data="gaussian:n=2,T=2,d=4", rule="ngd", step=0.1, steps=5, seed=3)
    assert apart.compute(work.compute, setting, check=True) == work.compute(setting, check=True)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    error = apart.compute(shot, setting, check=False).error
    assert "the last by signal SIGTERM" in error
    assert error.endswith("it may need more memory than there is")
    with pytest.raises(OSError, match="seed 3"):
        apart.compute(faulty, setting, check=False)


def test_a_cell_apart_that_leaves_or_says_nothing_is_named():
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    setting = Setting(data="gaussian:n=2,T=2,d=4", rule="ngd", step=0.1, steps=5)
    for function, says in ((leaving, "leaves by SystemExit no more"), (interrupted, "by KeyboardInterrupt$")):
        with pytest.raises(RuntimeError, match=says):
            apart.compute(function, setting, check=False)
    for code in (0, 5):
        error = apart.compute(silent, replace(setting, seed=code), check=False).error
        assert error.endswith(f"the last by exit code {code} without a result")


def test_a_cell_apart_ends_with_its_worker(tmp_path):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    setting = Setting(data=str(tmp_path / "pid"), rule="ngd", step=0.1, steps=5)
    call = cloudpickle.dumps((orphan, setting, False))
    child = subprocess.Popen(
        [sys.executable, "-c", apart.CHILD], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    child.stdin.write(call)
    child.stdin.flush()
    wait_for((tmp_path / "pid").exists)
    child.stdin.close()  # as when its worker is killed
    assert child.wait(timeout=60) == 1


def test_a_killed_sweep_goes_on_where_it_was(undisturbed, tmp_path):
    path, out, _ = undisturbed
    process = start(path, "--out", tmp_path / "out", "--workers", 1)
    wait_for(lambda: len(list((tmp_path / "out").rglob("history/*/*.parquet"))) >= 3)
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    process.kill()
    process.communicate()
    for member in family[1:]:  # Dask's workers end by themselves; the test does not wait for it
        try:
            member.kill()
        except psutil.Error:
            continue
    before = content(tmp_path / "out")
    assert before.items() <= content(out).items()  # all that is there is whole
    code, _, err = sweep(path, "--out", tmp_path / "out", "--workers", 1)
    assert code == 0, err
    assert "0 finished before" not in err
    assert content(tmp_path / "out") == content(out)


@pytest.fixture
def cluster(tmp_path):
    """A scheduler at an address, with two workers; `start_scheduler` starts it again after a death."""
    made = []

    def launch(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        made.append(process)
        return process

    def up(file, workers):
        file.unlink(missing_ok=True)
        scheduler = launch(
            "dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(file),
        )
        wait_for(lambda: file.exists() and file.stat().st_size > 0)
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
        for _ in range(workers):
            launch(
                "dask_worker", address, "--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard",
                "--local-directory", str(file.parent), "--death-timeout", "30",
            )  # fmt: skip
        return scheduler, address

    yield lambda workers=2: up(tmp_path / "scheduler.json", workers)
    for process in made:
        for member in [*_children(process), process]:
            try:
                member.kill()
            except (psutil.Error, ProcessLookupError):
                continue
        process.wait()


def _children(process):
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return []


def test_a_killed_scheduler_ends_the_sweep_and_another_takes_over(undisturbed, cluster, tmp_path):
    path, out, _ = undisturbed
    scheduler, address = cluster()
    process = start(path, "--out", tmp_path / "out", "--scheduler", address)
    wait_for(lambda: list((tmp_path / "out").rglob("history/*/*.parquet")))
    scheduler.kill()
    _, err = process.communicate(timeout=300)
    lines = [line for line in err.splitlines() if line.startswith("attnrates:")]
    if process.returncode != 0:  # the sweep may have been done before the scheduler's death was noticed
        assert process.returncode == 2, err
        assert "the scheduler is gone" in lines[-1]
    assert content(tmp_path / "out").items() <= content(out).items()
    _, address = cluster()
    code, _, err = sweep(path, "--out", tmp_path / "out", "--scheduler", address)
    assert code == 0, err
    assert content(tmp_path / "out") == content(out)


def test_a_port_in_use_is_no_concern(tmp_path):
    with socket.socket() as taken:
        with suppress(OSError):  # taken by someone else is as good
            taken.bind(("127.0.0.1", 8787))  # Dask's own choice
            taken.listen()
        code, _, err = sweep(grid(tmp_path, seeds=1), "--out", tmp_path / "out", "--workers", 1)
    assert code == 0, err
    assert "8787" not in err


def test_no_scheduler_at_the_address(tmp_path, monkeypatch, attnrates):
    monkeypatch.setattr("attnrates.sweep.cluster.GREETING", 1.0)
    for address in ("tcp://127.0.0.1:9", "nonsense", "tcp://"):
        result = attnrates("sweep", grid(tmp_path), "--out", tmp_path / "out", "--scheduler", address)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert result.err.startswith(f"attnrates: no scheduler answers at {address!r}")
        assert not (tmp_path / "out").exists()


def test_a_cluster_without_workers_is_told_and_given_up(tmp_path, cluster):
    _, address = cluster(workers=0)
    code, out, err = sweep(
        grid(tmp_path), "--out", tmp_path / "out", "--scheduler", address, "--wait", 3,
        before="from attnrates.sweep import cluster\ncluster.NOTICE = 0.1\n",
    )  # fmt: skip
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "12 cells, 0 finished before",
        "there is no worker; waiting up to 3 seconds for one",
        "attnrates: no worker for 3 seconds; finished cells are kept, the same command goes on",
    ]


def test_a_cluster_without_this_package_is_told(tmp_path, cluster):
    _, address = cluster(workers=1)
    code, _, err = sweep(grid(tmp_path), "--out", tmp_path / "out", "--scheduler", address, before=RENAMED)
    assert code == 2, err
    assert err.splitlines()[-1].startswith("attnrates: the cluster cannot load attnrates; install it there")
    assert not (tmp_path / "out" / "refused").exists()


RENAMED = """
import sys, types
from attnrates.sweep import cluster
module = types.ModuleType("only_here")
exec("def compute(setting, *, check):\\n    return None", module.__dict__)
module.compute.__module__ = "only_here"
sys.modules["only_here"] = module
cluster.work.compute = module.compute
"""


@pytest.mark.parametrize("says", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n", bytes(64)])
def test_what_listens_there_is_no_scheduler(tmp_path, monkeypatch, attnrates, says):
    """A server that never speaks made the sweep wait for ever, others made it want all memory."""
    monkeypatch.setattr("attnrates.sweep.cluster.GREETING", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def serve():
            with suppress(OSError):
                while True:
                    kept.append(server.accept()[0])
                    if says:
                        kept[-1].sendall(says)

        threading.Thread(target=serve, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        result = attnrates("sweep", grid(tmp_path), "--out", tmp_path / "out", "--scheduler", address)
    for connection in kept:
        connection.close()
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert f"no scheduler answers at '{address}'" in result.err
    assert not (tmp_path / "out").exists()


def test_a_full_or_read_only_disk_leaves_whole_files_only(undisturbed, tmp_path):
    path, out, _ = undisturbed
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("a small file system can be mounted by root only")
    try:
        code, _, err = sweep(path, "--out", disk / "out", "--workers", 1)
        assert code == 2, err
        assert "No space left on device" in err.splitlines()[-1]
        assert content(disk / "out").items() <= content(out).items()
        assert not list(disk.rglob("*.tmp"))
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        code, _, err = sweep(path, "--out", disk / "out", "--workers", 1)
        assert code == 0, err
        assert content(disk / "out") == content(out)
        more = grid(tmp_path, seeds=3)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        code, stdout, err = sweep(more, "--out", disk / "out", "--workers", 1)
        assert (code, stdout) == (2, "")
        assert err == f"attnrates: {disk / 'out'}: no permission to write there\n"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.soak
def test_two_thousand_cells_with_a_worker_killed_every_few_seconds(tmp_path):
    path = grid(tmp_path, seeds=334)
    assert len(grids.read(path).cells) >= 2_000
    code, _, err = sweep(path, "--out", tmp_path / "calm", seconds=3600)
    assert code == 0, err
    process = start(path, "--out", tmp_path / "stormy", "--workers", 2)
    killed = finished = 0
    moved = time.monotonic()
    while process.poll() is None:
        time.sleep(3)
        before, finished = finished, len(list((tmp_path / "stormy" / "history").rglob("*.parquet")))
        if finished > before:  # on a slow machine workers start, too, before the next one is killed
            moved = time.monotonic()
            for worker in workers_of(process)[-1:]:
                worker.send_signal(signal.SIGKILL)
                killed += 1
        elif time.monotonic() - moved > 900:
            process.kill()
            pytest.fail(f"no cell in a quarter of an hour, after {finished}")
    _, err = process.communicate()
    assert process.returncode == 0, err
    print(f"{killed} workers killed")
    assert killed >= 3
    assert content(tmp_path / "stormy") == content(tmp_path / "calm")


@pytest.mark.soak
def test_a_million_cells_tell_the_time_and_need_little_memory(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(toml(data='"gaussian:n=2,T=2,d=4"', seeds="1000000", check="false"), encoding="utf-8")
    process = start(path, "--out", tmp_path / "out", "--workers", 1)
    try:
        assert process.stderr.readline() == "1000000 cells, 0 finished before\n"
        assert re.fullmatch(r"\d+ of 1000000 cells, about \d+ (min|h|days) left\n", process.stderr.readline())
        assert psutil.Process(process.pid).memory_info().rss < 1.5e9
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "the same command goes on from there" in err.splitlines()[-1]
    assert list((tmp_path / "out").rglob("*.parquet"))


GOOD = {"data": '"gaussian"', "seeds": "2", "steps": "10", "rules": '[{rule = "ngd", step = 0.1}]'}


def toml(**entries):
    return "".join(f"{name} = {value}\n" for name, value in {**GOOD, **entries}.items() if value is not None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "data is missing"),
        ("steps = [", "is not TOML"),
        ("\x00", "is not TOML"),
        (toml(data="[]"), "data is missing or empty"),
        (toml(data="3"), "data must be text"),
        (toml(steps=None), "steps must be a whole number"),
        (toml(steps="0"), "steps must be a whole number"),
        (toml(steps="true"), "steps must be a whole number"),
        (toml(steps="1.5"), "steps must be a whole number"),
        (toml(seeds="[]"), "seeds must be"),
        (toml(seeds="[-1]"), "seeds must be"),
        (toml(seeds="10000000"), "at most"),
        (toml(space='"phase"'), "space must be"),
        (toml(check="1"), "check must be"),
        (toml(colour="1"), "no entry 'colour'"),
        (toml(rules="[]"), "rules must be given"),
        (toml(rules="[1]"), "rules must be given"),
        (toml(rules='[{rule = "adam", step = 1}]'), "rules[1]: unknown step-size rule 'adam'"),
        (toml(rules='[{rule = "ngd"}]'), "rules[1]: rule ngd needs a step size"),
        (toml(rules='[{rule = "ngd", step = -1}]'), "rules[1]: "),
        (toml(rules='[{rule = "ngd", step = nan}]'), "rules[1].step must be finite"),
        (toml(rules='[{rule = "ngd", step = "1"}]'), "rules[1].step must be a number"),
        (toml(rules='[{rule = "polyak", exponent = 1}]'), "rules[1]: polyak takes no exponent"),
        (toml(rules='[{rule = "ngd", step = 0.1, rate = 1}]'), "rules[1] has no entry 'rate'"),
        (toml(seeds="1000000", data='["a", "b"]'), "at most 1000000"),
        (toml(data='"gaussian:n=0"'), "n"),
        (toml(data='"nowhere.npz"', seeds="1"), "nowhere.npz"),
    ],
)
def test_a_bad_grid_is_refused_before_anything_starts(attnrates, tmp_path, text, says):
    path = tmp_path / "grid.toml"
    path.write_text(text, encoding="utf-8")
    result = attnrates("sweep", path, "--out", tmp_path / "out")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert says in result.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["grid.toml"]


def test_a_missing_grid_and_conflicting_options_are_refused(attnrates, tmp_path):
    for arguments in (
        [tmp_path / "none.toml"],
        [tmp_path],
        [grid(tmp_path), "--scheduler", "tcp://127.0.0.1:1", "--workers", 2],
    ):
        result = attnrates("sweep", *arguments, "--out", tmp_path / "out")
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


def test_cells_go_by_what_determines_them(tmp_path):
    cells = grids.read(grid(tmp_path)).cells
    assert len({cell.key for cell in cells}) == len(cells)
    path = tmp_path / "twice.toml"
    path.write_text(toml(rules='[{rule = "ngd", step = [0.1, 0.1]}]'), encoding="utf-8")
    assert len(grids.read(path).cells) == 2


def test_a_cell_that_cannot_be_run_is_told_and_the_others_are_finished(tmp_path):
    problem = load("gaussian:n=2,T=3,d=30", seed=0)
    problem.save(tmp_path / "good.npz")
    path = tmp_path / "grid.toml"
    path.write_text(
        toml(data=f'["{tmp_path}/good.npz", "digits:3v5,n=40"]', seeds="1", check="false"), encoding="utf-8"
    )
    store = Store(tmp_path / "out")
    first, second = grids.read(path).cells
    store.add(first, work.compute(first.setting, check=False))
    store.add(second, work.Outcome(work.code(), error="tokens 1 and 2 are tied"))
    assert store.finished(first, check=False)
    assert not store.finished(first, check=True)
    assert not store.finished(second, check=False)
    note = json.loads((tmp_path / "out" / "refused" / f"{second.key}.json").read_text(encoding="utf-8"))
    assert note["error"] == "tokens 1 and 2 are tied"
    store.add(second, work.compute(second.setting, check=False))
    assert not list((tmp_path / "out" / "refused").iterdir())


def test_input_errors_come_back_as_such(tmp_path):
    outcome = work.compute(Setting(data="gaussian:n=0", rule="ngd", step=0.1, steps=5), check=False)
    assert (outcome.history, outcome.error is None) == (None, False)


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="holds no sweep"):
        Store(tmp_path)
    out = tmp_path / "out"
    store = Store(out)
    assert not out.exists()
    store.begin()
    store.note.write_text('{"format": "attnrates-sweep", "code": "0"}', encoding="utf-8")
    with pytest.raises(InputError, match="other code"):
        Store(out)
    for text in ("", "[]", '{"format": "other"}'):
        store.note.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=r"sweep\.json"):
            Store(out)


def test_what_a_killed_write_left_goes_once_it_is_old(tmp_path):
    Store(tmp_path / "out").begin()
    folder = tmp_path / "out" / "history" / "rule=ngd"
    folder.mkdir(parents=True)
    old, new = folder / ".a.parquet.x.tmp", folder / ".b.parquet.x.tmp"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    Store(tmp_path / "out")
    assert (old.exists(), new.exists()) == (False, True)
