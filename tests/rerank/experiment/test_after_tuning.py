"""Reports of a run without test sets, without references, and with several test sets, all after the same tuning."""

import base64
import contextlib
import gzip
import io
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sacrebleu

from features.feature import Resources
from moses_io.files.errors import InputError
from moses_io.files.streams import digest
from moses_io.merge import merge_lists
from moses_io.weights import Weights, read_weights
from rerank import Reranker
from rerank.cli import main
from rerank.experiment.chain import attend, attentive, evaluate
from rerank.experiment.costs import Costs
from rerank.experiment.file import read_experiment
from rerank.experiment.run import run_experiment

Command = Callable[..., tuple[int, bytes, str]]
Executed = Callable[[str], list[str]]
Run = Callable[..., tuple[str, list[str]]]

SENTENCES, CANDIDATES = 30, 20
EXPERIMENT = """\
output = "work"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
TEST
[features]
Known = "scores:{set}.known"

[tuning]
tuner = "kbmira"
iterations = 3
folds = 2
fallback = false
"""
KNOWN = 'Known = "scores:{set}.known"\n'
WITHOUT = '{ source = "news.de", nbest = "news.nbest" }'
TWO = """
[[test]]
name = "talks"
source = "talks.de"
reference = "talks.en"
nbest = "talks.nbest"

[[test]]
name = "news"
source = "news.de"
nbest = "news.nbest"
"""


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Path:
    """A folder with texts, lists, a feature that correlates with the reference, and tuned weights of a run."""
    folder = tmp_path_factory.mktemp("tuned")
    for name, origin in (("train", "train"), ("dev", "dev"), ("news", "test"), ("test", "test"), ("talks", "dev")):
        for side in ("de", "en"):
            lines = (sample / f"{origin}.{side}").read_text(encoding="utf-8").split("\n")
            (folder / f"{name}.{side}").write_text("\n".join(lines[:SENTENCES]) + "\n", encoding="utf-8")
        if name != "train":
            write_list(folder / name, gzip.decompress((sample / f"{origin}.nbest.gz").read_bytes()).decode())
    shutil.copy(sample / "moses.ini", folder / "moses.ini")
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("TEST", ""))
    run_experiment(read_experiment(str(folder / "experiment.toml")), Resources("cpu"))
    return folder


def write_list(path: Path, content: str) -> None:
    references = path.with_suffix(".en").read_text(encoding="utf-8").split("\n")
    lines, scores, counts = [], [], [0] * SENTENCES
    for line in content.splitlines(keepends=True):
        number, text = int(line.split(" ", 1)[0]), line.split(" ||| ")[1]
        if number < SENTENCES and counts[number] < CANDIDATES:
            counts[number] += 1
            lines.append(line)
            words, answer = text.split(" "), references[number].split(" ")
            scores.append(f"{len(set(words) & set(answer)) - abs(len(words) - len(answer))}\n")
    path.with_suffix(".nbest").write_text("".join(lines), encoding="utf-8")
    path.with_suffix(".known").write_text("".join(scores))


@pytest.fixture
def folder(tuned: Path, tmp_path: Path) -> Path:
    """A copy of `tuned` with all stages up to date."""
    return shutil.copytree(tuned, tmp_path / "again")


def run_in(
    folder: Path, test: str, experiment: str = EXPERIMENT, *, command: Command, executed: Executed
) -> tuple[str, list[str]]:
    """Run the experiment with these test sets. Return the printed report and the executed stages."""
    (folder / "experiment.toml").write_text(experiment.replace("TEST", test))
    status, out, err = command("run", folder / "experiment.toml")
    assert status == 0, err
    return out.decode(), executed(err)


@pytest.fixture
def run(command: Command, executed: Executed) -> Run:
    """Return `run_in` for this process."""
    return partial(run_in, command=command, executed=executed)


class Ran(NamedTuple):
    """Folder of a run, its printed report, and the stages that ran."""

    folder: Path
    printed: str
    stages: list[str]

    @property
    def work(self) -> Path:
        return self.folder / "work"


@pytest.fixture(scope="module")
def run_copy(tuned: Path, executed: Executed) -> Callable[[Path, str], Ran]:
    """Return a function that runs the experiment with the given test sets in a copy of `tuned`."""

    def command(*arguments: object) -> tuple[int, bytes, str]:
        out, err = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main([str(argument) for argument in arguments])
        return status, out.buffer.getvalue(), err.getvalue()  # type: ignore[attr-defined]

    def run(folder: Path, test: str) -> Ran:
        shutil.copytree(tuned, folder)
        return Ran(folder, *run_in(folder, test, command=command, executed=executed))

    return run


