"""`attnrates verify KEY` and `attnrates docs`: a proof in full, and a page for every theorem."""

import json
import re

import pytest
from rich.cells import cell_len

import theory
from theory.page import forget_proofs
from theory.plain import plain
from theory.proof.kernel import AXIOMS
from theory.steps import steps
from theory.verify import instead


def test_a_page_is_printed_with_every_step(attnrates):
    result = attnrates("verify", "norm-growth")
    assert (result.code, result.err) == (0, "")
    listed = steps(theory.theorems()["norm-growth"])
    numbers = [int(number) for number in re.findall(r"^ {2,}(\d+)  ", result.out, re.MULTILINE)]
    assert numbers == list(range(1, len(listed) + 1))
    for name in theory.theorems()["norm-growth"].hypotheses:
        assert f"  {name}: " in result.out
    assert f"proof: {len(listed)} own steps; " in result.out
    assert "[by separator-growth]" in result.out
    assert "[by path-lower]" in result.out
    assert "theorem, proved." in result.out


def test_the_same_as_json(attnrates):
    data = json.loads(attnrates("verify", "norm-growth", "--json").out)
    assert (data["key"], data["status"], data["error"]) == ("norm-growth", "proved", None)
    assert data["proof"][-1]["conclusion"] in data["statement"]
    assert all(premise < step["number"] for step in data["proof"] for premise in step["premises"])


@pytest.mark.parametrize("key", ["norm-growth", "separator-correlation", "paper-global"])
def test_a_name_gives_the_same_number_in_the_table_and_on_the_page(attnrates, few_proofs, key):
    table = json.loads(attnrates("verify", "--json").out)
    entry = next(entry for entry in table["theorems"] if entry["key"] == key)
    page = json.loads(attnrates("verify", key, "--json").out)
    assert {k: page[k] for k in entry if k != "seconds"} == {k: v for k, v in entry.items() if k != "seconds"}
    assert page["own_steps"] == len(page["proof"])
    assert page["own_steps"] == sum(page["rules"].values()) + sum(
        step["rule"] == "page" for step in page["proof"]
    )
    assert page["steps"] >= sum(page["rules"].values())
    if page["status"] == "proved":
        text, row = attnrates("verify", key).out, attnrates("verify").out
        assert f"proof: {page['own_steps']} own steps; {page['steps']} steps with" in text
        assert re.search(rf"^{key} +proved +{page['steps']} +{page['own_steps']} ", row, re.MULTILINE)
    assert key in few_proofs


def test_counts_do_not_depend_on_what_was_proved_before():
    from theory.verify import report_on

    page = theory.theorems()["sharp-residual"]
    first = report_on(page)
    forget_proofs(page)
    for other in ("explicit-residual", "residual-step", "settled-distance"):
        report_on(theory.theorems()[other])
    again = report_on(page)
    assert (first.steps, first.own_steps, first.rules) == (again.steps, again.own_steps, again.rules)


def test_a_claim_of_the_paper_is_printed_with_what_is_proved_in_its_place(attnrates):
    result = attnrates("verify", "paper-joint", "--json")
    data = json.loads(result.out)
    assert (result.code, data["status"], data["steps"], data["proof"]) == (0, "claimed", 0, [])
    assert data["instead"] == [
        "joint-direction-schedule", "joint-sharp-rate", "joint-decoder-margin", "joint-loss-rate",
    ]  # fmt: skip
    text = attnrates("verify", "paper-joint").out
    assert "not proved here" in text
    assert "the decoder attains a positive margin" in text
    assert "$" not in text
    for key in data["instead"]:
        assert f"  {key}, proved: {theory.theorems()[key].title}\n" in text
        assert plain(theory.theorems()[key].claim) in text


def test_each_claim_of_the_paper_names_pages_that_are_proved():
    for page in theory.theorems().values():
        named = instead(page)
        assert bool(named) == (page.kind == "claim")
        assert {theory.theorems()[key].kind for key in named} <= {"theorem", "corollary"}


