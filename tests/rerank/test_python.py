"""What other programs use does what the commands do, and is silent."""

import ast
import dataclasses
import gzip
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rerank
from features.models.settings import Architecture, Training
from features.request import parse_requests
from moses_io.weights import read_weights
from rerank import InputError, Reranker, evaluate, read_nbest, score, show_progress, train, tune
from rerank.reranker.folder import Contents, write_folder

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

SENTENCES, CANDIDATES = 4, 8
FEATURES = {"Copied": "copied", "Match": "posteriors"}


@pytest.fixture
def folder(tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a few sentences of the sample, and `moses.ini`."""
    monkeypatch.chdir(tmp_path)
    with gzip.open(sample / "dev.nbest.gz") as stream:
        first = [line for line in stream if int(line.split(b" ", 1)[0]) < SENTENCES]
    groups = [[line for line in first if line.startswith(b"%d " % sentence)] for sentence in range(SENTENCES)]
    Path("nbest").write_bytes(b"".join(line for group in groups for line in group[:CANDIDATES]))
    for side in ("de", "en"):
        lines = (sample / f"dev.{side}").read_bytes().splitlines(keepends=True)
        Path(side).write_bytes(b"".join(lines[:SENTENCES]))
    Path("moses.ini").write_bytes((sample / "moses.ini").read_bytes())
    weights = (sample / "moses.ini").read_text() + "Copied= -0.5\nMatch= 0.1 -0.2 0 0.3\n"
    Path("weights.ini").write_text(weights)
    return tmp_path


@pytest.fixture
def reranker(folder: Path) -> Reranker:
    return Reranker(FEATURES, "weights.ini")


def lines(name: str) -> list[str]:
    return Path(name).read_text(encoding="utf-8").split("\n")[:-1]


def test_what_is_exported_is_small_and_light() -> None:
    code = """
import sys, rerank
assert not {"torch", "numpy", "rich"} & set(sys.modules), "heavy"
assert rerank.__version__ and set(rerank.__all__) <= set(dir(rerank))
assert all(callable(getattr(rerank, name)) for name in rerank.__all__)
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="module 'rerank' has no attribute 'rerank_all'"):
        _ = rerank.rerank_all


