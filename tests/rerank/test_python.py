"""The Python API gives the results of the commands and prints nothing."""

import ast
import dataclasses
import gzip
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rerank
from features.models.settings import Architecture, Training
from features.request import parse_requests
from moses_io.weights import read_weights
from rerank import InputError, Reranker, evaluate, read_nbest, score, show_progress, train, tune
from rerank.reranker.folder import write_folder

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

SENTENCES, CANDIDATES = 4, 8
FEATURES = {"Copied": "copied", "Match": "posteriors"}


@pytest.fixture
def folder(tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a few sentences of the sample and `moses.ini`."""
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


def test_the_package_imports_no_heavy_libraries() -> None:
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


def test_type_checkers_see_the_same_exports() -> None:
    tree = ast.parse(Path(rerank.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    named = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert {alias.name: node.module for node in named for alias in node.names} == rerank._MODULES
    assert rerank.__all__ == sorted(rerank._MODULES)


def test_names_of_settings_differ_from_other_arguments_of_train() -> None:
    settings = {field.name for each in (Architecture, Training) for field in dataclasses.fields(each)}
    assert not settings & set(inspect.signature(train).parameters)


def test_a_reranker_gives_the_output_of_apply(
    command: Command, folder: Path, reranker: Reranker, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    requests = parse_requests([f"{k}={v}" for k, v in FEATURES.items()])
    write_folder(folder / "reranker", requests, "weights.ini", "")
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


def test_a_reranker_processes_several_lists(folder: Path, write: Write) -> None:
    """Earlier lists may be read only in part or have errors. Scores of a file belong to each list."""
    write("scores", "".join(f"{number * number % 7}\n" for number in range(SENTENCES * CANDIDATES)))
    write("weights.ini", Path("moses.ini").read_text() + "Other= 1\n")
    reranker = Reranker({"Other": "scores:scores"}, "weights.ini")
    once = reranker.rerank("nbest", "de")
    next(reranker.score("nbest", "de"))
    with pytest.raises(InputError, match="sentence 1 is beyond the source"):
        reranker.rerank("nbest", ["nur eins"])
    assert reranker.rerank("nbest", "de") == once


IN_PROCESSES = """
import multiprocessing, sys, threading
from rerank import Reranker

def open_reranker():
    return Reranker({"NMT": "neural:" + sys.argv[2]}, "weights.ini", device="cpu")

def choose(reranker, expected):
    assert reranker.rerank("nbest", "de") == expected

def choose_with_new_reranker(folder, expected):
    sys.argv[2:] = [folder]
    choose(open_reranker(), expected)

if __name__ == "__main__":
    import torch
    torch.set_num_threads(2)
    reranker = open_reranker()
    expected = reranker.rerank("nbest", "de")
    how, several = sys.argv[1], []
    if how == "thread":
        threads = [threading.Thread(target=choose, args=(reranker, expected)) for _ in range(4)]
        failed = []
        threading.excepthook = failed.append
        [each.start() for each in threads]
        [each.join() for each in threads]
        assert not failed, failed
    else:
        start = (choose, (reranker, expected)) if how == "fork" else (choose_with_new_reranker, (sys.argv[2], expected))
        processes = [multiprocessing.get_context(how).Process(target=start[0], args=start[1]) for _ in range(2)]
        [each.start() for each in processes]
        [each.join(300) for each in processes]
        [each.kill() for each in processes]
        assert [each.exitcode for each in processes] == [0, 0], processes
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "thread"])
def test_a_reranker_in_other_processes_and_threads(
    folder: Path, models: dict[str, Path], write: Write, how: str
) -> None:
    """The reranker was used in the main process before, with torch threads that a fork does not have."""
    write("weights.ini", Path("moses.ini").read_text() + "NMT= 1\n")
    program = write("program.py", IN_PROCESSES)
    environment = {**os.environ, "PYTHONPATH": str(Path(rerank.__file__).parents[1])}
    words = [sys.executable, str(program), how, str(models["forward"])]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_threads_share_a_server_process(folder: Path) -> None:
    """Each thread gets the values of its own candidates."""
    count = 'while IFS= read -r line; do [ -z "$line" ] || echo ${#line}; done'
    reranker = Reranker({"Size": f"server:{count}"}, {"LM0": [1.0], "Size": [1.0]})
    lists = [[f"0 ||| {'a' * (number + 1)} ||| LM0= -1 ||| -1\n"] * 20 for number in range(8)]

    def sizes(nbest: list[str]) -> set[float]:
        scored = [each for _ in range(10) for each in reranker.score(nbest, ["x"])]
        return {value for each in scored for found in each.candidates for value in found.features["Size"]}

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(sizes, lists))
    assert found == [{len("x\ta") + number} for number in range(8)]


