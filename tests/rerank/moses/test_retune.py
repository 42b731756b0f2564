import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from moses_io.weights import read_weights
from rerank.moses.retuning import find_references

Command = Callable[..., tuple[int, bytes, str]]
Until = Callable[[Callable[[], bool]], None]

BY_HAND = """\
output = "by-hand"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
"""
CORPUS = ("--corpus", "train", "--f", "de", "--e", "en", "--experiment", "models.toml", "--device", "cpu")

CLASH = '[features]\nDistortion0 = "length"\n'


def arguments(*more: str, references: str = "dev.en", decoder: str = "./moses") -> list[str]:
    return ["retune", "dev.de", references, decoder, "moses.ini", "--working-dir", "work", *CORPUS, *more]


@pytest.mark.slow
def test_retune_gives_the_output_of_run(command: Command, folder: Path, decoder: Callable[..., Path]) -> None:
    decoder()
    status, out, err = command(*arguments("--decoder-flags=-mbr -threads 2"))
    assert status == 0, err
    (folder / "by-hand.toml").write_text(BY_HAND + (folder / "models.toml").read_text())
    by_hand, printed, _ = command("run", "by-hand.toml", "--device", "cpu")
    assert (by_hand, out) == (0, printed)
    assert read_weights("work/weights.ini") == read_weights("by-hand/weights.ini")
    for made in ("work", "by-hand"):
        assert (
            command("apply", f"{made}/reranker", "test.nbest", "--source", "test.de", "--output", f"{made}.out")[0] == 0
        )
    choices = (folder / "work.out").read_bytes()
    assert choices == (folder / "by-hand.out").read_bytes()
    assert choices.count(b"\n") == 40 and choices != candidates_of(folder / "test.nbest", 1)

    (call,) = (folder / "calls").read_text().splitlines()
    flags, _, rest = call.partition(" -n-best-list ")
    assert flags == "-mbr -threads 2 -config moses.ini"
    assert rest.split(" ")[1:] == ["100", "distinct", "-input-file", "dev.de"]
    with gzip.open("work/dev.best100.gz") as stream:
        assert stream.read() == (folder / "dev.nbest").read_bytes()
    assert (folder / "work" / "dev.moses").read_bytes().replace(b" \n", b"\n") == candidates_of(folder / "dev.nbest", 1)
    assert (folder / "work" / "decoder.log").read_text() == "loading the model\n"

    status, again, err = command(*arguments("--decoder-flags=-mbr -threads 2"))
    assert (status, again, (folder / "calls").read_text().count("\n")) == (0, out, 1)
    assert all(line.endswith(": up to date") for line in err.splitlines())


