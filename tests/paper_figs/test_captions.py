"""Captions: LaTeX that compiles in form, numbers as mathematics, and the figure's own settings."""

import re
import shutil
import subprocess

import pandas as pd
import pytest

from paper_figs import captions, figures, tightness
from paper_figs.runs import Setting


def test_only_what_is_outside_the_dollars_is_escaped():
    assert captions.latex("a_b & 5% of $x_1\\%$ {~^}") == (
        r"a\_b \& 5\% of $x_1\%$ \{\textasciitilde{}\textasciicircum{}\}"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (10.0, "10"),
        (1e5, "100000"),
        (1e6, "10^{6}"),
        (2.5e-7, r"2.5\cdot 10^{-7}"),
        (0.0, "0"),
        (2.723406, "2.723"),
    ],
)
def test_numbers(value, text):
    assert captions.number(value) == text


def test_words():
    assert captions.listed(["a"]) == "a"
    assert captions.listed(["a", "b", "c"]) == "a, b and c"
    assert [captions.seeds(x) for x in ([0, 0], range(20), [5, 0, 3])] == [
        "seed 0",
        "seeds 0 to 19",
        "seeds 0, 3 and 5",
    ]
    assert captions.rules({"gd": 10.0, "polyak": None}) == r"GD with $\eta=10$ and Polyak"


def test_a_data_set_is_named_with_its_sizes_and_margin():
    digits = captions.data_set(Setting(data="digits:3v5,n=4", rule="gd", step=1.0, steps=1), margin=True)
    assert digits.startswith("the data set digits ($n=4$, classes 3v5, patches of $2\\times2$ pixels, margin")
    assert float(re.findall(r"g\^\*=([0-9.]+)\$", digits)[0]) > 0


def test_a_figure_of_two_columns_spans_both():
    assert "\\begin{figure*}" in captions.figure("a", "b", wide=True)
    assert "\\end{figure}" in captions.figure("a", "b")


def test_a_caption_names_its_settings():
    settings = [Setting(data="gaussian", rule="ngd", step=0.25, steps=77, seed=seed) for seed in (3, 4)]
    frame = pd.DataFrame({"theorem": ["a", "b"], "worst": [0.5, 1e-3], "median": [0.1, 1e-30], "final": 0.1})
    text = tightness.caption(figures.Part(settings=settings), frame)
    for fact in (
        "the data set gaussian ($n=5$, $T=4$, $d=400$, signal $2$, noise $0.1$)",
        "below $10^{-9}$ leave",
        "$77$ steps",
        r"$\eta=0.25$",
        "seeds 3 and 4",
        "2 theorems",
        "observed for 1 of them",
    ):
        assert fact in text


def test_the_latex_figure_is_balanced_and_compiles(tmp_path):
    figures.make("direction-rate", tmp_path, tmp_path / "runs", quick=True)
    for tex in tmp_path.glob("*.tex"):
        text = tex.read_text(encoding="utf-8")
        bare = re.sub(r"\\[\\{}%&#_$]", "", text)
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        assert f"\\includegraphics{{{tex.stem}.pdf}}" in text
        if shutil.which("pdflatex"):
            head = r"\documentclass{article}\usepackage{graphicx}\begin{document}"
            page = f"{head}{text}\\end{{document}}"
            (tmp_path / "page.latex").write_text(page)
            done = subprocess.run(
                ["pdflatex", "-halt-on-error", "page.latex"], cwd=tmp_path, capture_output=True, check=False
            )
            assert done.returncode == 0, done.stdout.decode()[-2000:]


def test_a_part_whose_extra_is_missing_is_left_out_or_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(figures.EXTRAS, "language", ("no_such_package",))
    monkeypatch.setattr(
        tightness,
        "parts",
        lambda *, quick: {"words": figures.Part(options={"quick": quick}, extra="language")},
    )
    said: list[str] = []
    assert figures.make("tightness", tmp_path / "out", tmp_path, say=said.append) == []
    (line,) = said
    assert line == (
        "skipped tightness-words needs no_such_package: install the extra, make language in a clone, "
        "else pip install '.[language]'"
    )
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(figures.InputError, match="pip install"):
        figures.make("tightness", tmp_path, tmp_path, strict=True)