def test_sentences_without_candidates(reranker: Reranker) -> None:
    nbest = [line for line in lines("nbest") if not line.startswith("1 ")]
    with pytest.raises(InputError, match=r"^<nbest>:9: sentence 1 has no candidates"):
        reranker.rerank(nbest, "de")
    whole = reranker.rerank("nbest", "de")
    assert reranker.rerank(nbest, "de", on_missing="blank") == [whole[0], "", *whole[2:]]
    assert reranker.rerank(nbest, "de", on_missing=Path("en")) == [whole[0], lines("en")[1], *whole[2:]]
    assert [each.sentence for each in reranker.score(nbest, "de")] == [0, 2, 3]
    Path("longer").write_text("x\n" * 5)
    with pytest.raises(InputError, match="the file of --on-missing has 5 lines, de has 4"):
        reranker.rerank(nbest, "de", on_missing="longer")


def test_a_reranker_without_features_uses_the_features_of_the_list(command: Command, folder: Path) -> None:
    status, out, err = command("rerank", "nbest", "--weights", "moses.ini", "--source", "de")
    assert status == 0, err
    assert Reranker({}, "moses.ini").rerank("nbest", "de") == out.decode().split("\n")[:-1]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Reranker({"A": "lenght"}, "weights.ini"), r"Did you mean 'length'\?"),
        (lambda: Reranker(FEATURES, "weights.ini", precision="fp16"), "precision 'fp16': expected fp32, bf16"),
        (lambda: Reranker.load("."), "not the folder of a reranker"),
        (lambda: Reranker(FEATURES, "moses.ini").rerank("nbest", "de"), "'Copied' has no weight in moses.ini"),
        (lambda: Reranker(FEATURES, {"LM0": [1]}).rerank("nbest", "de"), "has no weight in the weights$"),
        (lambda: Reranker(FEATURES, "weights.ini").rerank(["0 ||| a"], "de"), "^<nbest>:1: expected at least 3 fields"),
        (lambda: Reranker(FEATURES, "weights.ini").rerank("nbest", ["a\nb"]), r"^<source>:1: expected one line, found"),
        (lambda: list(read_nbest("-")), r"^\./-: No such file or directory$"),
        (lambda: list(read_nbest([])), "^<nbest>: the list is empty$"),
        (lambda: evaluate({"a": ["x"]}, ["x", "y"]), "^a has 1 line, the reference has 2$"),
        (lambda: evaluate({"a": ["x"]}, ["x"], ["x", "y"]), "^<reference 1> has 2 lines, <reference 0> has 1$"),
        (lambda: evaluate({"a": ["x"]}), "expected a system and a reference, found 1 and 0"),
        (lambda: tune("nbest", "en", initial_weights="moses.ini", output="o", ratee=1), "unknown key 'ratee'"),
        (
            lambda: tune("nbest", "en", initial_weights="moses.ini", output="o", fallback=True),
            "fallback needs folds",
        ),
        (lambda: train_on("de", hiden=3), "unknown setting 'hiden'. Did you mean 'hidden_size'"),
        (lambda: train_on("de", device="gpu", hidden_size=3), "device 'gpu': expected auto, cpu, cuda"),
        (lambda: Reranker({}, {"LM0": [float("nan")]}), "weights of 'LM0': not finite, or an absolute value exceeds"),
        (lambda: Reranker({}, {"LM0": 0.1}), "weights of 'LM0': expected a sequence of numbers, found 0.1"),  # type: ignore[dict-item]
        (lambda: Reranker({}, {"LM0": ["0.1"]}), "weights of 'LM0': expected a sequence of numbers"),  # type: ignore[list-item]
        (lambda: score("nbest", "de", {"A": "copied"}, "nbest"), "^nbest: the command reads this file and would write"),
        (
            lambda: tune("nbest", "en", initial_weights="moses.ini", output="moses.ini"),
            "^moses.ini: the command reads this file",
        ),
        (lambda: score("nbest", "de", {}, "out"), "expected at least one feature to score, found none"),
        (lambda: score("nbest", "de", {"LM0": "copied"}, "out"), "the list already has a feature 'LM0'"),
    ],
)
def test_wrong_arguments_and_files_are_input_errors(folder: Path, act: Callable[[], object], message: str) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises(InputError, match=message) as caught:
        act()
    assert "\n" not in str(caught.value)
    assert sorted(folder.iterdir()) == before