@pytest.fixture(scope="module")
def without(run_copy: Callable[[Path, str], Ran], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run with a test set without a reference."""
    return run_copy(tmp_path_factory.mktemp("without") / "run", f"test = {WITHOUT}")


@pytest.fixture(scope="module")
def two(run_copy: Callable[[Path, str], Ran], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run with two test sets."""
    return run_copy(tmp_path_factory.mktemp("two") / "run", TWO)


def sets(folder: Path) -> list[list[str]]:
    """Return the names of the sets in each row of the ablation."""
    return [list(row["sets"]) for row in json.loads((folder / "work" / "ablation.json").read_text())]


MODELS = """
[models]
left = { preset = "cohn-align" }
idle = { preset = "cohn-align" }
plain = { preset = "encdec" }
pair = { preset = "cohn-align-sym" }
many = { preset = "rnnsearch", seeds = 2 }

[features]
Left = "neural:left"
Links = "links:left"
Both = "agreement:pair/forward,pair/backward"
Old = "neural:OLD[worst]"
Many = "neural:many"
"""


def test_the_attention_stage_has_the_models_that_features_use(tmp_path: Path, models: dict[str, Path]) -> None:
    """Models of pairs and groups occur once each. Unused models and models without attention are omitted."""
    old, path = str(models["backward"]), tmp_path / "experiment.toml"
    lists = EXPERIMENT.partition("[features]")[0].replace("TEST", f"test = {WITHOUT}")
    path.write_text(lists + MODELS.replace("OLD", old))
    experiment = read_experiment(str(path))
    names = ["left", "pair/forward", "pair/backward", "many-rnnsearch-1", "many-rnnsearch-2"]
    folders = {name: str(tmp_path / "work" / "models" / name) for name in names} | {old: old}
    assert attentive(experiment) == folders
    costs = Costs(experiment, "cpu")
    (stage,) = attend(experiment, "test", experiment.tests["test"], "cpu", costs)
    assert stage.name == "attend test" and set(folders.values()) < set(stage.inputs)
    assert stage.outputs[0] in evaluate(experiment, "test", experiment.tests["test"], costs).inputs
    path.write_text(lists + MODELS.partition("[features]")[0] + '[features]\nPlain = "neural:plain"\nLen = "length"\n')
    experiment = read_experiment(str(path))
    assert attend(experiment, "test", experiment.tests["test"], "cpu", Costs(experiment, "cpu")) == []


def test_without_a_test_set_the_report_is_cross_validated_on_dev(run: Run, folder: Path) -> None:
    printed, done = run(folder, "")
    assert done == []
    work = folder / "work"
    assert printed.startswith("BLEU on the tuning set ")
    assert printed.endswith("\n\n" + (work / "ablation.txt").read_text())
    assert printed in (work / "reranker" / "README.md").read_text()
    assert sets(folder) == [["dev"]] * 3
    assert list(work.glob("*report*")) == list(work.glob("test*")) == []


def test_the_report_counts_choices_by_merged_list(run: Run, folder: Path) -> None:
    for name in ("dev", "news"):
        lines = (folder / f"{name}.nbest").read_text().splitlines(keepends=True)
        for half in (0, 1):
            (folder / f"{name}.{half}").write_text("".join(lines[half::2]))
        halves = {"Even": str(folder / f"{name}.0"), "Odd": str(folder / f"{name}.1")}
        merge_lists(halves, str(folder / f"{name}.nbest"))
    printed, _ = run(folder, f"test = {WITHOUT}", EXPERIMENT.replace('Known = "scores:{set}.known"', ""))
    reranked = (folder / "work" / "test.reranked").read_text().split("\n")[:-1]
    even = {tuple(line.split("  ||| ")[0].split(" ||| ")) for line in (folder / "news.0").read_text().split("\n")}
    from_even = sum((str(number), line) in even for number, line in enumerate(reranked))
    counts = f"{from_even} only in Even, {SENTENCES - from_even} only in Odd, 0 in both"
    assert f"\nlists of the reranked translations: {counts}\n\n" in printed


def test_the_tuner_auto_chooses_on_the_selection_list(command: Command, run: Run, folder: Path) -> None:
    auto = EXPERIMENT.replace('tuner = "kbmira"\niterations = 3\n', 'tuner = "auto"\nclimbs = 1\n')
    talks = 'selection = { source = "talks.de", reference = "talks.en", nbest = "talks.nbest" }\n'
    shutil.copy(folder / "talks.known", folder / "selection.known")
    printed, done = run(folder, f"{talks}test = {WITHOUT}", auto)
    assert {"score selection Known", "join selection", "tune", "ablate selection"} <= set(done)
    work = folder / "work"
    gain = json.loads((work / "tuning.json").read_text())
    where = f"on {work / 'selection.nbest.gz'}"
    assert gain["measured"] == where and gain["chosen"] in [name for name, _, _ in gain["compared"]]
    assert f"\np: against the mean of tuners, BLEU {where}\n" in printed
    assert f", {gain['old']:.2f} -> {gain['new']:.2f} {where} (nested) (p " in printed
    assert json.loads((work / "report.json").read_text())["tuning"] == gain
    assert sets(folder) == [["dev", "selection"]] * 3
    fixed = EXPERIMENT.replace("TEST", talks)
    (folder / "experiment.toml").write_text(fixed)
    status, _, err = command("run", folder / "experiment.toml")
    assert status == 2 and "tuning: tuner: kbmira does not use the list of [selection], only auto does" in err


def changed_sentences(work: Path) -> int:
    before, after = ((work / f"test.{name}").read_text().split("\n") for name in ("moses", "reranked"))
    return sum(old != new for old, new in zip(before, after, strict=True))


def test_a_test_set_without_references_is_reranked_and_not_scored(without: Ran) -> None:
    assert without.stages == [
        "score test Known", "join test", "select Moses' choices", "rerank test", "evaluate", "save the reranker",
    ]  # fmt: skip
    assert without.printed == (without.work / "report.txt").read_text()
    first = without.printed.partition("\n\n")[0]
    result, moses, *_ = first.split("\n")
    changed = changed_sentences(without.work)
    assert result == f"{changed} of 30 sentences changed. Without references, translations are not scored."
    assert moses == "moses: 30 of 30 translations are in the list, 30 with rank 1, mean rank 1.0, median rank 1"
    html = (without.work / "report.html").read_text()
    for text in (without.printed, html.partition("<main")[0]):
        assert not re.search("sentence BLEU|oracle|chrF|TER", text)
    assert f"\ntest:\n{first}\n" in (without.work / "reranker" / "README.md").read_text()
    assert sets(without.folder) == [["dev"]] * 3


def test_without_references_the_report_lists_changed_sentences(without: Ran) -> None:
    """They are sorted by the difference in model score."""
    found = re.findall(r"^sentence \d+, model score (\S+)$", without.printed, re.MULTILINE)
    differences = [float(each) for each in found]
    assert len(differences) == min(changed_sentences(without.work), 6) > 1
    assert differences == sorted(differences, reverse=True)


def test_the_json_and_the_page_of_a_test_set_without_references(without: Ran) -> None:
    work, changed = without.work, changed_sentences(without.work)
    report = json.loads((work / "report.json").read_text())
    assert (report["sentences"], report["changed"], report["signatures"]) == (30, changed, {})
    assert report["systems"] == [{"system": "moses"}, {"system": "reranked"}]
    assert list(report["confidence"]["sets"]) == ["dev"]
    html = (work / "report.html").read_text()
    figures = ["Ablation of features", "Relative weights of features", "Choices beyond the first candidates"]
    assert re.findall("<svg.*\n<title>(.*)</title>", html) == figures
    assert set(report["analysis"]) == {"sentences", "depths", "judged"} and report["analysis"]["judged"] is None
    (index,) = re.findall('id="index">([^<]*)<', html)
    columns = json.loads(zlib.decompress(base64.b64decode(index)))
    assert len(columns["source"]) == 30 and sum(each is not None for each in columns["score_gain"]) == changed
    assert (columns["references"], columns["gain"]) == ([], [])


def test_two_test_sets_have_separate_stages(two: Ran) -> None:
    scored, chosen = (
        [name.format(each) for each in ("talks", "news") for name in names]
        for names in (("score {} Known", "join {}"), ("select Moses' choices, {}", "rerank {}"))
    )
    ending = ["ablate talks", "ablate", "evaluate, talks", "evaluate, news", "save the reranker"]
    assert two.stages == [*scored, *chosen, *ending]


def test_reports_of_two_test_sets(two: Ran) -> None:
    """Only talks has a reference."""
    work = two.work
    reports = {name: (work / f"{name}.report.txt").read_text() for name in ("talks", "news")}
    assert two.printed == "\n".join(f"{name}:\n{report}" for name, report in reports.items())
    assert re.search(r"^features +dev, cross-validated +p +talks +p$", reports["talks"], re.MULTILINE)
    assert re.search(r"^features +dev, cross-validated +p$", reports["news"], re.MULTILINE)
    assert sets(two.folder) == [["dev", "talks"]] * 3
    fits = json.loads((work / "talks.report.json").read_text())["confidence"]["sets"]
    assert [sum(quarter["count"] for quarter in fit["quarters"]) for fit in fits.values()] == [SENTENCES] * 2
    assert re.search(rf"^talks +{fits['talks']['correlation']:.3f} +\S+ .* > ", reports["talks"], re.MULTILINE)
    assert "\ntalks  " not in reports["news"]
    assert "BLEU by" in reports["talks"] and "BLEU by" not in reports["news"]
    card = (work / "reranker" / "README.md").read_text()
    assert all(f"\n{name}:\n{report.partition(chr(10) * 2)[0]}\n" in card for name, report in reports.items())


def test_only_stages_of_changed_inputs_run_again(run: Run, two: Ran, tmp_path: Path) -> None:
    folder = shutil.copytree(two.folder, tmp_path / "again")
    assert run(folder, TWO) == (two.printed, [])
    (folder / "train.en").write_text("another text\n" * SENTENCES)
    assert run(folder, TWO)[1] == ["evaluate, talks"]

    (folder / "news.known").write_text("0\n" * len((folder / "news.known").read_text().split()))
    changed = ["score news Known", "join news", "rerank news", "evaluate, news", "save the reranker"]
    assert run(folder, TWO)[1] == changed
    shutil.copy(folder / "train.en", folder / "talks.en")
    changed = ["ablate talks", "ablate", "evaluate, talks", "save the reranker"]
    assert run(folder, TWO)[1] == changed
    assert run(folder, f"test = {WITHOUT}")[1][-1] == "save the reranker"


def test_ablation_results_follow_renamed_test_sets(run: Run, folder: Path) -> None:
    both = f'{TWO}reference = "news.en"\n'
    run(folder, both)
    before = json.loads((folder / "work" / "ablation.json").read_text())
    for one, other in (("talks", "kept"), ("news", "talks"), ("kept", "news")):
        (folder / f"{one}.known").rename(folder / f"{other}.known")
        both = both.replace(f'name = "{one}"', f'name = "{other}"')
    assert "ablate" in run(folder, both)[1]
    after = json.loads((folder / "work" / "ablation.json").read_text())
    for one, other in zip(before, after, strict=True):
        assert one["sets"]["talks"] == other["sets"]["news"] != one["sets"]["news"] == other["sets"]["talks"]


def test_a_feature_that_is_now_in_the_lists_has_no_ablation_row(command: Command, run: Run, folder: Path) -> None:
    text = EXPERIMENT.replace("[tuning]", 'Len = "length"\n[tuning]')
    run(folder, "", text)
    shutil.copy(folder / "work" / "dev.nbest.gz", folder / "scored.gz")
    rows = [row["name"] for row in json.loads((folder / "work" / "ablation.json").read_text())]
    without = text.replace('Known = "scores:{set}.known"', "").replace("dev.nbest", "scored.gz")
    listed = [
        "score",
        folder / "dev.nbest",
        "--source",
        folder / "dev.de",
        "--feature",
        f"Known=scores:{folder}/dev.known",
    ]
    assert command(*listed, "--output", folder / "scored.gz")[0] == 0
    run(folder, "", without)
    assert "+ Known" in rows
    assert not [row for row in json.loads((folder / "work" / "ablation.json").read_text()) if "Known" in row["name"]]


def test_moses_parity_with_new_features(run: Run, folder: Path) -> None:
    """The ablation omits features, which freezes only features with constant values."""
    text = EXPERIMENT.replace("iterations = 3", 'parity = "moses"\niterations = 3')
    assert "tune" in run(folder, "", text)[1]
    assert "parity:moses" in json.loads((folder / "work" / "tuning.json").read_text())["signature"]


def test_an_output_folder_that_links_to_itself_is_an_error(command: Command, folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("TEST", "").replace('"work"', '"loop"'))
    status, _, err = command("run", folder / "experiment.toml")
    assert (status, "Traceback" in err, "loop" in err.splitlines()[-1]) == (2, False, True)


def test_a_folder_name_with_the_set_placeholder_is_an_error(command: Command, folder: Path) -> None:
    folder = folder.rename(folder.with_name("a{set}b"))
    status, _, err = command("run", folder / "experiment.toml")
    assert status == 2 and "{set} stands for the name of a set. The folder" in err


def test_the_model_card_follows_a_renamed_corpus(run: Run, folder: Path) -> None:
    for side, other in (("de", "nl"), ("en", "fy")):
        (folder / f"train.{side}").rename(folder / f"corpus.{other}")
    text = EXPERIMENT.replace("train.de", "corpus.nl").replace("train.en", "corpus.fy")
    assert run(folder, "", text)[1] == ["save the reranker"]
    assert (folder / "work" / "reranker" / "README.md").read_text().startswith("# Reranker nl → fy")


def test_a_reranker_estimates_confidence(command: Command, run: Run, folder: Path) -> None:
    """`apply` and `rerank --estimator` give the same estimates. A reranker without an estimator still chooses."""
    run(folder, f"test = {WITHOUT}")
    work, estimates = folder / "work", [folder / "applied", folder / "reranked"]
    apply = ["apply", work / "reranker", folder / "news.nbest", "--source", folder / "news.de"]
    apply += ["--feature", f"Known=scores:{folder / 'news.known'}"]
    rerank = ["rerank", work / "test.nbest.gz", "--weights", work / "weights.ini"]
    rerank += ["--estimator", work / "confidence.json"]
    chosen = [command(*words, "--confidence", path)[:2] for words, path in zip((apply, rerank), estimates, strict=True)]
    assert chosen[0] == chosen[1] and chosen[0][0] == 0
    assert estimates[0].read_bytes() == estimates[1].read_bytes()
    assert estimates[0].read_bytes().count(b"\n") == SENTENCES
    (work / "reranker" / "confidence.json").write_text("{}")
    assert "confidence.json: changed since the reranker was made" in command(*apply)[2]
    (work / "reranker" / "confidence.json").unlink()
    manifest = json.loads((work / "reranker" / "reranker.json").read_text())
    del manifest["files"]["confidence.json"]
    (work / "reranker" / "reranker.json").write_text(json.dumps(manifest))
    assert command(*apply)[:2] == (0, (work / "test.reranked").read_bytes())
    status, out, err = command(*apply, "--confidence", folder / "none")
    assert (status, out, "no confidence.json, which --confidence needs" in err) == (2, b"", True)


def test_list_depth_analysis_agrees_with_the_evaluation(run: Run, folder: Path) -> None:
    printed, _ = run(folder, 'test = { source = "test.de", reference = "test.en", nbest = "test.nbest" }')
    work = folder / "work"
    report = json.loads((work / "report.json").read_text())
    (moses, reranked), best, analysis = report["systems"], report["oracle"], report["analysis"]
    first, last = analysis["depths"][0], analysis["depths"][-1]
    assert first["reranked"] == first["oracle"] == pytest.approx(moses["BLEU"]["score"])
    assert last["reranked"] == pytest.approx(reranked["BLEU"]["score"])
    assert last["oracle"] == pytest.approx(best["BLEU"]["score"])
    assert last["candidates"] == CANDIDATES and last["deeper"] == 0
    judged = analysis["judged"]
    assert sum(each["sentences"] for each in judged["lengths"]) == SENTENCES
    assert sum(each["sentences"] for each in judged["margins"]) == SENTENCES
    gains = judged["gains"]
    assert f", {gains['rose']} with a higher sentence BLEU and {gains['fell']} with a lower one.\n" in printed
    assert gains["rose"] + gains["fell"] == sum(gains["counts"]) == SENTENCES - gains["stayed"]
    assert re.search(rf"^oracle +{first['oracle']:.2f} .* {last['oracle']:.2f}$", printed, re.MULTILINE)
    assert re.findall("<svg.*\n<title>(.*)</title>", (work / "report.html").read_text()) == [
        "Ablation of features",
        "Relative weights of features",
        "Gains in sentence BLEU",
        "BLEU by margin of Moses&#x27; total",
        "BLEU by number of candidates",
        "F1 of words by frequency",
        "N-grams won and lost",
        "BLEU of the sentences of test: expected and actual",
    ]


def test_another_confidence_metric_repeats_only_the_estimation(run: Run, folder: Path) -> None:
    test = 'test = { source = "test.de", reference = "test.en", nbest = "test.nbest" }'
    printed, done = run(folder, test, f'{EXPERIMENT}confidence = "chrf"\n')
    assert "estimate confidence" in done and not {"tune", "ablate dev"} & set(done)
    assert "Confidence estimation: expected > actual chrF2 of a sentence" in printed
    assert re.search(r"^  expected   chrF2 \d+\.\d", printed, re.MULTILINE)
    page = (folder / "work" / "report.html").read_text()
    assert "expected chrF2</text>" in page


@pytest.mark.parametrize(("name", "stage"), [("CONFIDENCE_FORMAT", "estimate confidence"), ("GAIN_FORMAT", "tune")])
def test_a_file_of_another_format_version_is_made_again(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, stage: str
) -> None:
    monkeypatch.setattr(f"rerank.experiment.chain.{name}", -1)
    assert run(folder, "")[1] == [stage]


def test_python_scores_include_confidence_estimates(
    warned: Callable[[str], AbstractContextManager[None]], command: Command, folder: Path
) -> None:
    """The estimates equal those of `apply`. An unsupported format of the estimator is only a warning."""
    reranker_folder = folder / "work" / "reranker"
    lists = (folder / "news.nbest", folder / "news.de")
    known = f"scores:{folder / 'news.known'}"
    apply = ["apply", reranker_folder, lists[0], "--source", lists[1], "--feature", f"Known={known}"]
    assert command(*apply, "--confidence", folder / "applied")[0] == 0
    reranker = Reranker.load(reranker_folder, features={"Known": known})
    scored = list(reranker.score(*lists))
    assert b"".join(each.estimate.line for each in scored if each.estimate) == (folder / "applied").read_bytes()
    assert {each.estimate.helped is None for each in scored if each.estimate} == {True, False}

    content = (reranker_folder / "confidence.json").read_text().replace('"format": 5', '"format": 2')
    (reranker_folder / "confidence.json").write_text(content)
    manifest = json.loads((reranker_folder / "reranker.json").read_text())
    manifest["files"]["confidence.json"] = digest(reranker_folder / "confidence.json")
    (reranker_folder / "reranker.json").write_text(json.dumps(manifest))
    old = Reranker.load(reranker_folder, features=reranker.features)
    with warned("no estimates: .*confidence.json: format 2, this version reads formats 3, 4 and 5. Make"):
        assert list(old.score(*lists)) == [replace(each, estimate=None) for each in scored]
    status, out, err = command(*apply, "--confidence", folder / "applied")
    assert (status, out) == (2, b"") and "format 2, this version reads formats 3, 4 and 5." in err.split("\n")[-2]


def test_a_reference_with_another_number_of_lines_is_an_error(command: Command, folder: Path) -> None:
    (folder / "talks.en").write_text("one line\n")
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("TEST", TWO))
    status, _, err = command("run", folder / "experiment.toml")
    assert (status, err) == (
        2,
        f"moses-rerank run: {folder}/talks.en has 1 line, {folder}/talks.de has 30\n",
    )


