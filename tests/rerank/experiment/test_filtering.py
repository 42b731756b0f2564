"""Filtered copies of the files of an experiment."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from rerank.experiment.experiment import Experiment
from rerank.experiment.file import parse_experiment
from rerank.experiment.filtering import filter_inputs

EXPERIMENT = """\
output = "work"
input_filter = "FILTER"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en", alignment = "links", monolingual = "mono.en" }
dev = { source = "dev.de", reference = ["dev.en0", "dev.en1"], nbest = "dev.nbest.gz", moses_output = "dev.moses" }
selection = { source = "dev.de", reference = "dev.en0", nbest = "dev.nbest.gz" }
[models]
back = { preset = "rnnsearch", backward = true }
to = { preset = "rnnsearch" }
[features]
Length = "length"
FEATURES
[tuning]
tuner = "auto"
METRIC
"""
FILES = {
    "moses.ini": "[weight]\nLM= 1\n",
    "train.de": "das gro@@ ße haus\ndas\n",
    "train.en": "the b@@ ig house\nthe\n",
    "mono.en": "a b@@ ig house\n",
    "links": "0-0 1-1 1-2 2-1 3-3\n0-0\n",
    "dev.de": "gro@@ ß\n",
    "dev.en0": "b@@ ig\n",
    "dev.en1": "big\tone\n",
    "dev.moses": "b@@ ig\n",
}
NBEST = "0 ||| b@@ ig ||| LM= -1 ||| -2.5 ||| 0-0 0-1 \n0 ||| a  ||| LM= -2 ||| -3\n"


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Experiment]:
    """Write the files, with changes, and return their experiment."""

    def make(
        filters: str = "debpe", nbest: str = NBEST, metric: str = "", features: str = "", **changes: str
    ) -> Experiment:
        for name, text in (FILES | {name.replace("_", "."): text for name, text in changes.items()}).items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / "dev.nbest.gz").write_bytes(gzip.compress(nbest.encode()))
        text = EXPERIMENT.replace("FILTER", filters).replace("METRIC", metric).replace("FEATURES", features)
        return parse_experiment(text.encode(), str(tmp_path / "e.toml"))

    return make


def test_all_texts_are_filtered(read: Callable[..., Experiment]) -> None:
    copies = filter_inputs(read())
    texts = {Path(path).name: Path(path).read_text() for path in copies.files if not path.endswith((".gz", ".ini"))}
    assert texts == {
        "train.de": "das große haus\ndas\n",
        "train.en": "the big house\nthe\n",
        "mono.en": "a big house\n",
        "links": "0-0 1-1 2-2\n0-0\n",
        "dev.de": "groß\n",
        "dev.en0": "big\n",
        "dev.en1": "big\tone\n",  # a tab does not separate words of a reference
        "dev.moses": "big\n",
    }


def test_lists_have_no_alignments_of_subwords(read: Callable[..., Experiment]) -> None:
    copies = filter_inputs(read())
    expected = b"0 ||| big ||| LM= -1 ||| -2.5\n0 ||| a ||| LM= -2 ||| -3\n"
    assert gzip.decompress(Path(copies.dev.nbest).read_bytes()) == expected
    assert copies.selection
    assert gzip.decompress(Path(copies.selection.nbest).read_bytes()) == expected


def test_factors_keep_alignments(read: Callable[..., Experiment]) -> None:
    copies = filter_inputs(read("factors", "0 ||| big|ADJ ||| LM= -1 ||| -2.5 ||| 0-0\n"))
    assert gzip.decompress(Path(copies.dev.nbest).read_bytes()) == b"0 ||| big ||| LM= -1 ||| -2.5 ||| 0-0\n"
    assert copies.train.alignment.endswith("/links") and "filtered" not in copies.train.alignment


def test_copies_are_not_filtered_again(read: Callable[..., Experiment]) -> None:
    copies = filter_inputs(read())
    assert filter_inputs(copies) == copies


def test_features_of_the_corpus_read_its_copies(read: Callable[..., Experiment], tmp_path: Path) -> None:
    (tmp_path / "e").write_text("a\n")
    experiment = read(features='Ibm = "ibm1:train.de,train.en"\nOther = "ibm1:train.de,e"')
    copies = filter_inputs(experiment)
    assert copies.features["Ibm"].parts == [copies.train.source, copies.train.target]
    assert copies.features["Other"].parts == [copies.train.source, str(tmp_path / "e")]


def test_segmentation_marks_are_an_error_before_desegmentation(read: Callable[..., Experiment]) -> None:
    marked = "0 ||| ▁big |0-0| ▁house |1-1| ||| LM= -1 ||| -2.5\n"
    with pytest.raises(InputError, match=r"dev.nbest.gz:1: segmentation marks such as \|0-1\|"):
        filter_inputs(read("desentencepiece", marked))


def test_marks_in_the_moses_output_are_removed_by_the_metric_filter(read: Callable[..., Experiment]) -> None:
    copies = filter_inputs(read("desentencepiece", metric='filter = "marks"', dev_moses="▁big |0-0| ▁house |1-1|\n"))
    assert Path(copies.dev.moses_output).read_text() == "big house\n"


def test_a_truncated_list_is_a_warning(read: Callable[..., Experiment], caplog: pytest.LogCaptureFixture) -> None:
    experiment = read(nbest=NBEST + "\n0 ||| b@@ ig ||| LM= -2")
    filter_inputs(experiment)
    messages = {record.getMessage().partition("dev.nbest.gz")[2] for record in caplog.records if record.levelno >= 30}
    caplog.clear()
    assert messages == {
        ": 1 empty line, the first is line 3, which the filtered list does not have",
        ":4: the last line was cut off: no line end, and 3 fields, the line before has 4",
    }


def test_an_alignment_link_outside_the_sentence_is_an_error(read: Callable[..., Experiment]) -> None:
    with pytest.raises(InputError, match="links:2: the link 1-0 is outside a sentence pair of 1 and 1 words"):
        filter_inputs(read(links="0-0\n1-0\n"))


def test_a_separator_made_by_the_filter_is_an_error(read: Callable[..., Experiment]) -> None:
    with pytest.raises(InputError, match=r"dev.nbest.gz:1: the filter debpe makes the separator '\|\|\|' of parts"):
        filter_inputs(read(nbest="0 ||| |@@ |@@ | ||| LM= -1 ||| -1\n"))


def test_a_symbolic_link_instead_of_the_folder_is_an_error(read: Callable[..., Experiment], tmp_path: Path) -> None:
    experiment = read()
    (tmp_path / "work").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work" / "filtered").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="filtered: a symbolic link, expected a folder"):
        filter_inputs(experiment)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_wrong_weights_are_reported_before_files_are_copied(read: Callable[..., Experiment], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"moses\.ini"):
        filter_inputs(read(moses_ini="nothing"))
    assert not (tmp_path / "work").exists()
