"""Figure 4: its data are what the survey and the theorem say; the picture shows them."""

import io

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

from numerics.survey import measure, tally
from paper_figs import figures, phase_diagram, style
from theory import gaussian


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The quick figure's files, made once."""
    out = tmp_path_factory.mktemp("figures")
    figures.make("phase-diagram", out, out / "runs", quick=True)
    return out


@pytest.fixture(scope="module", params=["sequences", "signal"])
def part(request, made):
    name = request.param
    return phase_diagram.parts(quick=True)[name], pd.read_csv(made / f"phase-diagram-{name}.csv"), name


def test_every_cell_is_there_once(part):
    what, frame, _ = part
    options = what.options
    seen = list(zip(frame[options["axis"]].round(9), frame["d"], strict=True))
    assert sorted(seen) == sorted((value, d) for value in options["values"] for d in options["d"])
    assert (frame["problems"] == options["problems"]).all()


def test_the_shares_add_up(part):
    _, frame, _ = part
    assert (frame["infeasible"] + frame["not_acute"] + frame["near_acute"] == frame["problems"]).all()
    for name in phase_diagram.PANELS:
        assert frame[name].between(0, frame["problems"]).all()
    assert (frame["adversarial"] == frame[["opposite", "decoy"]].min(axis=1)).all()
    share = frame["near_acute"] / frame["problems"]
    assert (frame["near_acute_low"] <= share).all()
    assert (share <= frame["near_acute_high"]).all()


def test_the_curve_is_the_theorems(part):
    what, frame, _ = part
    for cell in phase_diagram.cells(what):
        row = frame[(frame["d"] == cell.d) & (frame["n"] == cell.n) & np.isclose(frame["noise"], cell.noise)]
        claimed = gaussian.smallest_dimension(cell.n, cell.T, signal=cell.signal, noise=cell.noise)
        assert row["theorem"].item() == claimed
        assert row["simulated"].item() <= claimed, "the theorem is not contradicted"
        if cell.d >= claimed:
            assert row["near_acute_high"].item() >= 0.99
            assert row["random"].item() == row["adversarial"].item() == cell.problems


def test_near_acute_problems_are_solved_from_every_start(part):
    _, frame, _ = part
    assert (frame["acute_unreached"] == 0).all()
    assert (frame["near_acute"] <= frame["random"]).all()
    assert (frame["near_acute"] <= frame["adversarial"]).all()
    assert (frame["wrong"] == frame["wrong_in_pair"]).all()


def test_all_phases_are_seen(part):
    _, frame, _ = part
    for name in ("not_acute", "near_acute", "full_support", "random", "adversarial"):
        share = frame[name] / frame["problems"]
        assert share.min() < 0.5 < share.max(), name
    assert frame["infeasible"].max() > 0


def test_a_cell_measured_again_is_the_same(part):
    what, frame, _ = part
    cell = phase_diagram.cells(what)[-1]
    again = tally(cell, measure(cell))
    row = frame[
        (frame["d"] == cell.d) & (frame["n"] == cell.n) & np.isclose(frame["noise"], cell.noise)
    ].iloc[0]
    assert [row[name] for name in ("separable", "near_acute", "random")] == [
        again.separable,
        again.near_acute,
        again.random,
    ]


def test_it_is_drawn_from_the_csv_alone(part, made):
    """And an unchanged figure is left alone."""
    _, frame, name = part
    figure = phase_diagram.draw(frame)
    assert figure.get_size_inches()[0] == style.SINGLE
    panels = [ax for ax in figure.axes if ax.get_title(loc="left")]
    assert [ax.get_title(loc="left")[:3] for ax in panels] == [f"({x})" for x in "abcdef"]
    for ax, column in zip(panels, phase_diagram.PANELS, strict=True):
        (mesh,) = ax.collections
        assert np.asarray(mesh.get_array()).sum() == pytest.approx((frame[column] / frame["problems"]).sum())
        assert set(ax.lines[0].get_xdata()) == set(frame["theorem"])
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=100)
    stream.seek(0)
    picture = matplotlib.image.imread(stream)
    assert len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) > 50
    png = made / f"phase-diagram-{name}.png"
    before = png.stat().st_mtime_ns
    figures.make("phase-diagram", made, made / "runs", quick=True)
    assert png.stat().st_mtime_ns == before


def test_the_caption_has_the_settings(part):
    what, frame, _ = part
    text = phase_diagram.caption(what, frame)
    assert f"$T={what.options['T']}$" in text
    assert "seed 0" in text
    assert f"{what.options['problems']} problems a cell" in text
    assert f"{int(frame['stuck'].sum())} are stuck" in text
    assert text.count("$") % 2 == 0


def test_an_interrupted_survey_goes_on(tmp_path, monkeypatch):
    """Finished cells are kept in the folder for runs."""
    what = phase_diagram.parts(quick=True)["sequences"]
    done = []

    def stop(cell):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(cell)
        return measure(cell)

    monkeypatch.setattr("numerics.survey.table.measure", stop)
    with pytest.raises(KeyboardInterrupt):
        phase_diagram.data(what, figures.Workshop(folder=tmp_path))
    done.clear()
    with pytest.raises(KeyboardInterrupt):
        phase_diagram.data(what, figures.Workshop(folder=tmp_path))
    assert done == phase_diagram.cells(what)[2:4]


def test_the_default_is_finer_than_the_quick_one():
    for name, what in phase_diagram.parts(quick=False).items():
        assert len(phase_diagram.cells(what)) > 3 * len(
            phase_diagram.cells(phase_diagram.parts(quick=True)[name])
        )