def second_candidates(nbest: Path) -> list[str]:
    """Return the second candidate of each sentence, as MBR decoding could choose it."""
    texts: dict[int, list[str]] = {}
    for line in nbest.read_text(encoding="utf-8").splitlines():
        texts.setdefault(int(line.split(" ", 1)[0]), []).append(line.split(" ||| ")[1].strip(" "))
    return [texts[number][1] for number in range(SENTENCES)]


@pytest.fixture
def moses_output(folder: Path) -> tuple[Path, list[str]]:
    """The Moses output of the test set. In one sentence, it is not among the candidates."""
    lines = second_candidates(folder / "talks.nbest")
    lines[4] = "none of them"
    shutil.copy(folder / "talks.known", folder / "test.known")
    path = folder / "talks.printed"
    path.write_text("".join(f"{line} \n" for line in lines), encoding="utf-8")
    return path, lines


TALKS = '{ source = "talks.de", reference = "talks.en", nbest = "talks.nbest", moses_output = "talks.printed" }'


def test_the_report_compares_with_the_moses_output(
    run: Run, folder: Path, moses_output: tuple[Path, list[str]]
) -> None:
    _, lines = moses_output
    report, _ = run(folder, f"test = {TALKS}")
    work = folder / "work"
    assert (work / "test.moses").read_text(encoding="utf-8").split("\n") == [*lines, ""]
    references = (folder / "talks.en").read_text(encoding="utf-8").split("\n")[:SENTENCES]
    before = json.loads((work / "report.json").read_text())["systems"][0]
    assert before["system"] == "moses"
    assert before["chrF"]["score"] == pytest.approx(sacrebleu.corpus_chrf(lines, [references]).score)
    assert "\nmoses: 29 of 30 translations are in the list, " in report
    reranked = (work / "test.reranked").read_text(encoding="utf-8").split("\n")
    changed = sum(old != new for old, new in zip([*lines, ""], reranked, strict=True))
    assert f": {changed} of 30 sentences changed, " in report.split("\n")[0]