api: Any = rerank
"""The package without static types, for calls with wrong types."""


def tune_to_o(nbest: object, references: object, **settings: object) -> object:
    return api.tune(nbest, references, initial_weights="moses.ini", output="o", **settings)


PATH = "expected a path, a str or a Path, found"

CASES: list[tuple[Callable[..., object], str]] = [
    (lambda: list(api.read_nbest(None)), "nbest: expected a path or lines of text, found None"),
    (lambda: list(api.read_nbest(b"nbest")), "nbest: expected a path or lines of text, found b'nbest'"),
    (lambda: list(api.read_nbest([3])), "<nbest>:1: expected a line as text or bytes, found 3"),
    (lambda: list(api.read_nbest("")), f"nbest: {PATH} ''"),
    (lambda: list(api.read_nbest("\ud800")), r"nbest: a file name cannot contain a lone surrogate, found '\ud800'"),
    (lambda: list(api.read_nbest("a\0b")), r"nbest: a file name cannot contain NUL, found 'a\x00b'"),
    (lambda: list(api.read_nbest("x" * 300)), "nbest: File name too long: 'xxx"),
    (lambda: list(api.read_nbest(gzip_lines())), "<nbest>:1: expected lines of text, found compressed bytes. "),
    (lambda: api.score(["0 ||| a ||| L= 1"], "de", {"A": "copied"}, "o"), f"nbest: {PATH} ["),
    (lambda: api.score("nbest", None, {"A": "copied"}, "o"), f"source: {PATH} None"),
    (lambda: api.score("nbest", "de", {"A": "copied"}, None), f"output: {PATH} None"),
    (lambda: api.score("nbest", "de", {"A": "copied"}, "o", cache=None), f"cache: {PATH} None"),
    (lambda: api.score("nbest", "de", ["length"], "o"), "features: expected a mapping, KIND[:ARG] by label, found ["),
    (lambda: api.score("nbest", "de", {"A": 3}, "o"), "features: 'A': expected KIND[:ARG] as text, found 3"),
    (lambda: api.score("nbest", "de", {3: "length"}, "o"), "features: expected names as text, found 3"),
    (lambda: api.score("nbest", "de", {"A": "copied"}, "o", device="gpu"), "device 'gpu': expected auto, cpu, cuda"),
    (lambda: api.score("nbest", "de", {"A": "copied"}, "o", precision=[]), "precision []: expected fp32, bf16"),
    (lambda: tune_to_o([], []), "nbest: expected at least one path, found none"),
    (lambda: tune_to_o("nbest", []), "references: expected at least one path"),
    (lambda: tune_to_o(3, "en"), "nbest: expected a path or a list of paths, found 3"),
    (lambda: tune_to_o("nbest", [None]), f"references: {PATH}"),
    (lambda: api.tune("nbest", "en", initial_weights=None, output="o"), f"initial_weights: {PATH} None"),
    (lambda: api.tune("nbest", "en", initial_weights="moses.ini", output=None), f"output: {PATH} None"),
    (lambda: tune_to_o("nbest", "en", folds="3"), "folds: expected a whole number"),
    (lambda: tune_to_o("nbest", "en", freeze="LM0"), "freeze: expected a list of names"),
    (lambda: api.evaluate("out", "en"), "systems: expected a mapping, translations by the name of the system, found"),
    (lambda: api.evaluate({"a": None}, "en"), "systems, 'a': expected a path or lines of text, found None"),
    (lambda: api.evaluate({"a": ["\ud800"]}, ["a"]), r"<a>:1: a lone surrogate, which is not valid text: '\ud800'"),
    (lambda: api.evaluate({"a": ["a"]}, None), "reference 0: expected a path or lines of text, found None"),
    (lambda: api.evaluate({"a": ["a"]}, ["a"], tokenize=None), "tokenize: expected text, found None"),
    (lambda: api.evaluate({"a": ["a"]}, ["a"], filters=["debpe"]), "filter: expected names such as"),
    (lambda: api.Reranker(None, "moses.ini"), "features: expected a mapping, KIND[:ARG] by label, found None"),
    (lambda: api.Reranker({}, None), f"weights: {PATH} None"),
    (lambda: api.Reranker({}, [1.0]), f"weights: {PATH} [1.0]"),
    (lambda: api.Reranker({}, {"LM0": "1"}), "weights of 'LM0': expected a sequence of numbers, found '1'"),
    (lambda: api.Reranker({}, {"LM0": b"12"}), "weights of 'LM0': expected a sequence of numbers, found b'12'"),
    (lambda: api.Reranker({}, {"LM0": [10**400]}), "weights of 'LM0': not finite, or an absolute value exceeds"),
    (lambda: api.Reranker({}, {3: [1.0]}), "weights: expected names of features as text, found 3"),
    (lambda: api.Reranker.load(None), f"folder: {PATH} None"),
    (lambda: api.Reranker.load("r", allow_code="no"), "allow_code: expected True or False, found 'no'"),
    (lambda: loaded().rerank("nbest", 3), "source: expected a path or lines of text, found 3"),
    (lambda: loaded().rerank("nbest", {"a": 1}), "source: expected a path or lines of text, found"),
    (lambda: loaded().rerank("nbest", "de", on_missing=None), "on_missing: expected 'error', 'blank'"),
    (lambda: train_on(None), f"source: {PATH} None"),
    (lambda: train_on("de", backward="yes"), "backward: expected True or False, found 'yes'"),
    (lambda: train_on("de", pretrained_model=None), f"pretrained_model: {PATH} None"),
]  # fmt: skip


