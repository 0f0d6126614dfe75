"""Progress: plain lines with the count where there is no terminal, a spinner on one, nothing in between."""

import io
import re
import time

import pytest
from rich.console import Console

from paper_figs import progress


def piped():
    return Console(file=io.StringIO(), width=40)


def terminal(width=120):
    return Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)


def wait(console, text):
    """Wait until the console shows the text."""
    deadline = time.monotonic() + 30
    while text not in console.file.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert text in console.file.getvalue()


def test_a_pipe_gets_a_line_at_the_start_and_then_the_count_with_the_time(monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.05)
    console = piped()
    with progress.phase("a phase whose name is longer than the line [x]", console, total=3) as step:
        step("first")
        step("second")
        wait(console, "1 of 3, ")
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "a phase whose name is longer than the line [x] 0 of 3"
    assert re.fullmatch(r"a phase .* \[x\] 1 of 3, 0 s", lines[-1])
    time.sleep(0.15)
    assert console.file.getvalue().splitlines() == lines  # it is over


def test_of_phases_within_one_another_only_the_innermost_is_told(monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.05)
    console = piped()
    with progress.phase("outer", console):
        with progress.phase("inner", console):
            wait(console, "inner, 0 s")
            assert "outer, " not in console.file.getvalue()
        wait(console, "outer, 0 s")


def test_a_terminal_shows_the_item_with_its_place_and_the_time():
    console = terminal()
    with progress.phase("proving", console, total=234) as step:
        step("norm-growth")
        wait(console, "proving 0 of 234 norm-growth 0:00:0")
        with progress.phase("inner", console):
            wait(console, "inner 0:00:0")
        step("loss")
        wait(console, "proving 1 of 234 loss 0:00:0")
    assert progress._open == []


def test_a_long_name_leaves_room_for_the_time_on_a_narrow_terminal():
    console = terminal(width=40)
    with progress.phase("training", console, total=9) as step:
        step("gaussian_n=20_T=5_d=200_noise=0.25-gd-1-joint")
        wait(console, "training 0 of 9 gaussian_n=2 0:00:0")


@pytest.mark.parametrize("make", [piped, terminal])
def test_nothing_is_said_while_hidden(make, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.05)
    console = make()
    with progress.phase("training", console):
        with progress.hidden():
            before = console.file.getvalue()
            time.sleep(0.3)
            assert console.file.getvalue() == before
        wait(console, "training" if console.is_terminal else "training, ")


def test_a_failure_ends_the_phase():
    console = piped()
    with pytest.raises(KeyError), progress.phase("checking", console):
        raise KeyError
    assert progress._open == []


@pytest.mark.parametrize("name", ["figures", "reproduce"])
def test_the_name_of_a_run_stays_on_one_line_in_a_pipe(attnrates, tmp_path, monkeypatch, name):
    run = "gaussian_n=8-ngd-0.3t^-0.6666666666666666-joint-ngd-0.3t^-0.6666666666666666-100000-gram-seed0"

    def make(*_, say, err, **__):
        assert err.stderr
        say(f"trained {run}")
        return []

    monkeypatch.setattr("paper_figs.figures.make", make)
    if name == "figures":
        told = attnrates("figures", "--only", "tightness", "--out", tmp_path).err
    else:
        from paper_figs import reproduce

        console = piped()
        reproduce.draw(tmp_path, quick=True, console=console, err=Console(stderr=True))
        told = console.file.getvalue()
    assert f"trained {run}" in told.splitlines()


def test_figures_tell_of_their_phases(tmp_path, monkeypatch):
    from paper_figs import figures, tightness

    part = tightness.parts(quick=True)["gaussian"]
    few = figures.Part(settings=part.settings[:2])
    monkeypatch.setattr(tightness, "parts", lambda *, quick: {"gaussian": few})
    console = piped()
    figures.make("tightness", tmp_path, tmp_path / "runs", quick=True, err=console)
    assert [line for line in console.file.getvalue().splitlines() if not line.endswith(" s")] == [
        "computing tightness-gaussian",
        "training 0 of 2",
        "checking 0 of 2",
        "drawing tightness-gaussian",
    ]
    again = piped()
    figures.make("tightness", tmp_path, tmp_path / "runs", quick=True, err=again)
    assert again.file.getvalue() == ""  # unchanged
