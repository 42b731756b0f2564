"""Lists in a run: shortlists, and lists with missing sentences."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, bytes, str]]
Experiment = Callable[..., Path]

TEST = 'test = { source = "test.de", nbest = "test.nbest" }'


@pytest.mark.parametrize("size", ["2", '"auto"'])
def test_a_reranker_with_a_shortlist_reproduces_the_run(
    folder: Path, experiment: Experiment, command: Command, size: str
) -> None:
    features = f'Len = "length"\nCons = "consensus:chrf"\n\n[shortlist]\nfeatures = ["Cons"]\nsize = {size}'
    status, _, err = command("run", experiment(features, TEST), "--device", "cpu")
    assert (status, "oracle BLEU on dev" in err) == (0, True)
    status, out, err = command("apply", "work/reranker", "test.nbest", "--source", "test.de", "--nbest", "sorted")
    assert (status, out) == (0, (folder / "work" / "test.reranked").read_bytes()), err
    scored = gzip.decompress((folder / "work" / "test.nbest.gz").read_bytes())
    assert len((folder / "sorted").read_bytes().splitlines()) == len(scored.splitlines())


def test_a_shortlist_of_all_features_is_selected_by_the_moses_score(
    folder: Path, experiment: Experiment, command: Command
) -> None:
    features = 'Len = "length"\n\n[shortlist]\nfeatures = ["Len"]\nsize = 3'
    assert command("run", experiment(features, TEST), "--device", "cpu")[0] == 0
    assert (
        command("apply", "work/reranker", "test.nbest", "--source", "test.de")[1]
        == (folder / "work" / "test.reranked").read_bytes()
    )
    lines = gzip.decompress((folder / "work" / "test.nbest.gz").read_bytes()).splitlines()
    assert 30 <= len(lines) <= 40


def test_the_shortlist_of_a_set_has_the_translations_that_moses_printed(
    folder: Path, experiment: Experiment, command: Command
) -> None:
    """With MBR decoding, they are not the candidates with the highest totals."""
    lines = (folder / "test.nbest").read_text().splitlines()
    printed = {int(line.split(" ||| ")[0]): line.split(" ||| ")[1].strip() for line in lines}  # the last candidates
    (folder / "printed").write_text("".join(f"{text}\n" for text in printed.values()))
    test = TEST.replace(' nbest = "test.nbest"', ' nbest = "test.nbest", moses_output = "printed"')
    features = 'Len = "length"\n\n[shortlist]\nfeatures = ["Len"]\nsize = 1'
    assert command("run", experiment(features, test), "--device", "cpu")[0] == 0
    shorter = gzip.decompress((folder / "work" / "test.nbest.gz").read_bytes()).decode().splitlines()
    texts = {(int(fields[0]), fields[1].strip()) for fields in (line.split(" ||| ") for line in shorter)}
    assert set(printed.items()) <= texts


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('features = ["Lem"]', "shortlist.features: no feature 'Lem'. Features: Len, S"),
        ('features = "Len"', "shortlist.features: expected a list of labels of features, found 'Len'"),
        ("size = 3", "shortlist.features: expected a list of labels of features, found None"),
        ('features = ["S"]', "shortlist.features: S reads scores of all candidates from a file. Remove it"),
        ('features = ["Len"]\nsize = 0', 'shortlist.size: expected a whole number from 1, or "auto", found 0'),
        ('features = ["Len"]\nbest = 3', "unknown key shortlist.best"),
    ],
)
def test_wrong_shortlist_settings_are_errors(
    experiment: Experiment, command: Command, table: str, message: str
) -> None:
    features = f'Len = "length"\nS = "scores:scores"\n\n[shortlist]\n{table}'
    status, _, err = command("run", experiment(features))
    assert (status, message in err) == (2, True), err


@pytest.mark.parametrize("name", ["dev", "test"])
def test_a_list_that_ends_early(folder: Path, experiment: Experiment, command: Command, name: str) -> None:
    """Sentences of dev without candidates are not tuned on. Reranked translations of a test set would be empty."""
    lines = (folder / f"{name}.nbest").read_bytes().split(b"\n")
    kept = [line for line in lines if line and int(line.split()[0]) < 8]
    (folder / f"{name}.nbest").write_bytes(b"\n".join(kept) + b"\n")
    status, _, err = command("run", experiment('Length = "length"', TEST))
    message = f"{name}.nbest:{len(kept)}: the list ends at sentence 7, expected sentences up to 9"
    assert message in err and status == {"dev": 0, "test": 2}[name]
    assert (folder / "work/test.reranked").exists() == (name == "dev")


def test_dev_with_one_sentence_is_an_error_before_any_stage(
    folder: Path, experiment: Experiment, command: Command
) -> None:
    (folder / "dev.nbest").write_bytes(b"".join((folder / "dev.nbest").read_bytes().splitlines(keepends=True)[:6]))
    for name in ("dev.de", "dev.en"):
        (folder / name).write_text((folder / name).read_text().split("\n")[0] + "\n")
    status, _, err = command("run", experiment('Length = "length"'))
    assert status == 2 and "dev.nbest: folds: expected a list of 2 sentences or more, found 1" in err
    assert "[1/" not in err
