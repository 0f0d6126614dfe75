"""The look of the figures: rules stay apart without colour, fonts are embedded, no time stamp."""

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from numerics.steps import RULES
from paper_figs import style


def grey(color: str) -> float:
    """Relative luminance, gamma removed (ITU-R BT.709)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def test_every_rule_has_a_look():
    assert set(style.RULES) == set(RULES)


@pytest.mark.parametrize("pair", list(combinations(style.RULES, 2)), ids="-".join)
def test_two_rules_differ_in_line_marker_and_greyscale_lightness(pair):
    first, second = (style.RULES[name] for name in pair)
    assert first.linestyle != second.linestyle
    assert first.marker != second.marker
    lighter, darker = sorted((grey(first.color), grey(second.color)), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) > 1.5


def test_saved_files_are_vector_and_raster_with_embedded_fonts_and_no_time(tmp_path):
    def draw(stem):
        with style.applied():
            figure = style.new_figure(style.SINGLE, 2.0)
            figure.subplots().plot([1, 2], [3, 4], label=r"$\|W_t\|$")
        return style.save(figure, stem)

    pdf, png = draw(tmp_path / "a")
    content = pdf.read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert b"CreationDate" not in content
    picture = imread(png)
    assert picture.shape[1] == round(style.SINGLE * style.PNG_DPI)
    assert picture.std() > 0.01
    again = draw(tmp_path / "b")
    assert [path.read_bytes() for path in again] == [content, png.read_bytes()]


def test_the_style_is_confined_to_its_block():
    before = dict(mpl.rcParams)
    with style.applied():
        assert mpl.rcParams["pdf.fonttype"] == 42
    assert dict(mpl.rcParams) == before
