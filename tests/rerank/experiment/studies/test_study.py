"""A small study: complete run, second run after changes, and cells that fail."""

import csv
import gzip
import json
import re
import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from moses_io.files.errors import InputError
from moses_io.files.folders import InUse, locked
from rerank.experiment.studies.run import run_or_remove
from rerank.metrics.metric import Metric
from rerank.metrics.significance import replicates_p_value

Command = Callable[..., tuple[int, bytes, str]]
Executed = Callable[[str], list[str]]

SMALL = 'preset = "cohn-align", embedding_size = 8, hidden_size = 8, attention_size = 8, epochs = 1, bpe = 0'
CELLS = [f"{size}/seed-{seed}/{system}" for size in (60, 120) for seed in (1, 2) for system in ("both", "alone")]


@pytest.fixture(scope="session")
def executed(executed: Executed) -> Executed:
    """Return a function that returns the executed stages of the study, without the stages inside cells."""
    return lambda err: [stage for stage in executed(err) if re.match(r"(cut|train|measure|run|compare) \d", stage)]


def bleu(folder: Path, name: str) -> float:
    report = json.loads((folder / "report.json").read_text())
    return next(system["BLEU"]["score"] for system in report["systems"] if system["system"] == name)


@pytest.mark.slow
def test_a_second_run_repeats_only_the_changed_stages(command: Command, executed: Executed, study: Path) -> None:
    status, out, err = command("study", study, "--device", "cpu", "--jobs", "1")
    assert status == 0
    models = [f"{size}/seed-{seed}/forward" for size in (60, 120) for seed in (1, 2)]
    compared = [f"compare {size}/{system}, test" for size in (60, 120) for system in ("both", "alone")]
    stages = [
        f"{kind} {name}" for kind, names in (("train", models), ("measure", models), ("run", CELLS)) for name in names
    ]
    assert executed(err) == ["cut 60", *stages, *compared]
    work = study.parent / "work"
    assert (work / "60/train.source").read_bytes() == b"".join(
        (study.parent / "train.de").read_bytes().splitlines(True)[:60]
    )
    assert out.decode() == (work / "study.txt").read_text()
    results = json.loads((work / "study.json").read_text())
    assert (results["sizes"], results["seeds"], results["failed"]) == ([60, 120], [1, 2], [])
    for each in results["systems"]:
        folders = [work / f"{each['size']}/seed-{seed}/{each['system']}" for seed in (1, 2)]
        values, moses = ([bleu(directory, name) for directory in folders] for name in ("reranked", "moses"))
        test = each["tests"]["test"]
        assert list(test["scores"]["BLEU"]["seeds"].values()) == values
        assert test["scores"]["BLEU"]["standard_deviation"] == pytest.approx(statistics.stdev(values))
        assert test["gain"]["mean"] == pytest.approx(statistics.mean(values) - moses[0])
        assert set(test["p_values"]) == {"moses", *({"both"} if each["system"] == "alone" else ())}
    rows = list(csv.DictReader((work / "study.csv").read_text().splitlines()))
    assert {row["name"] for row in rows} == {"forward", "both", "alone", "moses"}
    assert {path.name for path in work.glob("*.png")} == {
        "test.bleu.png",
        "dev.perplexity.png",
        "60.training.png",
        "120.training.png",
    }

    status, again, err = command("study", study, "--device", "cpu", "--jobs", "1")
    assert (status, again, executed(err)) == (0, out, [])
    assert command("run", work / "60/seed-1/alone/experiment.toml", "--device", "cpu")[0] == 0
    (work / "60/seed-1/alone/weights.ini").unlink()
    assert executed(command("study", study, "--device", "cpu", "--jobs", "1")[2]) == ["run 60/seed-1/alone"]
    assert (work / "60/seed-1/alone/weights.ini").exists()
    study.write_text(study.read_text().replace('alone = ["NMT"]', 'alone = ["Len"]'))
    changed = [f"run {cell}" for cell in CELLS if cell.endswith("alone")]
    assert executed(command("study", study, "--device", "cpu", "--jobs", "1")[2])[:4] == changed


@pytest.mark.slow
def test_a_moved_study_links_to_its_models_again(command: Command, executed: Executed, study: Path) -> None:
    study.write_text(study.read_text().replace('sizes = [60, "all"]\nseeds = 2', "seeds = 1"))
    assert command("study", study, "--device", "cpu", "--jobs", "1")[0] == 0
    directory = study.parent.rename(study.parent.with_name("moved"))
    status, _, err = command("study", directory / "study.toml", "--device", "cpu", "--jobs", "1")
    assert (status, executed(err)) == (0, ["run 120/seed-1/both", "run 120/seed-1/alone"])
    assert [link.exists() for link in directory.glob("work/120/seed-1/*/reranker/models/*")] == [True, True]


