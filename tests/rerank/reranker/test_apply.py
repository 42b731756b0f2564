"""`apply` gives the output of `score` and `rerank`, for moved and linked rerankers and for growing lists."""

import gzip
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from features.request import parse_requests
from rerank.linear.shortlist import ShortlistSettings
from rerank.reranker.folder import Manifest, write_folder
from rerank.reranker.make import feature_rows

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

SENTENCES, CANDIDATES = 5, 30
MINE = """
import numpy as np
class Words:
    signature = "words"
    def __init__(self, argument, resources):
        pass
    def __call__(self, sentences):
        return np.array([[len(words)] for each in sentences for words in each.hypotheses], dtype=float)
"""


@pytest.fixture(scope="session")
def features(models: dict[str, Path], sample: Path) -> list[str]:
    return [
        f"NMT=neural:{models['forward']}[logprob,worst]", f"NMTback=neural:{models['backward']}",
        f"Rest=rest:{sample / 'moses.ini'}",
        f"Len=length:{models['forward'].parent / 'train.de'},{models['forward'].parent / 'train.en'}", "Copied=copied",
    ]  # fmt: skip


@pytest.fixture
def weights(sample: Path, write: Write) -> Path:
    new = "NMT= 0.2 -0.1\nNMTback= 0.1\nRest= 1\nLen= 0.05 0.3\nCopied= -0.5\n"
    return write("weights.ini", (sample / "moses.ini").read_text() + new)


@pytest.fixture
def reranker(tmp_path: Path, features: list[str], weights: Path) -> Path:
    write_folder(tmp_path / "reranker", parse_requests(features), str(weights), "tuned by hand")
    return tmp_path / "reranker"


@pytest.fixture(scope="session")
def lines(sample: Path) -> list[bytes]:
    with gzip.open(sample / "test.nbest.gz") as stream:
        first = [line for line in stream if int(line.split(b" ", 1)[0]) < SENTENCES]
    groups = [[line for line in first if line.startswith(b"%d " % sentence)] for sentence in range(SENTENCES)]
    return [line for group in groups for line in group[:CANDIDATES]]


@pytest.fixture
def texts(sample: Path, lines: list[bytes], write: Write) -> tuple[Path, Path]:
    """A list and its source."""
    source = (sample / "test.de").read_bytes().split(b"\n")[:SENTENCES]
    return write("list", b"".join(lines)), write("source", b"\n".join(source) + b"\n")


def test_apply_equals_score_and_rerank(
    command: Command, tmp_path: Path, reranker: Path, features: list[str], weights: Path, texts: tuple[Path, Path]
) -> None:
    nbest, source = texts
    scored, best = tmp_path / "scored", tmp_path / "best"
    options = [word for feature in features for word in ("--feature", feature)]
    assert command("score", nbest, "--source", source, *options, "--output", scored)[0] == 0
    chosen = command("rerank", scored, "--weights", weights, "--source", source, "--nbest", best)[1]
    moved = reranker.rename(tmp_path / "moved")
    for option in ((), ("--batch-size", 1), ("--batch-size", 3)):
        status, out, err = command("apply", moved, nbest, "--source", source, "--nbest", tmp_path / "mine", *option)
        assert (status, out) == (0, chosen), err
        if not option:
            assert (tmp_path / "mine").read_bytes() == best.read_bytes()
    command("apply", moved, nbest, "--source", source, "--nbest", tmp_path / "two", "--nbest-size", 2)
    two = best.read_bytes().splitlines(keepends=True)
    kept = [line for n, line in enumerate(two) if n < 2 or two[n - 2].split(b" ")[0] != line.split(b" ")[0]]
    assert (tmp_path / "two").read_bytes() == b"".join(kept)
    assert "signature: reranker|sha256:" in err