def test_checkers_of_types_see_the_same_names_in_the_same_places() -> None:
    tree = ast.parse(Path(rerank.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    named = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert {alias.name: node.module for node in named for alias in node.names} == rerank._PLACES
    assert rerank.__all__ == sorted(rerank._PLACES)


def test_settings_are_keywords_that_no_other_argument_has() -> None:
    settings = {field.name for each in (Architecture, Training) for field in dataclasses.fields(each)}
    assert not settings & set(inspect.signature(train).parameters)


def test_a_reranker_chooses_what_apply_chooses(
    command: Command, folder: Path, reranker: Reranker, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    requests = parse_requests([f"{k}={v}" for k, v in FEATURES.items()])
    write_folder(folder / "reranker", Contents(requests, "weights.ini", ""))
    status, out, err = command("apply", "reranker", "nbest", "--source", "de", "--nbest", "best")
    assert status == 0, err
    chosen = out.decode().split("\n")[:-1]
    loaded = Reranker.load("reranker")
    for each in (reranker, loaded, Reranker.load(folder / "reranker"), Reranker(FEATURES, read_weights("weights.ini"))):
        assert each.rerank("nbest", Path("de")) == chosen
    with open("de", encoding="utf-8") as source:
        assert loaded.rerank(iter(lines("nbest")), source) == chosen
    best = [
        (each.sentence, candidate.text, f"{candidate.total:.9g}", candidate.features)
        for each in loaded.score("nbest", "de")
        for candidate in each.candidates
    ]
    assert best == [
        (each.sentence, hypothesis.text, hypothesis.fields[3].decode().strip(), dict(hypothesis.dense))
        for each in read_nbest("best")
        for hypothesis in each.hypotheses
    ]
    assert {len(candidate[3]["Match"]) for candidate in best} == {4}
    assert capfdbinary.readouterr() == (b"", b"")


def test_a_reranker_goes_from_list_to_list(folder: Path, write: Write) -> None:
    """Also where a list was left in its midst, or was at fault, and where scores of other tools belong to the list."""
    write("scores", "".join(f"{number * number % 7}\n" for number in range(SENTENCES * CANDIDATES)))
    write("weights.ini", Path("moses.ini").read_text() + "Other= 1\n")
    reranker = Reranker({"Other": "scores:scores"}, "weights.ini")
    once = reranker.rerank("nbest", "de")
    next(reranker.score("nbest", "de"))
    with pytest.raises(InputError, match="sentence 1 is beyond the source"):
        reranker.rerank("nbest", ["nur eins"])
    assert reranker.rerank("nbest", "de") == once


def test_sentences_without_candidates(reranker: Reranker) -> None:
    nbest = [line for line in lines("nbest") if not line.startswith("1 ")]
    with pytest.raises(InputError, match=r"^<nbest>:9: sentence 1 has no candidates"):
        reranker.rerank(nbest, "de")
    whole = reranker.rerank("nbest", "de")
    assert reranker.rerank(nbest, "de", on_missing="blank") == [whole[0], "", *whole[2:]]
    assert reranker.rerank(nbest, "de", on_missing=Path("en")) == [whole[0], lines("en")[1], *whole[2:]]
    assert [each.sentence for each in reranker.score(nbest, "de")] == [0, 2, 3]


def test_a_reranker_without_features_weighs_what_the_list_has(command: Command, folder: Path) -> None:
    status, out, err = command("rerank", "nbest", "--weights", "moses.ini", "--source", "de")
    assert status == 0, err
    assert Reranker({}, "moses.ini").rerank("nbest", "de") == out.decode().split("\n")[:-1]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Reranker({"A": "lenght"}, "weights.ini"), r"did you mean 'length'\?"),
        (lambda: Reranker(FEATURES, "weights.ini", precision="fp16"), "precision 'fp16': expected fp32, bf16"),
        (lambda: Reranker.load("."), "not the folder of a reranker"),
        (lambda: Reranker(FEATURES, "moses.ini").rerank("nbest", "de"), "'Copied' has no weight in moses.ini"),
        (lambda: Reranker(FEATURES, {"LM0": [1]}).rerank("nbest", "de"), "has no weight in the weights$"),
        (lambda: Reranker(FEATURES, "weights.ini").rerank(["0 ||| a"], "de"), "^<nbest>:1: expected at least 3 fields"),
        (lambda: Reranker(FEATURES, "weights.ini").rerank("nbest", ["a\nb"]), r"^<source>:1: expected one line, found"),
        (lambda: list(read_nbest("-")), r"^\./-: No such file or directory$"),
        (lambda: list(read_nbest([])), "^<nbest>: the list is empty$"),
        (lambda: evaluate({"a": ["x"]}, ["x", "y"]), "^a has 1 lines, the reference has 2$"),
        (lambda: evaluate({"a": ["x"]}, ["x"], ["x", "y"]), "^<reference 1> has 2 lines, <reference 0> has 1$"),
        (lambda: evaluate({"a": ["x"]}), "expected a system and a reference, found 1 and 0"),
        (lambda: tune("nbest", "en", start="moses.ini", output="o", rate=1), "unknown key 'rate'"),
        (lambda: tune("nbest", "en", start="moses.ini", output="o", fallback=True), "--fallback needs --folds"),
        (lambda: train_on("de", hiden=3), "unknown setting 'hiden'; did you mean 'hidden'"),
        (lambda: train_on("de", device="gpu", hidden=3), "device 'gpu': expected auto, cpu, cuda"),
        (lambda: Reranker({}, {"LM0": [float("nan")]}), "weights of 'LM0': not finite, or larger than"),
        (lambda: Reranker({}, {"LM0": 0.1}), "weights of 'LM0': expected a sequence of numbers, found 0.1"),  # type: ignore[dict-item]
        (lambda: Reranker({}, {"LM0": ["0.1"]}), "weights of 'LM0': expected a sequence of numbers"),  # type: ignore[list-item]
        (lambda: score("nbest", "de", {"A": "copied"}, "nbest"), "^nbest: the command reads this file and would write"),
        (lambda: tune("nbest", "en", start="moses.ini", output="moses.ini"), "^moses.ini: the command reads this file"),
        (lambda: score("nbest", "de", {}, "out"), "expected a feature or more to score, found none"),
        (lambda: score("nbest", "de", {"LM0": "copied"}, "out"), "the list already has a feature 'LM0'"),
    ],
)
def test_faults_are_input_errors(folder: Path, act: Callable[[], object], message: str) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises(InputError, match=message) as caught:
        act()
    assert "\n" not in str(caught.value)
    assert sorted(folder.iterdir()) == before


