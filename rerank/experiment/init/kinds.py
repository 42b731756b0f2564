"""Detection of the kind of each file from its content."""

import codecs
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from features.kinds.language_model import BINARY
from features.progress import with_bar
from moses_io.decoders.formats import format_of
from moses_io.files.errors import Fault, InputError
from moses_io.files.json_files import read_json
from moses_io.files.streams import check_plain, open_input
from moses_io.files.text import decode, is_document, number, tokens, without_line_end
from moses_io.hypothesis import parse_line
from moses_io.weights import read_weights
from rerank.experiment.init.matching import ListContent, Text, read_list, read_text

# Kinds of files that experiments use.
NBEST, WEIGHTS, TEXT = "n-best list", "weights", "text"
WEIGHT_LINES = "weights without sections"
ARPA, COMPILED = "n-gram model", "compiled n-gram model"
LINKS = "word alignment"

MAX_BYTES, MAX_LINES = 2**16, 20
"""Maximum bytes, and maximum lines in them, that determine the kind of a file."""

_EXTRACTOR = (b"FEATURES_TXT_BEGIN", b"SCORES_TXT_BEGIN")
_LINKS = re.compile(r"[0-9]+-[0-9]+( [0-9]+-[0-9]+)* ?")
_WEIGHT_SECTION = re.compile(rb"[ \t]*\[weight(-[a-z]+)?\]")
_DENSE = re.compile(r"[^ ]+( UNTUNEABLE|=( [-+.0-9eE]+| UNTUNEABLECOMPONENT)*)")
_SPARSE = re.compile(r"[^ ]*_[^ ]* [-+.0-9eE]+")


def kind_of(path: str) -> str:
    """Return the kind of a file: one of the constants above, or a description of another kind.

    Raises:
        InputError: the file is no plain file, cannot be read, or its compressed content is damaged.
    """
    check_plain(path)
    with open_input(path) as stream:
        content = stream.read(MAX_BYTES)
    if content.startswith(BINARY):
        return COMPILED
    if b"\0" in content:
        return "binary"
    lines = [without_line_end(line) for line in content.split(b"\n")]
    whole = lines[:-1] if len(content) == MAX_BYTES and len(lines) > 1 else lines
    filled = [line for line in whole if line.strip(b" \t")]
    if not filled:
        return "empty"
    form = format_of([decode(line) for line in filled[:MAX_LINES]])
    if form:
        return f"n-best list of another decoder ({form}), to be converted with `moses-rerank convert`"
    return _kind(filled)


def _kind(lines: Sequence[bytes]) -> str:
    """Return the kind of a file with these first lines. None of them is blank."""
    if lines[0].strip(b" \t") == b"\\data\\":
        return ARPA
    if b"|||" in lines[0]:
        return _kind_with_bars(lines[0])
    uncommented = [line for line in (lines[0].removeprefix(codecs.BOM_UTF8), *lines[1:]) if not line.startswith(b"#")]
    if uncommented and uncommented[0].strip(b" \t").startswith(b"[") and any(map(_WEIGHT_SECTION.match, uncommented)):
        return WEIGHTS
    if uncommented and _is_weight_file(
        [decode(line).replace("\t", " ").strip(" ") for line in uncommented[:MAX_LINES]]
    ):
        return WEIGHT_LINES
    if lines[0].startswith(_EXTRACTOR):
        return "file of Moses' extractor"
    texts = [decode(line) for line in lines[:MAX_LINES]]
    if is_document(texts[0].removeprefix("\ufeff")):
        return "SGML or XML"
    if all(map(_LINKS.fullmatch, texts)):
        return LINKS
    rows = [tokens(text) for text in texts]
    if all(number(token) is not None for row in rows for token in row):
        return "numbers"
    if all(len(row) == 3 and number(row[2]) is not None for row in rows):
        return "lexical table"
    return TEXT


def _is_weight_file(lines: Sequence[str]) -> bool:
    """Return whether lines are a weight file without sections, in a format that Moses' tools write.

    The formats are a dense weight file or the output of `moses -show-weights`, a sparse weight file, and `init.opt` of
    mert (three lines: initial, minimum and maximum weights).
    """
    if all(map(_DENSE.fullmatch, lines)) or all(map(_SPARSE.fullmatch, lines)):
        return True
    rows = [tokens(line) for line in lines]
    alike = len(rows) == 3 and len({len(row) for row in rows}) == 1
    return alike and all(number(token) is not None for row in rows for token in row)


def _kind_with_bars(line: bytes) -> str:
    try:
        hypothesis = parse_line(line, 1)
    except Fault as fault:
        return f"no n-best list: {fault}"
    if len(hypothesis.fields) > 3 and hypothesis.total is None:
        return "no n-best list: the fourth field is no total"
    return NBEST


@dataclass(frozen=True)
class FilesByKind:
    """Files by kind.

    Attributes:
        kinds: kind of each file, or the reason why it cannot be read.
        lists: n-best lists.
        texts: texts with one sentence per line.
    """

    kinds: dict[str, str]
    lists: list[ListContent]
    texts: list[Text]

    def of(self, *kinds: str) -> list[str]:
        """Return the paths of all files of the given kinds."""
        return [path for path, kind in self.kinds.items() if kind in kinds]


def has_pretrained_model(folder: str) -> bool:
    """Return whether a folder has a model of transformers, by its `config.json`."""
    try:
        config = read_json(Path(folder) / "config.json")
    except InputError:
        return False
    return isinstance(config, dict) and isinstance(config.get("model_type"), str)


def pretrained_in(paths: Sequence[str]) -> list[str]:
    """Return the folders with a model of transformers among given folders and their subfolders, sorted by path."""
    folders = [Path(path) for path in paths if os.path.isdir(path)]
    inside = [each for folder in folders for each in folder.iterdir() if not each.name.startswith(".")]
    return sorted({str(each) for each in (*folders, *inside) if has_pretrained_model(str(each))})


def files_in(paths: Sequence[str]) -> list[str]:
    """Return the given files, and the files in given folders except hidden files and subfolders, sorted by path.

    Folders with a model of transformers are left out.

    A file with several names appears once, with the alphabetically first name.

    Raises:
        InputError: a file does not exist, or a folder cannot be read.
    """
    files: list[str] = []
    try:
        for path in paths:
            if os.path.isdir(path) and has_pretrained_model(path):
                continue
            if os.path.isdir(path):
                names = [name for name in os.listdir(path) if not name.startswith(".")]
                each = [str(Path(path) / name) for name in names]
                files += [file for file in each if not os.path.isdir(file)]
            else:
                os.stat(path)
                files.append(path)
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    return sorted({os.path.realpath(file): file for file in sorted(files, reverse=True)}.values())


def detect_kinds(paths: Sequence[str]) -> FilesByKind:
    """Detect the kinds of files. If a file that is no n-best list cannot be read, the reason becomes its kind.

    Raises:
        InputError: an n-best list has a fault.
    """
    files = FilesByKind({}, [], [])
    for path in with_bar("inspect files", paths, len(paths)):
        try:
            kind = kind_of(path)
            if kind == TEXT:
                files.texts.append(read_text(path))
            elif kind in (WEIGHTS, WEIGHT_LINES):
                read_weights(path)
        except InputError as error:
            kind = str(error).removeprefix(f"{path}: ")
        if kind == NBEST:
            files.lists.append(read_list(path))
        files.kinds[path] = kind
    return files