def loaded() -> Any:
    return Reranker({}, "moses.ini")


def gzip_lines() -> list[bytes]:
    return gzip.compress(Path("nbest").read_bytes()).splitlines(keepends=True)


@pytest.mark.parametrize(("act", "message"), CASES)
def test_a_wrong_type_names_the_argument(folder: Path, act: Callable[[], object], message: str) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises(InputError) as caught:
        act()
    assert str(caught.value).startswith(message)
    assert sorted(folder.iterdir()) == before


def test_lines_may_be_bytes(reranker: Reranker) -> None:
    chosen = reranker.rerank("nbest", "de")
    lists = (hypothesis.line for each in read_nbest("nbest") for hypothesis in each.hypotheses)
    assert reranker.rerank(lists, Path("de").read_bytes().splitlines(keepends=True)) == chosen
    with open("nbest", "rb") as nbest:
        assert reranker.rerank(nbest, "de") == chosen


def test_weights_may_be_numpy_arrays_and_generators(folder: Path) -> None:
    weights = read_weights("moses.ini")
    arrays = {name: np.array(values) for name, values in weights.items()}
    generators = {name: (value for value in values) for name, values in weights.items()}
    assert Reranker({}, arrays).weights == Reranker({}, generators).weights == weights  # type: ignore[arg-type]