def test_the_signature_depends_on_everything_that_changes_choices() -> None:
    manifest = Manifest({"A": "copied"}, {"weights.ini": "0123456789ab"}, "tuned by hand")
    others = [
        replace(manifest, **change)
        for change in (
            {"features": {"B": "copied"}},
            {"files": {"weights.ini": "0123456789ac"}},
            {"candidates": {"M": "3:models/m"}},
            {"shortlist": ShortlistSettings(10, ("A",))},
            {"shortlist": ShortlistSettings(20, ("A",))},
            {"input_filter": "debpe"},
        )
    ]
    assert len({each.signature for each in (manifest, *others)}) == 7
    assert replace(manifest, tuned="", code="/home").signature == manifest.signature


def test_a_linked_reranker_gives_the_same_output(
    command: Command, tmp_path: Path, features: list[str], weights: Path, reranker: Path, texts: tuple[Path, Path]
) -> None:
    write_folder(tmp_path / "linked", parse_requests(features), str(weights), "", link=True)
    assert (tmp_path / "linked" / "models" / "forward").is_symlink()
    nbest, source = texts
    results = [command("apply", folder, nbest, "--source", source)[1] for folder in (reranker, tmp_path / "linked")]
    assert results[0] == results[1]


def test_a_large_pretrained_model_is_linked_and_its_template_is_copied(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "moses_rerank")
    (tmp_path / "hf").mkdir()
    weights, template = write("weights", "[weight]\nL= 1\nHF= 1\n"), write("prompt", "{source}: ")
    write("hf/model.safetensors", "x" * 100)
    write("hf/.cache", "x" * 100)  # hidden files do not count
    requests = parse_requests([f"HF=hf:{tmp_path / 'hf'}[de,en,template={template}]"])
    manifests = []
    for size in (100, 99):
        monkeypatch.setattr("rerank.reranker.folder.MAX_COPY_BYTES", size)
        manifests.append(write_folder(tmp_path / str(size), requests, str(weights), ""))
        assert (tmp_path / str(size) / "models" / "hf").is_symlink() == (size < 100)
        assert not (tmp_path / str(size) / "tables" / "prompt").is_symlink()
    assert manifests[0] == manifests[1]
    assert manifests[0].features == {"HF": "hf:models/hf[de,en,template=tables/prompt]"}
    assert sorted(manifests[0].files) == ["models/hf/model.safetensors", "tables/prompt", "weights.ini"]
    assert f"{tmp_path / 'hf'}: more than 1 GB, so the reranker links to it" in caplog.text


def test_sparse_weights_and_linked_tables_are_copied(command: Command, tmp_path: Path, write: Write) -> None:
    """The ini names a file of sparse weights, and the table is a symbolic link. Both files keep their names."""
    (tmp_path / "from").mkdir()
    write("from/sparse", "s_x 2\n")
    ini, table = write("from/sparse.ini", "[weight-file]\nsparse\n[weight]\nL= 1\n"), write("from/table7", "a x 0.5\n")
    (tmp_path / "from" / "lex.f2e").symlink_to(table)
    nbest, source = write("list", "0 ||| a ||| L= 1 s_x= 3 ||| 2\n"), write("source", "x\n")
    requests = parse_requests([f"Rest=rest:{ini}", f"Lex=lexical:{tmp_path / 'from' / 'lex.f2e'}"])
    for link in (False, True):
        folder = tmp_path / f"reranker{link}"
        weights = write("weights", "[weight]\nL= 1\nRest= 1\nLex= 1\n")
        write_folder(folder, requests, str(weights), "tuned by hand", link=link)
        status, _, err = command("apply", folder, nbest, "--source", source, "--nbest", tmp_path / "best")
        assert status == 0, err
        assert " Rest= -5 Lex= -" in (tmp_path / "best").read_text()
    (tmp_path / "from").rename(tmp_path / "to")
    assert command("apply", tmp_path / "rerankerFalse", nbest, "--source", source)[0] == 0