def test_dev_is_decoded_again_only_for_changed_settings(
    command: Command, folder: Path, decoder: Callable[..., Path]
) -> None:
    """This also holds if a later step fails, here because a feature has a label of the list."""
    path = decoder()
    (folder / "models.toml").write_text(CLASH)

    def lists(*more: str) -> int:
        status, _, err = command(*arguments(*more))
        assert status == 2 and "'Distortion0'" in err.splitlines()[-1], err
        return (folder / "calls").read_text().count("\n")

    assert [lists(), lists(), lists("--nbest", "5"), lists("--nbest", "5")] == [1, 1, 2, 2]
    (folder / "moses.ini").write_text((folder / "moses.ini").read_text() + "\n")
    assert [lists(), lists()] == [3, 3]
    path.write_text(path.read_text() + "\n")
    assert [lists(), lists(), lists("--decoder-flags=-mbr"), lists()] == [4, 4, 5, 6]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("sys.exit(3)", "moses: exit status 3. See its messages in work/decoder.log"),
        ("import os; os.kill(os.getpid(), 11)", "moses: ended by signal 11. See its messages in work/decoder.log"),
        ("sys.exit()", "moses: wrote no n-best list. See its messages in work/decoder.log"),
        ('Path(options["-n-best-list"][0]).touch(); sys.exit()', "moses: wrote no n-best list. See its messages in"),
    ],
)
def test_a_decoder_that_fails_is_an_error(
    command: Command, folder: Path, decoder: Callable[..., Path], fault: str, message: str
) -> None:
    """A partial list is removed."""
    decoder('Path(options["-n-best-list"][0]).write_text("0 ||| a")\n' * ("3" in fault) + fault)
    status, out, err = command(*arguments())
    assert (status, out) == (2, b"")
    assert err.splitlines()[-1].startswith("moses-rerank retune: ") and message in err.splitlines()[-1]
    assert (folder / "work" / "decoder.log").read_text() == "loading the model\n"
    assert sorted(path.name for path in (folder / "work").iterdir()) == ["decoder.log", "decoding.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoder": "./nowhere"}, "./nowhere: no executable program of this name"),
        ({"decoder": "moses.ini"}, "moses.ini: no executable program of this name"),
        ({"decoder": "''"}, "the decoder: expected a program"),
        ({"decoder": "'moses"}, "the decoder: no closing quotation"),
        ({"references": "nowhere"}, "nowhere: no such file, nor nowhere0 or nowhere.ref0"),
        ({"more": '--decoder-flags="'}, "--decoder-flags: no closing quotation"),
        ({"more": "--corpus=nowhere"}, "nowhere.de: No such file or directory"),
        ({"more": "--alignment=nowhere"}, "nowhere: No such file or directory"),
        ({"more": "--experiment=nowhere"}, "nowhere: No such file or directory"),
        ({"references": "train.en"}, "train.en has "),
        ({"more": "--experiment=lm.toml"}, "no.arpa: No such file or directory"),
        ({"more": "--experiment=whole.toml"}, "whole.toml: dev: already set by the arguments. Remove it"),
        ({"more": "--experiment=code.toml"}, "code.toml: feature 'Mine', 'mine:Mine', runs code in a file that is not"),
    ],
)
def test_wrong_arguments_are_reported_before_decoding(
    command: Command,
    folder: Path,
    decoder: Callable[..., Path],
    change: dict[str, str],
    message: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    decoder()
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "code.toml"
    elsewhere.write_text('[features]\nMine = "mine:Mine"\n')
    (folder / "code.toml").symlink_to(elsewhere)
    (folder / "lm.toml").write_text('[features]\nLM = "kenlm:no.arpa"\n')
    (folder / "whole.toml").write_text('dev = { source = "dev.de" }\n')
    words = arguments(*change.pop("more", "").split(), **change)
    status, out, err = command(*words)
    assert (status, out) == (2, b"")
    (line,) = err.splitlines()
    assert message in line
    assert not (folder / "work").exists() and not (folder / "calls").exists()


def test_a_killed_decoding_is_repeated(folder: Path, decoder: Callable[..., Path], until: Until) -> None:
    """A killed decoder leaves no list. The next call removes its temporary files."""
    decoder('Path(options["-n-best-list"][0]).write_text("half")\nimport time; time.sleep(60)')
    (folder / "models.toml").write_text(CLASH)
    words = [sys.executable, "-m", "rerank.cli", *arguments()]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True)
    partial_list = folder / "work" / ".decoding" / "nbest"
    until(lambda: partial_list.exists() and partial_list.read_text() == "half")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert partial_list.read_text() == "half" and not (folder / "work" / "dev.best100.gz").exists()
    decoder()
    subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert not partial_list.parent.exists()
    assert "decode dev" in json.loads((folder / "work" / "decoding.json").read_text())
    with gzip.open("work/dev.best100.gz") as stream:
        assert stream.read() == (folder / "dev.nbest").read_bytes()


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_decoder_ends_with_retune(
    folder: Path,
    decoder: Callable[..., Path],
    until: Until,
    is_running: Callable[[str], bool],
    ended_by: signal.Signals,
) -> None:
    """Child processes of the decoder also end, if the signal is sent only to `retune`."""
    child = "import os, subprocess, time; child = subprocess.Popen(['sleep', '100'])"
    wait = "Path('pids.new').write_text(f'{os.getpid()} {child.pid}'); os.rename('pids.new', 'pids'); time.sleep(100)"
    decoder(f"{child}; {wait}")
    (folder / "models.toml").write_text(CLASH)
    process = subprocess.Popen([sys.executable, "-m", "rerank.cli", *arguments()], stderr=subprocess.PIPE)
    until((folder / "pids").exists)
    process.send_signal(ended_by)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if ended_by == signal.SIGINT else -ended_by)
    assert err.endswith(b"moses-rerank retune: stopped\n") == (ended_by == signal.SIGINT)
    pids = (folder / "pids").read_text().split()
    until(lambda: not any(is_running(pid) for pid in pids))


