"""The figures of language: data as documented, drawn and not empty, captions that say what was found."""

from __future__ import annotations

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

from numerics.errors import InputError
from numerics.language import texts
from paper_figs import attention_words, captions, fine_tuning, style
from paper_figs.figures import Workshop


def history(seeds: int = 3) -> pd.DataFrame:
    """A made-up comparison, with a run that diverges at the end."""
    steps = np.arange(0, 50, 10)
    frames = []
    for place, name in enumerate(fine_tuning.LOOKS):
        for seed in range(seeds):
            loss = 0.7 * np.exp(-steps * (0.02 + 0.02 * place + 0.002 * seed))
            accuracy = 1 - loss / 2
            if (name, seed) == ("sgd", 2):
                loss[-1], accuracy[-1] = np.inf, np.nan
            frames.append(
                pd.DataFrame(
                    {
                        "optimizer": name,
                        "step_size": 0.1 / (1 + place),
                        "seed": seed,
                        "step": steps,
                        "train_loss": loss,
                        "train_accuracy": accuracy,
                        "test_loss": loss,
                        "test_accuracy": accuracy,
                        "at_edge": name == "sps",
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


def ink(figure, tmp_path) -> float:
    """The share of the picture's pixels that are not white."""
    pdf, png = style.save(figure, tmp_path / "figure")
    assert pdf.read_bytes().startswith(b"%PDF")
    return float((matplotlib.image.imread(png)[..., :3].min(axis=2) < 0.9).mean())


def test_fine_tuning_shows_every_optimizer_with_its_band(tmp_path) -> None:
    frame = history()
    figure = fine_tuning.draw(frame)
    for ax, (column, _) in zip(figure.axes, fine_tuning.PANELS, strict=True):
        assert [line.get_label() for line in ax.lines] == [look.label for look in fine_tuning.LOOKS.values()]
        assert len(ax.collections) == len(fine_tuning.LOOKS)
        for line, name in zip(ax.lines, fine_tuning.LOOKS, strict=True):
            finite = frame[(frame["optimizer"] == name) & np.isfinite(frame[column])]
            np.testing.assert_allclose(line.get_ydata(), finite.groupby("step")[column].mean())
    assert ink(figure, tmp_path) > 0.02
    with pytest.raises(InputError, match="every fine-tuning run diverged"):
        fine_tuning.draw(frame.assign(train_loss=np.inf))


def test_the_caption_states_the_tuning_and_the_results() -> None:
    part = fine_tuning.parts()["bbc"]
    said = fine_tuning.caption(part, history())
    for words in ("seeds 0 to 2", "5 step sizes", "Adam $0.025$", "Polyak $0.03333$, an end of its grid"):
        assert words in said
    assert "\\%$" in captions.latex(said)
    assert part.extra == "language"
    assert (
        fine_tuning.parts(quick=True)["bbc"].options["settings"]["steps"] < part.options["settings"]["steps"]
    )


@pytest.mark.language
def test_fine_tuning_data_are_the_comparisons(tmp_path, monkeypatch) -> None:
    part = fine_tuning.parts(quick=True)["bbc"]
    options = dict(part.options) | {"grids": {"sgd": [0.03], "adam": [3e-4]}}
    options["settings"] = options["settings"] | {"train": 8, "validation": 4, "test": 8, "steps": 2}
    few = type(part)(options=options, extra="language")
    said: list[str] = []
    frame = fine_tuning.data(few, Workshop(folder=tmp_path, say=said.append))
    assert list(frame["optimizer"].unique()) == ["sgd", "adam"]
    assert np.isfinite(frame[["train_loss", "test_loss", "train_accuracy", "test_accuracy"]]).all(axis=None)
    assert frame["step"].max() == 2
    again: list[str] = []
    pd.testing.assert_frame_equal(fine_tuning.data(few, Workshop(folder=tmp_path, say=again.append)), frame)
    assert all(line.startswith("kept") for line in again)


def headlines() -> pd.DataFrame:
    """Made-up attention over two headlines."""
    rows = []
    for article, (category, pieces) in enumerate(
        [("business", ["profit", "##s", "of", "$", "5", "rise"]), ("tech", ["new", "phone", "out"])]
    ):
        for position, word in enumerate(pieces):
            best = position == 1
            rows.append(
                {
                    "article": article,
                    "category": category,
                    "position": position,
                    "word": word,
                    "score": 2.0 if best else 1.0,
                    "before": 1 / len(pieces),
                    "after": 1.0 if best else 0.0,
                    "optimal": best,
                    "hit": True,
                }
            )
    frame = pd.DataFrame(rows)
    return frame.assign(one_minus_p=1e-9, rate=0.11, margin=0.12, direction_gap=1e-3, hypotheses="S O")


def test_words_are_shaded_and_the_optimal_one_is_outlined(tmp_path) -> None:
    frame = headlines()
    figure = attention_words.draw(frame)
    assert len(figure.axes) == 2
    for ax, (_, part) in zip(figure.axes, frame.groupby("article"), strict=True):
        shades = [patch.get_alpha() for patch in ax.patches if patch.get_fill()]
        assert len(shades) == 2 * len(part)
        assert sorted(shades)[-1] == 1.0
        assert sum(not patch.get_fill() for patch in ax.patches) == 2
        written = [text.get_text() for text in ax.texts]
        for word in part["word"]:
            assert written.count(word.replace("##", "·")) == 2
        right = max(patch.get_x() + patch.get_width() for patch in ax.patches)
        assert right <= ax.get_xlim()[1]
    assert ink(figure, tmp_path) > 0.02
    said = attention_words.caption(attention_words.parts()["input"], frame)
    assert "2 of 2 articles attend most" in said
    assert "(S) and (O)" in said


def test_the_rate_is_the_slope_of_the_attention_gap() -> None:
    norm = np.linspace(1.0, 100.0, 200)
    made = pd.DataFrame({"weight_norm": norm, "log_attention_gap": 3.0 - 0.25 * norm})
    assert attention_words.sparsification_rate(made) == pytest.approx(0.25)
    assert np.isnan(attention_words.sparsification_rate(made.iloc[:1]))


@pytest.mark.language
def test_words_data_are_the_runs(tmp_path, monkeypatch) -> None:
    whole = texts.bbc

    def some(classes: str = "business+tech") -> texts.Texts:
        data = whole(classes)
        return data.take([*np.flatnonzero(data.labels > 0)[:20], *np.flatnonzero(data.labels < 0)[:20]])

    monkeypatch.setattr(texts, "bbc", some)
    monkeypatch.setenv("ATTNRATES_CACHE", str(tmp_path / "cache"))
    part = attention_words.parts(quick=True)["contextual"]
    frame = attention_words.data(part, Workshop(folder=tmp_path))
    sums = frame.groupby("article")[["before", "after"]].sum()
    np.testing.assert_allclose(sums, 1.0)
    assert frame.groupby("article")["optimal"].sum().eq(1).all()
    best = frame.loc[frame.groupby("article")["score"].idxmax()]
    assert best["optimal"].all()
    assert "E" not in frame["hypotheses"].iloc[0]
    assert frame["word"].str.len().gt(0).all()