def test_lexical_tables_keep_their_direction(tmp_path: Path, write: Write) -> None:
    """One file has two names with different directions, and a folder name contains the other direction."""
    (tmp_path / "models" / "e2f").mkdir(parents=True)
    first, third = write("lex.f2e", "a x 0.5\n"), write("models/e2f/lex.f2e", "a x 0.7\n")
    (tmp_path / "lex.e2f").symlink_to(first)
    options = [f"A=lexical:{first}", f"B=lexical:{tmp_path / 'lex.e2f'}", f"C=lexical:{third}"]
    weights = write("weights", "[weight]\nL= 1\nA= 1\nB= 1\nC= 1\n")
    manifest = write_folder(tmp_path / "reranker", parse_requests(options), str(weights), "")
    assert manifest.features == {
        "A": "lexical:tables/lex.f2e", "B": "lexical:tables/lex.e2f", "C": "lexical:tables/2-lex.f2e",
    }  # fmt: skip


@pytest.mark.parametrize("name", [f"{'n' * 245}.f2e", "lex.f2e" + "n" * 240, "lex\n|.f2e"])
def test_unusual_file_names_of_tables(command: Command, tmp_path: Path, write: Write, name: str) -> None:
    """Two tables have the same name. The manifest and the model card list both."""
    nbest, source = write("list", "0 ||| a ||| L= 1 ||| 2\n"), write("source", "x\n")
    requests = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        requests.append(f"Lex{number}=lexical:{write(f'{number}/{name}', f'a x 0.{number + 1}')}")
    weights = write("weights", "[weight]\nL= 1\nLex0= 1\nLex1= 1\n")
    manifest = write_folder(tmp_path / "reranker", parse_requests(requests), str(weights), "tuned by hand")
    status, _, err = command("apply", tmp_path / "reranker", nbest, "--source", source, "--nbest", tmp_path / "best")
    assert status == 0, err
    # The values are log 0.1/2 and log 0.2/2, because NULL counts as a word.
    assert "Lex0= -2.99573227 Lex1= -2.30258509" in (tmp_path / "best").read_text()
    rows = "\n".join(feature_rows(manifest.features, {}))
    assert all(row.startswith("| Lex") for row in rows.split("\n"))


def test_a_missing_or_changed_reranker_is_an_error(
    command: Command, tmp_path: Path, reranker: Path, texts: tuple[Path, Path]
) -> None:
    manifest = json.loads((reranker / "reranker.json").read_text())

    def error_of(folder: Path) -> str:
        status, out, err = command("apply", folder, texts[0], "--source", texts[1], "--output", tmp_path / "out")
        assert (status, out, err.count("\n"), (tmp_path / "out").exists()) == (2, b"", 1, False)
        return err

    assert "not the folder of a reranker, it has no reranker.json" in error_of(tmp_path / "nowhere")
    for name in manifest["files"]:
        content = (reranker / name).read_bytes()
        (reranker / name).write_bytes(content + b" ")
        assert f"{name}: changed since the reranker was made" in error_of(reranker)
        (reranker / name).unlink()
        assert f"{name}: missing" in error_of(reranker)
        os.mkfifo(reranker / name)
        assert f"{name}: missing" in error_of(reranker)
        (reranker / name).unlink()
        (reranker / name).write_bytes(content)
    for changes, message in (
        ({"format": 9}, "format 9, this version reads formats 1 to 5"),
        ({"features": ["NMT"]}, "cannot read it (Expected `object`, got `array` - at `$.features`)"),
        ({"code": 3}, "cannot read it (Expected `str`, got `int` - at `$.code`)"),
        ({"candidates": {"A": "3:../x"}}, "'../x' is not a path inside the folder"),
        (
            {"candidates": {"A": "some:models/x"}},
            "'A': candidates: expected a whole number from 1 to 10000, found None",
        ),
        ({"files": {"/etc/passwd": "x"}}, "'/etc/passwd' is not a path inside the folder"),
        ({"files": {"../x": "x"}}, "'../x' is not a path inside the folder"),
        ({"features": {"A": "kenlm:/etc/passwd"}}, "'/etc/passwd' is not a path inside the folder"),
        ({"features": {"A": "neural:../../model"}}, "'../../model' is not a path inside the folder"),
        ({"features": {"A": "lexical:tables/pipe"}}, "'tables/pipe' is not among its files"),
        ({"candidates": {"A": "3:models/pipe"}}, "'models/pipe' is not among its files"),
        ({"files": {}, "features": {}}, "reranker.json: weights.ini is not among its files"),
        ({"features": {"A": "evil"}}, "unknown feature 'evil'"),
        (
            {"features": {"A": "evil:Evil"}},
            "feature 'A' of the reranker, 'evil:Evil', runs code. --allow-code permits it",
        ),
        ({"features": {"A=command:touch out;": "length"}}, "label 'A=command:touch out;': expected a letter"),
        ({"features": {"command:touch out #": "length"}}, "label 'command:touch out #': expected a letter"),
    ):
        (reranker / "reranker.json").write_text(json.dumps(manifest | changes))
        assert message in error_of(reranker)
    (reranker / "reranker.json").write_text("[" * 100_000)
    assert "nested too deeply" in error_of(reranker)
    shutil.rmtree(reranker)