def test_a_changed_moses_output_is_evaluated_without_rescoring(
    run: Run, folder: Path, moses_output: tuple[Path, list[str]]
) -> None:
    path, lines = moses_output
    run(folder, f"test = {TALKS}")
    path.write_text("".join(f"{line}\n" for line in ["another", *lines[1:]]), encoding="utf-8")
    done = run(folder, f"test = {TALKS}")[1]
    assert done == ["select Moses' choices", "rerank test", "evaluate", "save the reranker"]
    assert (folder / "work" / "test.moses").read_text(encoding="utf-8").startswith("another\n")


def test_a_sentence_without_candidates_keeps_the_moses_output(
    run: Run, folder: Path, moses_output: tuple[Path, list[str]]
) -> None:
    listed = (folder / "talks.nbest").read_text(encoding="utf-8").splitlines(keepends=True)
    scores = (folder / "talks.known").read_text().splitlines(keepends=True)
    kept = [place for place, line in enumerate(listed) if not line.startswith("7 ")]
    (folder / "talks.nbest").write_text("".join(listed[place] for place in kept), encoding="utf-8")
    (folder / "test.known").write_text("".join(scores[place] for place in kept))
    run(folder, f"test = {TALKS}")
    for system in ("moses", "reranked"):
        lines = (folder / "work" / f"test.{system}").read_text(encoding="utf-8").split("\n")
        assert lines[7] == moses_output[1][7]


