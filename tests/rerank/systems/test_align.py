import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from features.models.alignment import Aligner
from moses_io.alignment import read_alignments
from rerank.systems import attention

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

SOURCE = "die Zeitung .\n\nim Wald gibt es eine Lampe .\nnichts\n"
TARGET = "the newspaper .\nnothing\nthere is a lamp in the wood .\n\n"
PAIRS = [
    (tuple(source.split()), tuple(target.split()))
    for source, target in zip(SOURCE.split("\n")[:-1], TARGET.split("\n")[:-1], strict=True)
]


@pytest.fixture
def texts(write: Write) -> tuple[object, ...]:
    return "--source", write("source", SOURCE), "--target", write("target", TARGET), "--device", "cpu"


@pytest.fixture(scope="module")
def aligned(pointed: dict[str, Path]) -> list[tuple[str, np.ndarray]]:
    """Lines of symmetrized links and attention matrices of both models."""
    found = Aligner([str(folder) for folder in pointed.values()], "cpu").align(PAIRS)
    assert sum(len(each.links) for each in found) > 3
    return [(" ".join(f"{i}-{j}" for i, j in sorted(each.links)), each.attention) for each in found]


def test_links_go_to_stdout(
    command: Command, texts: tuple[object, ...], pointed: dict[str, Path], aligned: list[tuple[str, np.ndarray]]
) -> None:
    status, out, err = command("align", *pointed.values(), *texts)
    assert (status, out.decode()) == (0, "".join(f"{line}\n" for line, _ in aligned))
    assert out.decode().split("\n")[1] == out.decode().split("\n")[3] == ""
    assert err.startswith("signature: preset:cohn-align|direction:forward|sha256:") and err.count("\n") == 1
    assert "|symmetrize:grow-diag-final-and|version:" in err
    status, out, err = command("align", pointed["forward"], *texts)
    assert (status, "symmetrize" in err) == (0, False)


def test_links_are_in_the_format_of_moses(
    command: Command, texts: tuple[object, ...], pointed: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "links.gz"
    assert command("align", pointed["forward"], *texts, "--output", path)[:2] == (0, b"")
    lengths = ([len(pair[side]) for pair in PAIRS] for side in (0, 1))
    assert len(read_alignments(str(path), *lengths)) == 4


def test_a_tab_separates_words_of_both_sides(
    command: Command, write: Write, texts: tuple[object, ...], pointed: dict[str, Path]
) -> None:
    with_tabs = [write(name, text.replace(" ", "\t")) for name, text in (("s", SOURCE), ("t", TARGET))]
    arguments = ("--source", with_tabs[0], "--target", with_tabs[1], "--device", "cpu")
    assert command("align", pointed["forward"], *arguments)[1] == command("align", pointed["forward"], *texts)[1]


def test_markup_in_a_source_is_an_error(command: Command, write: Write, pointed: dict[str, Path]) -> None:
    source, target = write("s", "die\ndie <zone> Zeitung </zone> .\n"), write("t", "the\nthe newspaper .\n")
    status, _, err = command("align", pointed["forward"], "--source", source, "--target", target, "--device", "cpu")
    assert status == 2 and f"{source}:2: '</zone>' is markup for Moses' -xml-input" in err


@pytest.mark.parametrize("name", ["soft.npz", "soft.json", "soft.json.gz"])
def test_soft_alignments(
    command: Command,
    texts: tuple[object, ...],
    pointed: dict[str, Path],
    aligned: list[tuple[str, np.ndarray]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """Pairs are processed two at a time. The files are reproducible and contain no present date."""
    monkeypatch.setattr(attention, "MAX_PAIRS", 2)
    path, contents = tmp_path / name, []
    for _ in range(2):
        assert command("align", *pointed.values(), *texts, "--soft", path)[0] == 0
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
    if name == "soft.npz":
        with np.load(path) as archive:
            found = [archive[str(number)] for number in range(4)]
            assert len(archive.files) == 4 and {each.dtype for each in found} == {np.dtype(np.float32)}
        with zipfile.ZipFile(path) as members:
            assert {member.date_time for member in members.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    else:
        decompress = gzip.decompress if name.endswith(".gz") else bytes
        assert not name.endswith(".gz") or contents[0][4:8] == b"\0" * 4  # time of the gzip header
        objects = json.loads(decompress(contents[0]))
        assert [(tuple(each["source"]), tuple(each["target"])) for each in objects] == PAIRS
        found = [np.array(each["attention"]) for each in objects]
    for matrix, (_, wanted) in zip(found, aligned, strict=True):
        np.testing.assert_allclose(matrix.reshape(wanted.shape), wanted, atol=2e-6)


def test_alignment_error_rate(
    command: Command, texts: tuple[object, ...], pointed: dict[str, Path], write: Write, tmp_path: Path
) -> None:
    """The links are compared with themselves. Results go to stderr, or to stdout if the links go to a file."""
    links = tmp_path / "links"
    assert command("align", *pointed.values(), *texts, "--output", links)[0] == 0
    count = len(links.read_text().split())
    gold = write("gold", links.read_text())
    status, out, err = command("align", *pointed.values(), *texts, "--gold", gold, "--output", links)
    lines = out.decode().split("\n")
    assert (status, err, len(lines)) == (0, "", 4)
    assert lines[0].split() == ["AER", "precision", "recall", "sentences", "links", "sure", "possible"]
    assert lines[1].split() == ["0.0000", "1.0000", "1.0000", "4", str(count), str(count), str(count)]
    assert lines[2].startswith("signature: preset:cohn-align|") and "|version:" in lines[2]
    status, out, err = command("align", *pointed.values(), *texts, "--gold", gold)
    assert (status, out, err) == (0, links.read_bytes(), "\n".join(lines))


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        ({"target": "a\nb\n"}, (), "target has 2 lines, "),
        ({"source": "", "target": ""}, (), "source: the file is empty. Expected one sentence per line"),
        (
            {"gold": "0-0 9-0\n\n\n\n"},
            ("--gold", "gold"),
            "gold:1: the link 9-0 is outside a sentence pair of 3 and 3 words",
        ),
        ({"gold": "0-0\n\n\n"}, ("--gold", "gold"), "gold has 3 lines, the text has more"),
        ({"gold": "0-0\n\n\n\n\n"}, ("--gold", "gold"), "gold has 5 lines, the text has 4"),
        ({}, ("--gold-base", "1"), "--gold-base is for the file of --gold"),
        ({"gold": "x\n"}, ("--gold", "gold"), "gold:1: expected links such as"),
        ({}, ("--symmetrize", "union"), "--symmetrize needs a forward and a backward model, found only forward models"),
        ({}, ("--soft", "soft.txt"), "--soft 'soft.txt': expected a name in .npz, .json or .json.gz"),
        ({}, ("--soft", "links.json", "--output", "links.json"), "--output and --soft name the same file or folder"),
        ({}, ("--source", "-", "--target", "-"), "stdin is named twice, and can be read once. Name a file"),
    ],
)
def test_wrong_arguments_are_errors_and_leave_no_file(
    command: Command,
    texts: tuple[object, ...],
    pointed: dict[str, Path],
    write: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        write(name, content)
    before = sorted(tmp_path.iterdir())
    outputs = ("--output", "links", "--soft", "soft.npz") if "--soft" not in arguments else ()
    status, out, err = command("align", pointed["forward"], *texts, *outputs, *arguments)
    assert (status, out, err.count("\n")) == (2, b"", 1)
    assert err.startswith("moses-rerank align: ") and message in err
    assert sorted(tmp_path.iterdir()) == before