@pytest.mark.parametrize("key", ["norm-growth", "alignment", "gaussian-product-tail", "log-mean"])
def test_a_page_says_what_it_rests_on(attnrates, key):
    out = attnrates("verify", key).out
    claim = theory.theorems()[key].proved()
    listed = out[out.index("\naxioms ") : out.index("\nproof: ")].splitlines()[2:]
    assert listed == [f"  {name}: {AXIOMS[name]}" for name in sorted(claim.axioms)] or listed == ["  none"]
    assert (listed == ["  none"]) == (not claim.axioms)
    given = theory.theorems()[key].given
    assert ("\ngiven: " in out) == bool(given)
    for name in given:
        formula = plain(theory.theorems()[key].hypotheses[name])
        assert f"\n  {name}: {formula}\n" in out[out.index("\ngiven: ") : out.index("symbols\n")]
        assert f"  {name}: " not in out[out.index("\nhypotheses") : out.index("\ngiven: ")]


def test_a_page_says_what_its_symbols_stand_for(attnrates):
    out = attnrates("verify", "norm-growth").out
    symbols = out[out.index("\nsymbols") : out.index("\naxioms ")].splitlines()[2:]
    assert "  W_mm: the max-margin solution: the shortest matrix with every logit gap at least 1" in symbols
    assert "  γ_*: the margin 1/‖W_mm‖" in symbols
    assert "  E: path length: E_t is the sum of the step lengths e_s over s < t" in symbols


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("log-mean", "a lemma of our Theorem B"),
        ("norm-growth", "our Theorem A(i)"),
        ("alignment", "our Lemma 2"),
        ("sparsification", "our Theorem A(iv)"),
    ],
)
def test_a_page_tells_the_name_that_texts_use(attnrates, key, name):
    assert attnrates("verify", key).out.startswith(f"{key}, {name}: ")


@pytest.mark.parametrize("width", [60, 100, 160])
@pytest.mark.parametrize(
    "key", ["norm-growth", "paper-finite-time", "gaussian-product-tail", "support-drift"]
)
def test_on_a_terminal_lines_fit_and_say_the_same(attnrates, monkeypatch, key, width):
    piped = attnrates("verify", key).out
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", attnrates("verify", key).out)
    assert max(map(cell_len, shown.splitlines())) <= width
    assert shown.split() == piped.split()
    assert not any(line.endswith(" ") for line in shown.splitlines())


def test_a_claim_of_ones_own_is_not_called_the_papers(attnrates, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from theory.page import Theorem\n"
        "from theory.proof.terms import symbol\n"
        "x, y = symbol('x'), symbol('y')\n"
        "page = Theorem(key='mine', title='t', kind='claim', reference='r', statement='{claim}',\n"
        "               hypotheses={'small': x <= y}, claim=x <= 2 * y, prove=None)\n"
    )
    result = attnrates("verify", "mine", "--theory", str(file))
    assert (result.code, result.err) == (0, "")
    assert "claimed, not proved here. Source: r" in result.out
    assert "small: x ≤ y" in result.out
    assert "paper" not in result.out


def test_a_page_of_ones_own_that_fails_exits_1(attnrates, tmp_path):
    own = tmp_path / "own.py"
    own.write_text(
        "import dataclasses, theory\n"
        "MINE = dataclasses.replace(theory.theorems()['path-lower'], key='mine', rate=None,\n"
        "                           claim=theory.theorems()['path-upper'].claim)\n",
        encoding="utf-8",
    )
    result = attnrates("verify", "mine", "--theory", own)
    assert (result.code, result.err) == (1, "")
    assert "fails: ProofError" in result.out
    assert "proof: " not in result.out
    failed = attnrates("verify", "mine", "--theory", own, "--json")
    data = json.loads(failed.out)
    assert (failed.code, data["status"], data["proof"], data["steps"]) == (1, "failed", [], 0)
    assert data["error"].startswith("ProofError")


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("norm", "did you mean norm-reach, norm-growth, "),
        ("norm-grwth", "did you mean norm-growth"),
        ("zz", "verify lists"),
        ("paper-direction", "did you mean paper-"),
    ],
)
def test_a_key_that_is_misspelt_is_told_what_is_near(attnrates, key, hint):
    assert hint in attnrates("verify", key).err


