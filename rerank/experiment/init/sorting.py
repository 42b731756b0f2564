"""Files by their kinds, each read as far as its kind needs."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from features.progress import with_bar
from moses_io.errors import InputError
from moses_io.weights import read_weights
from rerank.experiment.init.contents import ListContent, Text, read_list, read_text
from rerank.experiment.init.kinds import ARPA, COMPILED, LINKS, NBEST, TEXT, WEIGHT_LINES, WEIGHTS, kind_of


@dataclass(frozen=True)
class SortedFiles:
    """Files by their kinds.

    Attributes:
        lists: n-best lists.
        texts: texts of a sentence a line.
        weights: weight files with sections.
        weight_lines: weight files without sections.
        ngrams: n-gram models, and whether they are compiled.
        alignments: word alignments of a corpus.
        kinds: of every file what it is, or why it cannot be read.
    """

    lists: list[ListContent] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    weight_lines: list[str] = field(default_factory=list)
    ngrams: dict[str, bool] = field(default_factory=dict)
    alignments: list[str] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)


def files_in(paths: Sequence[str]) -> list[str]:
    """Return files, and in the place of a folder the files in it but for hidden ones, sorted.

    Each stands there once, by the first of its names.

    Raises:
        InputError: there is no such file, or a folder cannot be read.
    """
    files: list[str] = []
    try:
        for path in paths:
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


def sort_files(paths: Sequence[str]) -> SortedFiles:
    """Look at files; one that cannot be read, and is no n-best list, is told and left out.

    Raises:
        InputError: an n-best list has a fault.
    """
    files = SortedFiles()
    for path in with_bar("look at files", paths, len(paths)):
        try:
            kind = kind_of(path)
            if kind == TEXT:
                files.texts.append(read_text(path))
            elif kind in (WEIGHTS, WEIGHT_LINES):
                read_weights(path)
                (files.weights if kind == WEIGHTS else files.weight_lines).append(path)
        except InputError as error:
            kind = str(error).removeprefix(f"{path}: ")
        if kind == NBEST:
            files.lists.append(read_list(path))
        elif kind in (ARPA, COMPILED):
            files.ngrams[path] = kind == COMPILED
        elif kind == LINKS:
            files.alignments.append(path)
        files.kinds[path] = kind
    for content in files.lists:
        files.kinds[content.path] += f", {_many(len(content.sentences), 'sentence')}"
    for text in files.texts:
        files.kinds[text.path] += f", {_many(text.lines, 'line')}"
    return files


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
