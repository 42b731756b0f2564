"""Lists of subwords with an input filter give the same results as lists of words."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.weights import read_weights
from rerank.experiment.file import read_experiment
from rerank.experiment.filtering import filter_inputs
from rerank.experiment.plan import with_all_models
from rerank.library import score
from rerank.reranker.folder import read_manifest
from rerank.reranker.reranker import Reranker

Command = Callable[..., tuple[int, bytes, str]]

EXPERIMENT = """\
output = "work"
INPUT
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en", alignment = "train.links" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
test = { source = "test.de", reference = "test.en", nbest = "test.nbest", moses_output = "test.moses" }

[models.forward]
preset = "cohn-align"
embedding_size = 8
hidden_size = 8
attention_size = 8
epochs = 2
candidates = 2

[features]
NMT = "neural:forward[logprob,added]"
Consensus = "consensus:chrf"

[tuning]
tuner = "kbmira"
iterations = 2
runs = 1
folds = 0

[report]
ablation = false
"""


def cut(text: str) -> str:
    """Split each word into subwords of two characters."""
    return " ".join("@@ ".join(re.findall("..?", word)) for word in text.split(" "))


@pytest.fixture
def folders(small: Callable[..., Path]) -> tuple[Path, Path]:
    """A folder with words and a folder with subwords, each with all files of the experiment."""
    plain = small(pairs=60, sentences=10, candidates=5)
    subwords = plain / "subwords"
    subwords.mkdir()
    for name in ("dev", "test"):
        rows = [line.split(" ||| ") for line in (plain / f"{name}.nbest").read_text().splitlines()]
        rows = [[row[0], row[1].strip(), *row[2:4]] for row in rows]
        (plain / f"{name}.nbest").write_text("".join(" ||| ".join(row) + "\n" for row in rows))
        cut_rows = [[row[0], cut(row[1]), *row[2:4], "0-0"] for row in rows]
        (subwords / f"{name}.nbest").write_text("".join(" ||| ".join(row) + "\n" for row in cut_rows))
    best = {row[0]: row[1] for row in reversed(rows)}
    (plain / "test.moses").write_text("".join(f"{best[str(number)]}\n" for number in range(10)))
    for path in [*plain.glob("*.de"), *plain.glob("*.en"), plain / "test.moses"]:
        (subwords / path.name).write_text("".join(cut(line) + "\n" for line in path.read_text().splitlines()))
    for folder in (plain, subwords):
        (folder / "train.links").write_text("0-0\n" * 60)
    (subwords / "moses.ini").write_bytes((plain / "moses.ini").read_bytes())
    (plain / "e.toml").write_text(EXPERIMENT.replace("INPUT\n", ""))
    (subwords / "e.toml").write_text(EXPERIMENT.replace("INPUT", 'input_filter = "debpe"'))
    return plain, subwords


def test_score_gives_the_same_values_as_for_words(
    command: Command, folders: tuple[Path, Path], models: dict[str, Path], sample: Path
) -> None:
    plain, subwords = folders
    features = ["--feature", f"NMT=neural:{models['forward']}", "--feature", "Consensus=consensus:chrf"]
    features += ["--feature", f"LM=kenlm:{sample / 'lm.5gram.arpa.gz'}", "--feature", "Length=length"]
    status, expected, _ = command("score", plain / "dev.nbest", *features, "--source", plain / "dev.de")
    assert status == 0
    filtered = ["--source", subwords / "dev.de", "--input-filter", "debpe"]
    assert command("score", subwords / "dev.nbest", *features, *filtered)[:2] == (0, expected)


@pytest.fixture
def ran(command: Command, folders: tuple[Path, Path]) -> tuple[Path, Path]:
    """Return the results folders of both experiments."""
    for folder in folders:
        assert command("run", folder / "e.toml")[0] == 0
    plain, subwords = folders
    return plain / "work", subwords / "work"


def test_run_gives_the_same_translations_as_for_words(ran: tuple[Path, Path]) -> None:
    for name in ("test.reranked", "test.moses", "dev.translations.forward"):
        assert (ran[1] / name).read_text() == (ran[0] / name).read_text()
    assert read_weights(str(ran[1] / "weights.ini")) == read_weights(str(ran[0] / "weights.ini"))


def test_the_reranker_applies_the_filter(command: Command, folders: tuple[Path, Path], ran: tuple[Path, Path]) -> None:
    assert read_manifest(ran[1] / "reranker").input_filter == "debpe"
    assert "| filters for lists and sources | debpe |" in (ran[1] / "reranker" / "README.md").read_text()
    arguments = ["--source", folders[1] / "test.de", "--moses-output", folders[1] / "test.moses"]
    status, translations, _ = command("apply", ran[1] / "reranker", folders[1] / "test.nbest", *arguments)
    assert (status, translations) == (0, (ran[0] / "test.reranked").read_bytes())


def test_lines_for_missing_sentences_are_filtered(
    command: Command, folders: tuple[Path, Path], ran: tuple[Path, Path], tmp_path: Path
) -> None:
    lines = [line for line in (folders[1] / "test.nbest").read_text().splitlines(True) if not line.startswith("3 ")]
    (tmp_path / "gap").write_text("".join(lines))
    arguments = ["--source", folders[1] / "test.de", "--on-missing", folders[1] / "test.moses"]
    status, translations, _ = command("apply", ran[1] / "reranker", tmp_path / "gap", *arguments)
    assert status == 0
    assert translations.decode().splitlines()[3] == (folders[0] / "test.moses").read_text().splitlines()[3]


def test_python_applies_the_filter(folders: tuple[Path, Path], ran: tuple[Path, Path]) -> None:
    nbest, source = folders[1] / "test.nbest", folders[1] / "test.de"
    expected = (ran[0] / "test.reranked").read_text().splitlines()
    assert Reranker.load(ran[1] / "reranker").rerank(nbest, source) == expected


def test_score_of_python_applies_the_filter(command: Command, folders: tuple[Path, Path], tmp_path: Path) -> None:
    nbest, source = folders[1] / "dev.nbest", folders[1] / "dev.de"
    score(nbest, source, {"Len": "length"}, tmp_path / "scored", input_filter="debpe")
    expected = command("score", folders[0] / "dev.nbest", "--source", folders[0] / "dev.de", "--feature", "Len=length")[
        1
    ]
    assert (tmp_path / "scored").read_bytes() == expected


def test_a_second_run_filters_only_files_that_have_changed(
    command: Command, folders: tuple[Path, Path], ran: tuple[Path, Path]
) -> None:
    (folders[1] / "test.en").write_text("an@@ other text\n" * 10)
    status, _, err = command("run", folders[1] / "e.toml")
    assert status == 0
    assert "] filter dev.nbest: up to date" in err
    assert "] filter test.reference0: up to date" not in err
    assert "] train forward: up to date" in err


def test_a_planned_run_reads_filtered_files(folders: tuple[Path, Path]) -> None:
    path = folders[1] / "planned.toml"
    tables = EXPERIMENT.partition("[models.forward]")[0]
    path.write_text(tables.replace("INPUT", 'input_filter = "debpe"'))
    planned = with_all_models(filter_inputs(read_experiment(str(path))))
    assert 'input_filter = "debpe"' in planned.text
    assert 'source = "filtered/dev.source/dev.de"' in planned.text
    assert Path(planned.dev.source).read_text() == (folders[0] / "dev.de").read_text()
    assert planned.input_filters.text == "debpe"


@pytest.mark.parametrize("references", ["subwords", "words"])
def test_init_proposes_the_filter(references: str, command: Command, folders: tuple[Path, Path]) -> None:
    (folders[1] / "e.toml").unlink()
    for name in ("dev.en", "test.en") if references == "words" else ():
        shutil.copy(folders[0] / name, folders[1] / name)
    status, _, err = command("init", folders[1], "--output", folders[1] / "proposed.toml")
    assert status == 0, err
    proposed = (folders[1] / "proposed.toml").read_text()
    assert 'input_filter = "debpe"' in proposed
    assert re.search('dev = { source = "[^"]*dev.de", reference = "[^"]*dev.en", nbest = "[^"]*dev.nbest" }', proposed)


def test_a_study_with_an_input_filter_is_an_error(command: Command, folders: tuple[Path, Path]) -> None:
    path = folders[1] / "study.toml"
    path.write_text((folders[1] / "e.toml").read_text() + "[study]\nsizes = [50]\n")
    status, _, err = command("study", path)
    assert status == 2
    assert "study.toml: input_filter: a study reads all files as they are. Remove it" in err


def test_a_reranker_with_an_unknown_filter_is_an_error(
    command: Command, folders: tuple[Path, Path], ran: tuple[Path, Path]
) -> None:
    manifest = ran[1] / "reranker" / "reranker.json"
    manifest.write_text(manifest.read_text().replace('"debpe"', '"bpe"'))
    status, _, err = command(
        "apply", ran[1] / "reranker", folders[1] / "test.nbest", "--source", folders[1] / "test.de"
    )
    assert status == 2
    assert "reranker.json: input_filter: unknown filter 'bpe'" in err