ALONE = """\
[features]
Len = "length"

[tuning]
tuner = "kbmira"
iterations = 2
runs = 1
folds = 2
"""


def candidates_of(nbest: Path, rank: int) -> bytes:
    """Return the candidate with the given rank (from 1) of each sentence, one per line."""
    texts: dict[str, list[str]] = {}
    for line in nbest.read_text().splitlines():
        sentence, text, _ = line.split(" ||| ", 2)
        texts.setdefault(sentence, []).append(text.strip(" "))
    return "".join(f"{each[rank - 1]}\n" for each in texts.values()).encode()


def test_the_decoder_output_is_the_moses_output_of_dev(
    command: Command, folder: Path, decoder: Callable[..., Path]
) -> None:
    """In this test the decoder prints the second candidates, as is possible with -mbr."""
    decoder("printed = 2")
    (folder / "models.toml").write_text(ALONE)
    status, _, err = command(*arguments("--nbest", "5"))
    assert (status, "highest total scores" in err, "no line is a candidate" in err) == (0, False, False), err
    assert (folder / "work" / "dev.moses").read_bytes().replace(b" \n", b"\n") == candidates_of(folder / "dev.nbest", 2)
    assert json.loads((folder / "work" / "confidence.json").read_text())["moses_output"] is True


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("printed = 0", "dev.moses has 0 lines, dev.de has "),
        ("print('a |0-0|', end=' ')", "dev.moses:1: segmentation marks such as |0-1| in the text"),
    ],
)
def test_a_faulty_decoder_output_is_a_warning(
    command: Command, folder: Path, decoder: Callable[..., Path], fault: str, message: str
) -> None:
    decoder(fault)
    (folder / "models.toml").write_text(ALONE)
    status, _, err = command(*arguments("--nbest", "5"))
    assert status == 0 and f"warning: work/{message}" in err, err
    assert ". The candidates with the highest total scores are used as Moses' choices on dev\n" in err
    assert json.loads((folder / "work" / "confidence.json").read_text())["moses_output"] is False


def test_references_are_found_like_in_mert_moses(folder: Path) -> None:
    for name in ("a0", "a1", "a3", "b.ref0", "b.ref1", "c", "c0"):
        (folder / name).touch()
    assert [find_references(stem) for stem in "abc"] == [["a0", "a1"], ["b.ref0", "b.ref1"], ["c"]]
    with pytest.raises(InputError, match=r"^d: no such file, nor d0 or d\.ref0$"):
        find_references("d")


def test_a_program_in_the_folder_of_the_experiment_file(
    command: Command, folder: Path, decoder: Callable[..., Path]
) -> None:
    """A program with the same name in the working directory is not run."""
    decoder()
    (folder / "sub").mkdir()
    for place, factor in ((folder / "sub", 2), (folder, 7)):
        (place / "p.sh").write_text(f"#!/bin/sh\nawk -F '\\t' '{{print {factor} * split($2, words, \" \")}}'\n")
        (place / "p.sh").chmod(0o755)
    tuning = '[tuning]\ntuner = "kbmira"\niterations = 2\nruns = 1\nfolds = 0\n'
    (folder / "sub" / "code.toml").write_text(f'[features]\nP = "command:./p.sh"\n{tuning}')
    status, _, err = command(*arguments("--nbest=5", "--experiment=sub/code.toml"))
    assert status == 0, err
    with gzip.open("work/dev.nbest.gz", "rt") as stream:
        for line in stream:
            words = line.split(" ||| ")[1].split()
            assert f" P= {2 * len(words)} " in line