def test_code_and_score_files_must_be_given_again(
    command: Command,
    tmp_path: Path,
    write: Write,
    texts: tuple[Path, Path],
    lines: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write("mine_to_apply.py", MINE)
    scores = write("scores", "1\n" * len(lines))
    requests = parse_requests(["Mine=mine_to_apply:Words", f"Other=scores:{scores}", "Shell=command:awk '{print NF}'"])
    zeros = "LexicalReordering0= 0 0 0 0 0 0\nDistortion0= 0\nLM0= 0\nWordPenalty0= 0\nPhrasePenalty0= 0\n"
    ini = write("ini", f"[weight]\n{zeros}TranslationModel0= 0 0 0 0\nMine= 1\nOther= 1\nShell= 1\n")
    write_folder(tmp_path / "reranker", requests, str(ini), "")
    apply = ("apply", "reranker", texts[0], "--source", texts[1])
    assert "'Mine' of the reranker, 'mine_to_apply:Words', runs code. --allow-code permits it" in command(*apply)[2]
    status, _, err = command(*apply, "--allow-code")
    assert (status, "Name their file by --feature Other=scores:FILE" in err) == (2, True)
    status, out, err = command(*apply, "--allow-code", "--feature", "Other=scores:scores")
    longest = [
        max((line.split(b" ||| ")[1].split() for line in lines if line.startswith(b"%d " % n)), key=len)
        for n in range(SENTENCES)
    ]
    assert (status, [line.split() for line in out.split(b"\n")[:-1]]) == (0, longest)
    status, _, err = command(*apply, "--feature", "Nobody=copied")
    assert (status, "the reranker has no feature 'Nobody'. It has Mine, Other, Shell" in err) == (2, True)


def start(*arguments: object) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    words = [sys.executable, "-m", "rerank.cli", *(str(argument) for argument in arguments)]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


def test_apply_reads_a_pipe_incrementally(
    reranker: Path, texts: tuple[Path, Path], lines: list[bytes], tmp_path: Path
) -> None:
    """Each translation is written when the next sentence begins. The source may grow together with the list."""
    sources = texts[1].read_bytes().splitlines(keepends=True)
    growing = tmp_path / "growing"
    growing.write_bytes(b"")
    program = start("apply", reranker, "--source", growing, "--batch-size", 1)
    assert program.stdin and program.stdout and program.stderr
    translations = []
    with growing.open("ab", buffering=0) as source:
        for sentence in range(SENTENCES):
            mine = [line for line in lines if line.startswith(b"%d " % sentence)]
            program.stdin.write(mine[0])
            program.stdin.flush()
            if sentence:
                translations.append(program.stdout.readline())
            time.sleep(0.05)
            source.write(sources[sentence])
            program.stdin.writelines(mine[1:])
    out, err = program.communicate()
    whole = subprocess.run(
        [sys.executable, "-m", "rerank.cli", "apply", reranker, texts[0], "--source", texts[1]],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}, capture_output=True, check=True,
    )  # fmt: skip
    assert (program.returncode, b"".join(translations) + out) == (0, whole.stdout), err


