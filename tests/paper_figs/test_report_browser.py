"""The report in a real browser: rendered, no errors, no requests, readable on a phone, dark and light."""

import json
import re
import shutil
import subprocess

import pytest

from paper_figs import report
from paper_figs.verdicts import check_folder

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed"),
    pytest.mark.usefixtures("few_proofs"),
]
# Added to a copy of the page, which has no script of its own: what was laid out, written into the title.
PROBE = """<script>
addEventListener("load", () => {
  const box = element => element.getBoundingClientRect();
  const article = document.querySelector("article");
  const overflowing = [...document.querySelectorAll("body *")].filter(
    e => box(e).right > innerWidth + 1 && !e.closest(".wide") && !e.closest("details:not([open])")
  ).map(e => e.tagName + "." + e.className);
  parent.postMessage(JSON.stringify({
    width: innerWidth, scroll: document.documentElement.scrollWidth, overflowing: overflowing.slice(0, 5),
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
    math: [...document.querySelectorAll("article math")].filter(e => box(e).height > 8).length,
    images: [...document.images].map(e => e.naturalWidth), font: getComputedStyle(article).fontSize,
    requests: performance.getEntriesByType("resource").map(e => e.name).filter(e => !e.startsWith("data:")),
    broken: document.querySelectorAll("merror, parsererror").length,
    links: [...document.querySelectorAll("a[href^='#']")].filter(
      e => !document.getElementById(decodeURIComponent(e.hash.slice(1)))).map(e => e.hash),
  }), "*");
});
</script>"""
# A window is never narrower than 500 pixels; a frame is as narrow as a phone.
FRAME = """<!doctype html><style>body {{ margin: 0 }} iframe {{ border: 0 }}</style>
<iframe src="page.html" width="{width}" height="900"></iframe>
<script>addEventListener("message", event => {{ document.title = event.data; }});</script>"""


@pytest.fixture(scope="module")
def page(made_runs, few_proofs, tmp_path_factory):
    from rich.console import Console

    from paper_figs import proofs, style

    folder = tmp_path_factory.mktemp("report")
    figure = style.new_figure(2, 1)
    figure.subplots().plot([1, 2], [1, 2])
    pictures = [path for path in style.save(figure, folder / "some-figure") if path.suffix == ".png"]
    report.write(folder / "report.html", proofs.prove(Console(quiet=True)), check_folder(made_runs), pictures)
    return folder / "report.html"


def browse(page, folder, *, width, dark, probe=True, opened=False):
    """Load the page; return what the probe saw and the console's lines."""
    text = page.read_text(encoding="utf-8")
    if opened:
        text = text.replace("<details>", "<details open>")
    if probe:
        text = text.replace("</body>", PROBE + "</body>")
    copy = folder / "page.html"
    copy.write_text(text, encoding="utf-8")
    shown = folder / "frame.html"
    shown.write_text(FRAME.format(width=width), encoding="utf-8")
    done = subprocess.run(
        [
            BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--hide-scrollbars",
            f"--user-data-dir={folder / 'profile'}", f"--window-size={max(width, 500)},900",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--screenshot={folder / 'shot.png'}", "--dump-dom", "--virtual-time-budget=10000",
            (shown if probe else copy).as_uri(),
        ],
        capture_output=True, text=True, timeout=180, check=True,
    )  # fmt: skip
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL) if probe else None
    seen = json.loads(title[1].replace("&quot;", '"').replace("&amp;", "&")) if title else {}
    return seen, console


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_it_is_rendered_without_errors_requests_or_overflow(page, tmp_path, width, dark, opened):
    seen, console = browse(page, tmp_path, width=width, dark=dark, opened=opened)
    assert console == []
    assert seen["requests"] == []
    assert seen["dark"] is dark
    assert seen["math"] >= 10
    assert all(seen["images"])
    assert seen["broken"] == 0
    assert seen["links"] == []
    assert seen["overflowing"] == []
    assert seen["width"] == width
    assert seen["scroll"] <= width
    assert float(seen["font"].removesuffix("px")) >= 14
    low, high = sorted((_lightness(seen["ink"]), _lightness(seen["paper"])))
    assert (high + 0.05) / (low + 0.05) >= 7  # WCAG's stricter contrast
    assert (_lightness(seen["paper"]) < 0.5) is dark


def _lightness(colour):
    """The relative luminance of rgb(r, g, b)."""
    parts = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_picture_of_the_page_is_not_empty(page, tmp_path):
    from matplotlib.image import imread

    browse(page, tmp_path, width=1280, dark=False, probe=False)
    shot = imread(tmp_path / "shot.png")[..., :3]
    assert shot.shape[1] == 1280
    assert 0.01 < (shot < 0.5).any(axis=-1).mean() < 0.5


def pages(text, folder):
    """The number of pages that a browser prints it on."""
    (folder / "page.html").write_text(text, encoding="utf-8")
    arguments = (
        BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer",
        f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={folder / 'page.pdf'}",
        (folder / "page.html").as_uri(),
    )  # fmt: skip
    subprocess.run(arguments, capture_output=True, timeout=180, check=True)
    return len(re.findall(rb"/Type\s*/Page\b", (folder / "page.pdf").read_bytes()))


def test_on_paper_all_is_open_but_the_proofs(page, tmp_path):
    """Each part is made ten pages long: hypotheses are printed, a proof is not, opened or not."""
    text = page.read_text(encoding="utf-8")
    plain = pages(text, tmp_path)
    assert plain > 1
    long = "<p style='height: 250cm; break-inside: auto'>long</p>"
    folds = re.findall(r"<details><summary>[^<]* hypotheses</summary>", text)
    assert folds
    assert pages(text.replace(folds[0], folds[0] + long, 1), tmp_path) >= plain + 7
    proof = re.search(r"<details><summary>proof: [^<]*</summary>", text)[0]
    for fold in (proof, proof.replace("<details>", "<details open>")):
        assert abs(pages(text.replace(proof, fold + long, 1), tmp_path) - plain) <= 1