def train_on(corpus: str, **settings: object) -> object:
    return train("rnnsearch", corpus, "en", dev_source="de", dev_target="en", folder="model", **settings)  # type: ignore[arg-type]


def test_training_is_that_of_the_command(
    command: Command, folder: Path, capfdbinary: pytest.CaptureFixture[bytes], recwarn: pytest.WarningsRecorder
) -> None:
    sizes = {"embedding": 4, "hidden": 4, "attention": 4, "epochs": 1, "frequency": 1}
    texts = ("--source", "de", "--target", "en", "--dev-source", "de", "--dev-target", "en")
    settings = [f"{name}={value}" for name, value in (sizes | {"lexicon": "bias"}).items()]
    Path("gdfa").write_text("0-0\n" * Path("de").read_text().count("\n"))
    texts = (*texts, "--alignments", "gdfa")
    assert command("train", "--preset", "cohn-align-sym", *texts, "--set", *settings, "--output", "by-hand")[0] == 0
    paths = {"source": "de", "target": Path("en"), "dev_source": "de", "dev_target": "en", "alignments": Path("gdfa")}
    model = train("cohn-align-sym", **paths, folder=folder / "model", lexicon="bias", **sizes)  # type: ignore[arg-type]
    assert model.folders == (folder / "model" / "forward", folder / "model" / "backward")
    for each in model.folders:
        assert (each / "model.safetensors").read_bytes() == Path("by-hand", each.name, "model.safetensors").read_bytes()
    assert all(1 < value < 100 for value in model.perplexities)
    assert (capfdbinary.readouterr(), recwarn.list) == ((b"", b""), [])


def test_scoring_and_tuning_are_those_of_the_commands(
    command: Command, folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    features = [word for label, text in FEATURES.items() for word in ("--feature", f"{label}={text}")]
    assert command("score", "nbest", "--source", "de", *features, "--output", "by-hand")[0] == 0
    score("nbest", folder / "de", FEATURES, "scored")
    assert Path("scored").read_bytes() == Path("by-hand").read_bytes()
    words = ("--folds", 2, "--runs", 1, "--tuner", "kbmira", "--set", "iterations=3", "--freeze", "Distortion0")
    status, ini, err = command("tune", "scored", "--reference", "en", "--start", "moses.ini", *words)
    assert status == 0, err
    with Path("moses.ini").open("a") as stream:
        stream.write("Other0= 1\n")
    with pytest.warns(UserWarning, match=r"^weights in moses\.ini without a feature in the list: Other0$") as told:
        tuned = tune(
            "scored",
            ["en"],
            start="moses.ini",
            output="ini",
            folds=2,
            runs=1,
            tuner="kbmira",
            iterations=3,
            freeze=["Distortion0"],
        )
    assert len(told) == 1
    assert Path("ini").read_bytes() == ini
    assert tuned.weights == read_weights("ini") and FEATURES.keys() < tuned.weights.keys()
    gain = tuned.gain
    assert f"{gain.metric} on the tuning set {gain.before:.2f} -> {gain.after:.2f}" in err
    assert f"{gain.old:.2f} with the features of the start" in err and f"{gain.new:.2f} with Copied, Match" in err
    assert f"signature: {gain.signature}\n" in err
    assert tune("scored", "en", start="weights.ini", output="ini", folds=2, tuner="expected").gain.new is None
    assert capfdbinary.readouterr() == (b"", b"")


def test_evaluation_is_that_of_the_command(
    command: Command, reranker: Reranker, write: Write, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    translations = reranker.rerank("nbest", "de")
    write("out", "".join(f"{line}\n" for line in translations))
    status, out, err = command("evaluate", "--reference", "en", "out", "en", "--nbest", "nbest", "--json")
    assert status == 0, err
    by_path = evaluate({"out": "out", "en": Path("en")}, "en", nbest="nbest")
    by_lines = evaluate({"out": translations, "en": iter(lines("en"))}, lines("en"), nbest=Path("nbest"))
    assert by_path.as_json() == by_lines.as_json()
    assert json.loads(json.dumps(by_path.as_json())) == json.loads(out)
    assert capfdbinary.readouterr() == (b"", b"")


def test_progress_is_shown_on_demand(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    try:
        show_progress()
        score("nbest", "de", {"Copied": "copied"}, "scored")
        assert capfdbinary.readouterr().err.startswith(b"Copied = copied")
    finally:
        show_progress(False)
    score("nbest", "de", {"Copied": "copied"}, "scored")
    assert capfdbinary.readouterr().err == b""