def test_a_file_on_stdin_needs_no_final_newline(reranker: Path, texts: tuple[Path, Path]) -> None:
    texts[0].write_bytes(texts[0].read_bytes().rstrip(b"\n"))
    apply = [sys.executable, "-m", "rerank.cli", "apply", reranker, "--source", texts[1]]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with texts[0].open("rb") as stdin:
        ran = subprocess.run(apply, stdin=stdin, env=environment, capture_output=True, check=True)
    assert len(ran.stdout.splitlines()) == SENTENCES


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (-9, b"the list ends within this line"),
        (0, b"the list ends at sentence 2, expected sentences up to 4. The decoder probably stopped early"),
    ],
)
def test_a_list_from_a_killed_decoder_is_an_error(
    reranker: Path, texts: tuple[Path, Path], lines: list[bytes], left: int, message: bytes
) -> None:
    written = b"".join(line for line in lines if int(line.split(b" ", 1)[0]) < 3)
    program = start("apply", reranker, "--source", texts[1], "--batch-size", 1)
    out, err = program.communicate(written[: left or None])
    assert (program.returncode, out.count(b"\n")) == (2, 2 if left else 3)
    assert message in err.splitlines()[-1]
    assert b"Traceback" not in err


def test_a_source_that_is_too_short_is_an_error(
    command: Command, reranker: Path, texts: tuple[Path, Path], write: Write
) -> None:
    status, _, err = command("apply", reranker, texts[0], "--source", write("short", "nur eins\n"), "--batch-size", 1)
    assert status == 2
    assert err.endswith("sentence 1 is beyond the source, which has 1 line (ids from 0 to 0)\n")
    assert command("apply", reranker, "-", "--source", "-")[0] == 2


def test_a_list_that_does_not_match_is_an_error_before_scoring(
    command: Command, reranker: Path, texts: tuple[Path, Path], write: Write
) -> None:
    other = write("other", texts[0].read_bytes().replace(b"LM0=", b"LM1="))
    status, _, err = command("apply", reranker, other, "--source", texts[1])
    assert (status, "other:1: feature 'LM1' has no weight in" in err) == (2, True)
    less = write("less", re.sub(rb"LM0= \S+ ", b"", texts[0].read_bytes()))
    status, _, err = command("apply", reranker, less, "--source", texts[1])
    unlisted = "has weights for features that are not in the list: LM0"
    assert (status, unlisted in err, "candidates/s" in err) == (2, True, False)
    status, _, err = command("apply", reranker, texts[0], "--source", texts[1], "--nbest-size", 2)
    assert (status, "--nbest-size needs --nbest" in err) == (2, True)


def test_the_shortlist_has_the_candidate_that_moses_printed(command: Command, tmp_path: Path, write: Write) -> None:
    """With MBR decoding, this is not the candidate with the highest total."""
    rows = [("a", -1, 0), ("b", 0, 0), ("c", 0, 2), ("d", 0, 1)]
    lines = [f"0 ||| {text} ||| L= {value} ||| {total}\n" for text, value, total in rows]
    nbest, source, printed = write("list", "".join(lines)), write("source", "x\n"), write("printed", "d \n")
    write_folder(
        tmp_path / "reranker",
        parse_requests(["Copied=copied"]),
        str(write("w", "L= 1\nCopied= 1\n")),
        "tuned by hand",
        shortlist=ShortlistSettings(1, ("Copied",)),
        shortlist_weights=str(write("s", "L= -1\n")),
    )
    apply = ("apply", tmp_path / "reranker", nbest, "--source", source, "--nbest", tmp_path / "best")
    status, _, err = command(*apply, "--moses-output", printed)
    assert status == 0, err
    texts = [line.split(" ||| ")[1] for line in (tmp_path / "best").read_text().splitlines()]
    assert sorted(texts) == ["a", "c", "d"] and "Moses' output is not among" not in err