def test_confidence_compares_with_the_moses_output_of_dev(run: Run, folder: Path) -> None:
    before = json.loads((folder / "work" / "confidence.json").read_text())
    (folder / "dev.printed").write_text("\n".join([*second_candidates(folder / "dev.nbest"), ""]), encoding="utf-8")
    text = EXPERIMENT.replace('nbest = "dev.nbest"', 'nbest = "dev.nbest", moses_output = "dev.printed"')
    assert run(folder, "", text)[1] == ["estimate confidence", "save the reranker"]
    after = json.loads((folder / "work" / "confidence.json").read_text())
    assert after["quality"] == before["quality"] and after["helped"] != before["helped"]


@pytest.mark.parametrize(
    ("content", "table", "message"),
    [
        ("a\n" * 29, f"test = {TALKS}", r"talks\.printed has 29 lines, \S+talks\.de has 30\n$"),
        ("a |0-0|\n" * 30, f"test = {TALKS}", r"talks\.printed:1: segmentation marks"),
        ("", f"selection = {TALKS}", r"unknown key selection\.moses_output"),
        (
            "",
            'test = { source = "talks.de", nbest = "talks.nbest", moses_output = 3 }',
            r"test\.moses_output: expected a path",
        ),
        ("", f"test = {TALKS.replace('printed', 'lost')}", r"talks\.lost: No such file"),
    ],
)
def test_a_faulty_moses_output_is_an_error(
    command: Command, folder: Path, content: str, table: str, message: str
) -> None:
    (folder / "talks.printed").write_text(content)
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("TEST", table))
    status, out, err = command("run", folder / "experiment.toml")
    assert (status, out, err.count("\n")) == (2, b"", 1) and re.search(message, err), err