def test_the_file_for_missing_sentences_may_have_any_name(reranker: Reranker) -> None:
    Path("en").rename("blank")
    without = [line for line in lines("nbest") if not line.startswith("1 ")]
    assert reranker.rerank(without, "de", on_missing=Path("blank"))[1] == lines("blank")[1]


def train_on(corpus: str, **settings: object) -> object:
    return train("rnnsearch", corpus, "en", dev_source="de", dev_target="en", output="model", **settings)  # type: ignore[arg-type]


def test_train_gives_the_model_of_the_command(
    command: Command, folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    sizes = {"embedding_size": 4, "hidden_size": 4, "attention_size": 4, "epochs": 1, "min_frequency": 1}
    texts = ("--source", "de", "--target", "en", "--dev-source", "de", "--dev-target", "en")
    settings = [f"{name}={value}" for name, value in (sizes | {"lexicon": "bias"}).items()]
    Path("gdfa").write_text("0-0\n" * Path("de").read_text().count("\n"))
    texts = (*texts, "--alignment", "gdfa")
    assert command("train", "--preset", "cohn-align-sym", *texts, "--set", *settings, "--output", "by-hand")[0] == 0
    paths = {"source": "de", "target": Path("en"), "dev_source": "de", "dev_target": "en", "alignment": Path("gdfa")}
    model = train("cohn-align-sym", **paths, output=folder / "model", lexicon="bias", **sizes)  # type: ignore[arg-type]
    assert model.folders == (folder / "model" / "forward", folder / "model" / "backward")
    for each in model.folders:
        assert (each / "model.safetensors").read_bytes() == Path("by-hand", each.name, "model.safetensors").read_bytes()
    assert all(1 < value < 100 for value in model.perplexities)
    assert capfdbinary.readouterr() == (b"", b"")


def test_score_and_tune_give_the_results_of_the_commands(
    warned: Callable[[str], AbstractContextManager[None]],
    command: Command,
    folder: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    features = [word for label, text in FEATURES.items() for word in ("--feature", f"{label}={text}")]
    assert command("score", "nbest", "--source", "de", *features, "--output", "by-hand")[0] == 0
    score("nbest", folder / "de", FEATURES, "scored")
    assert Path("scored").read_bytes() == Path("by-hand").read_bytes()
    words = ("--folds", 2, "--runs", 1, "--tuner", "kbmira", "--set", "iterations=3", "--freeze", "Distortion0")
    status, ini, err = command("tune", "scored", "--reference", "en", "--initial-weights", "moses.ini", *words)
    assert status == 0, err
    with Path("moses.ini").open("a") as stream:
        stream.write("Other0= 1\n")
    with warned(r"^weights in moses\.ini without a feature in the list: Other0$"):
        tuned = tune(
            "scored",
            ["en"],
            initial_weights="moses.ini",
            output="ini",
            folds=np.int64(2),
            runs=np.int32(1),
            tuner="kbmira",
            iterations=3,
            freeze=["Distortion0"],
        )
    assert Path("ini").read_bytes() == ini
    assert tuned.weights == read_weights("ini") and FEATURES.keys() < tuned.weights.keys()
    gain = tuned.gain
    assert f"{gain.metric} on the tuning set {gain.before:.2f} -> {gain.after:.2f}" in err
    assert (
        f"{gain.old:.2f} without new features (other weights tuned again)" in err
        and f"{gain.new:.2f} with Copied, Match" in err
    )
    assert f"signature: {gain.signature}\n" in err
    assert tune("scored", "en", initial_weights="weights.ini", output="ini", folds=2, tuner="expected").gain.new is None
    assert capfdbinary.readouterr() == (b"", b"")


def test_evaluate_gives_the_results_of_the_command(
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