def test_files_that_no_earlier_study_wrote_are_not_overwritten(command: Command, study: Path) -> None:
    (study.parent / "work").mkdir()
    (study.parent / "work" / "study.md").write_text("mine\n")
    status, _, err = command("study", study, "--device", "cpu", "--jobs", "1")
    assert (status, "study.md: already exists and is not from an earlier run" in err) == (2, True)
    assert (study.parent / "work" / "study.md").read_text() == "mine\n"


def test_a_cell_that_another_run_uses_keeps_its_results(tmp_path: Path) -> None:
    (tmp_path / "result").write_text("there")
    with locked(tmp_path), pytest.raises(InUse):
        run_or_remove("cell", [str(tmp_path / "result")], lambda: locked(tmp_path).__enter__())
    assert (tmp_path / "result").read_text() == "there"


@pytest.mark.parametrize("at_work", ["", "forward"])
def test_a_model_that_another_process_uses_is_kept(
    warned: Callable[[str], AbstractContextManager[None]], tmp_path: Path, at_work: str
) -> None:
    """This holds also if the other process uses only one model of a pair."""

    def fail() -> None:
        raise InputError("dev.de:3: odd")

    folder = tmp_path / "model"
    (folder / "forward").mkdir(parents=True)
    (folder / "forward" / "model.safetensors").write_text("weights")
    with (
        warned("^train 60/seed-1/x failed: dev.de:3: odd$"),
        locked(folder / at_work),
        pytest.raises(InUse, match=f"{at_work or 'model'}: another process uses this folder"),
    ):
        run_or_remove("train 60/seed-1/x", [str(folder)], fail)
    assert (folder / "forward" / "model.safetensors").read_text() == "weights"


def test_failures_are_reported_and_other_cells_continue(command: Command, executed: Executed, study: Path) -> None:
    """The next run of the study repeats the failed cells."""
    text = study.read_text()
    (study.parent / "odd").mkdir()
    (study.parent / "dev.odd").write_text("x\n")
    (study.parent / "test.odd").write_text("x\n")
    bad = f'bad = {{ {SMALL}, pretrained_model = "odd" }}\n[features]\nBad = "neural:bad"\nOdd = "scores:{{set}}.odd"'
    broken = text.replace("[features]", bad).replace('both = ["NMT", "Len"]', 'both = ["Bad"]\nodd = ["Odd"]')
    study.write_text(broken.replace('sizes = [60, "all"]\nseeds = 2', "seeds = 1"))
    status, out, err = command("study", study, "--device", "cpu", "--jobs", "1")
    last = err.splitlines()[-1]
    assert (status, last) == (
        2,
        "moses-rerank study: 4 of 10 stages failed: train 120/seed-1/bad and 3 more. See the messages above. "
        "The same command repeats them",
    )
    assert re.search(r"^warning: train 120/seed-1/bad failed: \S+/odd: not a model folder", err, re.M)
    assert re.search(r"^warning: run 120/seed-1/odd failed: \S+/dev.odd", err, re.M)
    assert re.search(r"^ +120  both +- +- +- +-", out.decode(), re.M)
    assert re.search(r"^pairs +system .* chrF +TER$", out.decode(), re.M)
    study.write_text(text.replace('sizes = [60, "all"]\nseeds = 2', "seeds = 1"))
    status, out, err = command("study", study, "--device", "cpu", "--jobs", "1")
    assert status == 0 and not re.search(r"^ +120  both +-", out.decode(), re.M)
    assert executed(err) == ["run 120/seed-1/both", "compare 120/both, test", "compare 120/alone, test"]