def test_a_moses_output_of_other_sentences_is_a_warning(command: Command, folder: Path) -> None:
    (folder / "news.printed").write_text("another text\n" * SENTENCES)
    news = WITHOUT.replace(" }", ', moses_output = "news.printed" }')
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("TEST", f"test = {news}"))
    _, _, err = command("run", folder / "experiment.toml")
    assert re.search(r"warning: \S+news.printed: no line is a candidate of \S+news.nbest. Expected Moses' output", err)


def test_a_moses_output_of_other_sentences_is_a_warning_in_a_second_run(
    command: Command, run: Run, folder: Path
) -> None:
    """The first run has read the list and its source, but no Moses output."""
    run(folder, f"test = {WITHOUT}")
    (folder / "news.printed").write_text("another text\n" * SENTENCES)
    news = WITHOUT.replace(" }", ', moses_output = "news.printed" }')
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("TEST", f"test = {news}"))
    assert "news.printed: no line is a candidate of " in command("run", folder / "experiment.toml")[2]
    assert "warning" not in command("run", folder / "experiment.toml")[2]


@pytest.fixture
def applied(command: Command, folder: Path, moses_output: tuple[Path, list[str]]) -> Callable[..., Any]:
    """Apply the reranker of dev to the talks, with their Moses output."""
    apply = ["apply", folder / "work" / "reranker", folder / "talks.nbest", "--source", folder / "talks.de"]
    apply += ["--feature", f"Known=scores:{folder / 'talks.known'}", "--moses-output", moses_output[0]]
    return lambda *more: command(*apply, *more)


