"""Figure 1: its data are the runs', bounds are where they are claimed, the CSV alone gives the picture."""

import shutil

import numpy as np
import pytest
from matplotlib.image import imread

from numerics import Run
from numerics.errors import InputError
from paper_figs import figures, fixed_decoder, style


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    said: list[str] = []
    files = figures.make("fixed-decoder", out, out / "runs", quick=True, say=said.append)
    return out, files, said


def test_the_files(made):
    out, files, said = made
    stems = ["fixed-decoder-gaussian", "fixed-decoder-digits"]
    assert [path.name for path in files] == [stem + end for stem in stems for end in figures.SUFFIXES]
    assert all(path.parent == out and path.stat().st_size > 500 for path in files)
    assert sum("trained" in line for line in said) == 6


def test_the_data_are_those_of_the_runs(made):
    import pandas as pd

    out, _, _ = made
    for part, recipe in fixed_decoder.parts(quick=True).items():
        frame = pd.read_csv(out / f"fixed-decoder-{part}.csv")
        assert list(frame["rule"].unique()) == ["gd", "ngd", "polyak"]
        for setting in recipe.settings:
            history = Run.load(out / "runs" / setting.name).history
            own = frame[frame["rule"] == setting.rule]
            np.testing.assert_array_equal(own["step"], history["step"])
            np.testing.assert_array_equal(own["weight_norm"], history["weight_norm"])
            np.testing.assert_allclose(
                10 ** own["log10_direction_gap"], history["direction_gap"], rtol=1e-12, equal_nan=True
            )
            np.testing.assert_allclose(own["log10_excess_loss"], history["log_excess_loss"] / np.log(10))


def test_the_bound_is_drawn_where_claimed_and_holds(made):
    import pandas as pd

    out, _, _ = made
    gaussian = pd.read_csv(out / "fixed-decoder-gaussian.csv")
    bound = gaussian["bound_weight_norm"]
    after = gaussian["step"] > 0
    assert bound[after].notna().all()
    assert (bound <= gaussian["weight_norm"])[after].all()
    assert (bound[after] > 0).all()
    digits = pd.read_csv(out / "fixed-decoder-digits.csv")
    assert digits["bound_weight_norm"].isna().all()
    for frame in (gaussian, digits):
        bound = frame["bound_log10_attention_gap"]
        assert bound.notna().sum() > 50
        assert (bound >= frame["log10_attention_gap"])[bound.notna()].all()


def test_the_picture_has_the_size_of_two_columns_and_curves_in_every_panel(made):
    out, _, _ = made
    picture = imread(out / "fixed-decoder-gaussian.png")[..., :3]
    assert picture.shape[1] == round(style.DOUBLE * style.PNG_DPI)
    height, width = picture.shape[0], picture.shape[1]
    for rows in (slice(0, height // 2), slice(height // 2, height)):
        for columns in (slice(0, width // 2), slice(width // 2, width)):
            panel = picture[rows, columns]
            colored = (panel.max(axis=-1) - panel.min(axis=-1) > 0.3).sum()
            assert colored > 2000


def test_unchanged_figures_are_left_alone_and_missing_ones_redrawn_without_training(made, tmp_path):
    out = tmp_path / "figures"
    shutil.copytree(made[0], out)
    shutil.rmtree(out / "runs")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / "fixed-decoder-gaussian.pdf").unlink()
    said: list[str] = []
    figures.make("fixed-decoder", out, out / "runs", quick=True, say=said.append)
    assert [line.split()[0] for line in said] == ["drew", "unchanged"]
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_altered_data_are_made_anew(made, tmp_path):
    out = tmp_path / "figures"
    shutil.copytree(made[0], out)
    csv = out / "fixed-decoder-digits.csv"
    genuine = csv.read_bytes()
    csv.write_bytes(genuine.replace(b"polyak", b"gd"))
    figures.make("fixed-decoder", out, out / "runs", quick=True)
    assert csv.read_bytes() == genuine


def test_an_unknown_figure_is_refused():
    with pytest.raises(InputError, match="fixed-decoder"):
        figures.select("fixed-encoder")
    assert figures.select(None) == list(figures.MODULES)


def test_the_command(attnrates, tmp_path):
    result = attnrates("figures", "--only", "fixed-encoder", "--out", tmp_path / "figures")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert list(tmp_path.iterdir()) == []