def test_a_study_of_models_without_features(command: Command, study: Path) -> None:
    """One model starts from another. The report has both directions of a model pair."""
    study.write_text(
        'output = "work"\ntrain = { source = "train.de", target = "train.en" }\n'
        'dev = { source = "dev.de", reference = "dev.en" }\ntest = { source = "test.de", reference = "test.en" }\n'
        "[study]\nseeds = [2, 5]\n[models]\n"
        f"one = {{ {SMALL} }}\n"
        f'two = {{ {SMALL}, pretrained_model = "one" }}\n'
    )
    status, out, err = command("study", study, "--device", "cpu", "--jobs", "1")
    assert status == 0, err
    results = json.loads((study.parent / "work/study.json").read_text())
    one, two = results["models"]
    assert two["perplexity"]["dev"]["mean"] < one["perplexity"]["dev"]["mean"]
    for seed, value in one["perplexity"]["dev"]["seeds"].items():
        rows = (study.parent / f"work/120/seed-{seed}/models/one/metrics.jsonl").read_text().splitlines()
        assert value == pytest.approx(json.loads(rows[-1])["dev_perplexity"], rel=1e-5)
    assert re.search(r"^ +120  one +[\d,]+ +[\d.]+ ± [\d.]+ +[\d.]+ ± [\d.]+$", out.decode(), re.M)


def test_a_failure_removes_the_previous_output(
    warned: Callable[[str], AbstractContextManager[None]], tmp_path: Path
) -> None:
    """Outputs of other inputs must not be mistaken for the result."""
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("old")
    (folder / "inner").mkdir(parents=True)

    def fail() -> None:
        raise InputError("list:3: odd")

    with warned("^run 60/seed-1/x failed: list:3: odd$"):
        run_or_remove("run 60/seed-1/x", [str(file), str(folder), str(tmp_path / "none")], fail)
    assert list(tmp_path.iterdir()) == []


def test_p_values_are_computed_from_the_output_files(command: Command, tmp_path: Path) -> None:
    """Seeds that failed have no p-value."""
    from moses_io.filters import Filters
    from rerank.experiment.studies.run import compare

    reference, mine = tmp_path / "reference", [tmp_path / "mine1", tmp_path / "mine2"]
    reference.write_text("a b c d e\n" * 6)
    for number, path in enumerate([*mine, tmp_path / "theirs"]):
        path.write_text("".join(f"a b c d {'e' if (line + number) % 3 else 'x'}\n" for line in range(6)))
    others = {"moses": [str(tmp_path / "theirs"), str(tmp_path / "nowhere")], "lost": [str(tmp_path / "nowhere")]}
    output = tmp_path / "p.json"
    compare([str(reference)], [str(path) for path in mine], others, Filters(""), str(output))
    metric = Metric("bleu")

    def statistics_of(path: Path) -> list[list[float]]:
        return [metric.counter(["a b c d e"])(line) for line in path.read_text().splitlines()]

    one, other = np.array([statistics_of(tmp_path / "theirs")]), np.array([statistics_of(path) for path in mine])
    assert json.loads(output.read_text()) == {"moses": replicates_p_value(metric.formula.score, one, other)}


@pytest.fixture
def coded(study: Path) -> Path:
    """A study without models. Its only feature is a program in its folder: twice the words of a candidate."""
    tables = study.read_text().replace("[60, ", "[").replace("seeds = 2", "seeds = 1")
    head = tables.partition("[study.systems]")[0]
    tuning = tables.partition("[tuning]")[2]
    study.write_text(f'{head}[features]\nP = "command:./p.sh"\n[tuning]{tuning}')
    for folder, factor in ((study.parent, 2), (study.parent / "sub", 7)):
        folder.mkdir(exist_ok=True)
        (folder / "p.sh").write_text(f"#!/bin/sh\nawk -F '\\t' '{{print {factor} * split($2, words, \" \")}}'\n")
        (folder / "p.sh").chmod(0o755)
    return study


def test_programs_run_in_the_folder_of_the_study_file(
    command: Command, coded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(coded.parent / "sub")
    status, _, err = command("study", coded, "--allow-code", "--jobs", "1")
    assert status == 0, err
    cell = coded.parent / "work/120/seed-1/all"
    scored = gzip.decompress((cell / "dev.nbest.gz").read_bytes()).decode().splitlines()
    found = [float(re.findall(" P= ([^ ]+)", line)[0]) for line in scored]
    assert found == [2 * len(line.split(" ||| ")[1].split()) for line in scored]


def test_a_cell_that_runs_alone_finds_the_program(
    command: Command, coded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(coded.parent)
    assert command("study", coded, "--jobs", "1")[0] == 0
    cell = coded.parent / "work/120/seed-1/all"
    (cell / "dev.P.features.gz").unlink()
    status, _, err = command("run", cell / "experiment.toml", "--link")
    assert status == 0, err
    assert "score dev P" in err and "score dev P: up to date" not in err
    assert "join dev: up to date" in err