def test_apply_compares_with_the_moses_output(
    applied: Callable[..., Any], moses_output: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """If the Moses output is not among the candidates, there is no probability and the reranked output is chosen."""
    status, out, err = applied("--confidence", tmp_path / "estimates")
    helped = [bool(line.split("\t")[1]) for line in (tmp_path / "estimates").read_text().splitlines()]
    chosen = out.decode().splitlines()
    changed = [one != other for one, other in zip(chosen, moses_output[1], strict=True)]
    assert (status, helped) == (0, [*changed[:4], False, *changed[5:]])
    assert "Moses' output is not among the candidates in 1 of 30 sentences\n" in err


def test_python_compares_with_the_moses_output(
    applied: Callable[..., Any], moses_output: tuple[Path, list[str]], folder: Path, tmp_path: Path
) -> None:
    assert applied("--confidence", tmp_path / "estimates")[0] == 0
    reranker = Reranker.load(folder / "work" / "reranker", features={"Known": f"scores:{folder / 'talks.known'}"})
    path, lines = moses_output
    for output in (path, str(path), lines):
        scored = reranker.score(folder / "talks.nbest", folder / "talks.de", moses_output=output)
        estimates = b"".join(each.estimate.line for each in scored if each.estimate)
        assert estimates == (tmp_path / "estimates").read_bytes()
    with pytest.raises(InputError, match=r"^<moses_output> has 31 lines, \S+talks.de has 30$"):
        list(reranker.score(folder / "talks.nbest", folder / "talks.de", moses_output=[*lines, "one more"]))


def test_apply_checks_the_number_of_lines_of_the_moses_output(
    applied: Callable[..., Any], moses_output: tuple[Path, list[str]], folder: Path, tmp_path: Path
) -> None:
    path, lines = moses_output
    path.write_text("".join(f"{line}\n" for line in [*lines, "one more"]), encoding="utf-8")
    status, out, err = applied("--output", tmp_path / "out")
    assert (status, out) == (2, b"") and not (tmp_path / "out").exists()
    assert err == f"moses-rerank apply: {path} has 31 lines, {folder / 'talks.de'} has 30\n"


def test_apply_counts_the_lines_of_a_piped_source(
    applied: Callable[..., Any], moses_output: tuple[Path, list[str]], folder: Path, tmp_path: Path
) -> None:
    path, lines = moses_output
    path.write_text("".join(f"{line}\n" for line in [*lines, "one more"]), encoding="utf-8")
    read, write = os.pipe()
    with os.fdopen(write, "wb") as stream:
        stream.write((folder / "talks.de").read_bytes())
    status, _, err = applied("--source", f"/dev/fd/{read}", "--output", tmp_path / "out")
    os.close(read)
    assert status == 2 and not (tmp_path / "out").exists()
    assert err.endswith(f"{path} has 31 lines, /dev/fd/{read} has 30\n")


def with_tuning(settings: str) -> str:
    """Return the experiment with more settings of tuning."""
    return EXPERIMENT.replace("iterations = 3\n", f"iterations = 3\n{settings}\n")


def tuned_weights(folder: Path) -> Weights:
    return read_weights(str(folder / "work" / "weights.ini"))


def test_the_key_freeze_keeps_initial_weights(run: Run, folder: Path) -> None:
    initial = read_weights(str(folder / "moses.ini"))
    assert tuned_weights(folder)["TranslationModel0"] != initial["TranslationModel0"]
    assert "tune" in run(folder, "", with_tuning('freeze = ["TranslationModel0", "LM0"]'))[1]
    frozen = tuned_weights(folder)
    for name in ("TranslationModel0", "LM0"):
        assert frozen[name] == pytest.approx(initial[name])
    assert frozen["Distortion0"] != pytest.approx(initial["Distortion0"])


@pytest.mark.parametrize(("sign", "factor"), [("+", 1), ("-", -1)])
def test_the_key_sign_limits_weights(run: Run, folder: Path, sign: str, factor: int) -> None:
    """The feature Known grows with the quality of a candidate, so its free weight is above 0."""
    assert tuned_weights(folder)["Known"][0] > 0
    assert "tune" in run(folder, "", with_tuning(f'sign = ["Known:{sign}", "LM0:{sign}"]'))[1]
    limited = tuned_weights(folder)
    assert min(factor * limited["Known"][0], factor * limited["LM0"][0]) >= 0
    assert f"|sign:Known:{sign},LM0:{sign}" in json.loads((folder / "work" / "tuning.json").read_text())["signature"]


def test_the_key_ablate_logs_the_loss_without_each_feature(command: Command, folder: Path) -> None:
    """It includes Moses' own features, which the ablation of the report does not have."""
    (folder / "experiment.toml").write_text(with_tuning("ablate = true").replace("TEST", ""))
    status, _, err = command("run", folder / "experiment.toml")
    assert status == 0, err
    for name in ("Known", "LM0", "TranslationModel0"):
        assert re.search(rf"^  without {name}: [0-9.]+ \([-+][0-9.]+, p ", err, re.MULTILINE), err
    assert not [row for row in json.loads((folder / "work" / "ablation.json").read_text()) if "LM0" in row["name"]]


def test_link_makes_symbolic_links_in_the_reranker(command: Command, folder: Path) -> None:
    (folder / "lex.f2e").write_text("the die 0.5\n")
    (folder / "experiment.toml").write_text(
        EXPERIMENT.replace("TEST", "").replace(KNOWN, f'{KNOWN}Lex = "lexical:lex.f2e"\n')
    )
    table = folder / "work" / "reranker" / "tables" / "lex.f2e"
    for options, linked in (((), False), (("--link",), True), ((), False)):
        status, _, err = command("run", folder / "experiment.toml", *options)
        assert status == 0, err
        assert (table.is_symlink(), table.resolve() == folder / "lex.f2e") == (linked, linked)
        assert table.read_text() == "the die 0.5\n"