def test_keys_of_the_same_first_word_are_suggested_first(attnrates):
    named = attnrates("verify", "paper-direction").err.split("did you mean ")[1].strip().split(", ")
    assert sorted(named) == sorted(key for key in theory.theorems() if key.startswith("paper-"))
    assert "polyak-norm-lower" in attnrates("verify", "pollyak-norm-lower").err  # no key begins like it


@pytest.mark.parametrize(
    ("name", "bearers"),
    [
        ("Theorem B", {"sharp-residual", "sharp-rate", "unequal-sharp-rate", "support-sharp-rate"}),
        ("Theorem A(i)", {"norm-growth"}),
        ("our theorem a", {"norm-growth", "alignment-time", "global-direction", "sparsification", "loss"}),
        ("Lemma 2", {"alignment"}),
    ],
)
def test_a_name_of_the_readmes_table_is_told_which_keys_bear_it(attnrates, name, bearers):
    result = attnrates("verify", name)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    listed = set(re.split(r"[,;:]? ", result.err.strip()))
    assert bearers <= listed
    assert "no page" not in result.err
    assert "log-mean" not in listed  # a lemma of Theorem B does not bear the name
    assert ("logit-gaps" in listed) == (name == "our theorem a")  # A(ii) is a part of A, not of A(i)
    assert "no page is called" in attnrates("verify", "Theorem Z").err


@pytest.mark.parametrize("key", ["norm-growth", "gaussian-probability", "log-mean"])
def test_the_rules_of_a_proof_are_explained_once(attnrates, key):
    from theory.verify import inference_rules

    out = attnrates("verify", key).out
    part = out[out.index("\nrules of the kernel in this proof") :].splitlines()[2:]
    used = {step.rule for step in steps(theory.theorems()[key])} & inference_rules().keys()
    assert part[: len(used)] == [f"  {rule}: {inference_rules()[rule]}" for rule in sorted(used)]
    assert not any(line.startswith("  ") and ": " not in line for line in part)


def test_an_assumption_says_where_it_is_dropped(attnrates):
    out = attnrates("verify", "gaussian-probability").out
    lines = dict(re.findall(r"^ +(\d+)  (.*)$", out[out.index("\nproof: ") :], re.MULTILINE))
    found = {line: re.findall(r"\[assume, dropped in (.*)\]", line) for line in lines.values()}
    dropped = {line.split("   ")[0]: places[0].split(", ") for line, places in found.items() if places}
    assert set(dropped) == {"i < n", "j < i", "τ < m", "ρ < m", "ρ < τ"}
    for assumed, places in dropped.items():
        letter = assumed[0]
        for place in places:
            assert "[sum_order " in lines[place]
            assert not re.search(rf"_\([^)]*{letter}", lines[place]), "it still speaks of what was assumed"
    assert "[assume]" not in out
    other = attnrates("verify", "loss-decay").out
    (place,) = re.findall(r"\[assume, instantiated in (\d+)\]", other)
    assert re.search(rf"^ +{place}  .*\[instantiate ", other, re.MULTILINE)
    assert "[assume]" not in attnrates("verify", "logistic-direction").out  # which makes the same one twice


@pytest.mark.parametrize(
    "arguments", [["norm"], ["norm-growth", "--latex"], ["norm-growth", "--search"], [""], ["\x1b[31m"]]
)
def test_bad_keys_are_refused_in_one_line(attnrates, arguments):
    result = attnrates("verify", *arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err[:-1].isprintable()


def test_a_page_for_every_theorem(attnrates, few_proofs, tmp_path):
    result = attnrates("docs", "--out", tmp_path / "pages")
    assert (result.code, result.out.strip()) == (0, str(tmp_path / "pages" / "index.html"))
    assert {path.stem for path in (tmp_path / "pages").iterdir()} == {"index", *few_proofs}
    index = (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")
    for key in few_proofs:
        page = (tmp_path / "pages" / f"{key}.html").read_text(encoding="utf-8")
        assert f'href="{key}.html"' in index
        assert "<math" in page
        assert "<script" not in page
        for link in re.findall(r'href="([^"#]+)"', page):
            assert (tmp_path / "pages" / link).is_file()
    assert "<small>by separator-growth</small>" in (tmp_path / "pages" / "norm-growth.html").read_text()
