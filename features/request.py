"""Requests of features: a label, a kind of the table, of a package or of a module, and its argument."""

import importlib.util
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from features.models.tables import ADDED, VALUES
from features.table import FEATURES, Kind, class_of_module, is_fixed, packaged
from moses_io.files.errors import InputError, nearest, shown
from moses_io.weights import weight_files

_LABEL = re.compile("[A-Za-z][0-9A-Za-z]{0,99}")
_OPERATOR = re.compile(r"[();<>|&\n]+")
_SEPARATOR = re.compile(r"[();|&\n]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class FeatureRequest:
    """A feature by name: `[LABEL=]KIND[:ARG]`, or `[LABEL=]module:Class[:ARG]`.

    Attributes:
        label: its name in a list.
        kind: a row of the table, of a package, or `module:Class`.
        argument: what stands behind it.
        folder: where a command runs and the file `module.py` is looked for; empty for the working folder.
    """

    label: str
    kind: str
    argument: str
    folder: str = ""

    @property
    def row(self) -> Kind:
        """What the table, or a package, says of the kind."""
        return _row(self.kind, self.folder)

    @property
    def parts(self) -> list[str]:
        """The folders or files that the argument names."""
        row = self.row
        if not self.argument or row.takes not in ("models", "folder", "files", "weights"):
            return []
        named = split_values(self.argument)[0] if row.takes in ("models", "folder") else self.argument
        return named.split(",") if row.many else [named]

    @property
    def files(self) -> list[str]:
        """The files that decide the values: the parts, weight files that an ini among them names, code and programs."""
        parts = weight_files(self.argument) if self.row.takes == "weights" else self.parts
        return [*parts, *self.code, *self.programs]

    @property
    def readers(self) -> set[tuple[str, ...]]:
        """Folders of the models that are read for it, those of an ensemble as one."""
        if self.row.takes != "models":
            return set()
        return {tuple(self.parts)} if self.row.joint else {(part,) for part in self.parts}

    @property
    def text(self) -> str:
        """The kind and its argument as they are written."""
        return f"{self.kind}:{self.argument}" if self.argument else self.kind

    def with_parts(self, parts: Sequence[str]) -> "FeatureRequest":
        """Return the request with other folders or files, and the same values of them.

        Raises:
            InputError: one of several has a comma in its path, which stands between them.
        """
        if self.row.many and any("," in part for part in parts):
            raise InputError(f"feature {self.text!r}: a comma in {next(part for part in parts if ',' in part)!r}")
        return replace(self, argument=",".join(parts) + self.values) if self.parts else self

    @property
    def values(self) -> str:
        """What stands behind the folders or files: names of values, in their brackets."""
        return self.argument.removeprefix(",".join(self.parts))

    @property
    def identity(self) -> list[Any]:
        """What decides the values of the feature, except for the content of its files.

        For each file or folder of the argument it has the marks in the name, usually none. A file may move to another
        folder, but `lex.e2f` is not `lex.f2e`, whatever it contains.
        """
        return [self.label, self.kind, self.values, [list(self.row.marks_of(part)) for part in self.parts]]

    @property
    def code(self) -> list[str]:
        """The file of a user's class, or the files that a command names: they decide what the feature is."""
        row = self.row
        if row.takes == "shell":
            # Of `--table=FILE` the part after `=` may be a file.
            named = [part for word in self._words for part in (word, word.partition("=")[2]) if part]
            return list(dict.fromkeys(filter(os.path.isfile, (os.path.join(self.folder, part) for part in named))))
        if row.takes != "code":
            return []
        module = importlib.util.find_spec(row.target.split(":")[0])
        origin = [module.origin] if module and module.origin else []
        # The argument of a user's class may be a file, or several.
        words = dict.fromkeys([self.argument, *self.argument.split(",")])
        return [*origin, *filter(os.path.isfile, (os.path.join(self.folder, word) for word in words if word))]

    @property
    def programs(self) -> list[str]:
        """The programs of a command that are found on the PATH: the first word of each part of the command line."""
        found = [shutil.which(word) for word in self._first_words if "/" not in word]
        return list(dict.fromkeys(filter(None, found)))

    @property
    def _first_words(self) -> list[str]:
        """The words of a command that name programs: those after `|`, `;`, `&`, `(` or a line end, too."""
        if self.row.takes != "shell":
            return []
        first, starts, redirected = [], True, False
        for word in self._words:
            if starts and not (_OPERATOR.fullmatch(word) or redirected or _ASSIGNMENT.match(word)):
                first.append(word)
                starts = False
            starts |= _SEPARATOR.fullmatch(word) is not None
            redirected = _OPERATOR.fullmatch(word) is not None and word[-1] in "<>"  # a file follows
        return first

    @property
    def _words(self) -> list[str]:
        """The words of a command as a shell splits them."""
        lexer = shlex.shlex(self.argument, posix=True, punctuation_chars="();<>|&\n")  # `./a|./b>c` has five words
        lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
        try:
            return list(lexer)
        except ValueError as error:
            raise InputError(f"feature 'command:{self.argument}': {error}") from None


def split_values(argument: str) -> tuple[str, tuple[str, ...]]:
    """Split `DIR[NAME,…]` into the folders and the names of values."""
    folders, bracket, names = argument.removesuffix("]").rpartition("[")
    if not (bracket and argument.endswith("]")):
        return argument, ()
    return folders, tuple(names.split(","))


def models_and_values(kind: str, argument: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders that a kind which reads values of models names, and the names of the values.

    Raises:
        InputError: a value that no model has, one that stands there twice, or an ensemble of a single model.
    """
    folder, names = split_values(argument)
    known = [*VALUES, ADDED]
    for place, name in enumerate(names):
        if name not in known:
            raise InputError(f"feature '{kind}:{argument}': unknown value {shown(name)}{nearest(name, known)}")
        if name in names[:place]:
            raise InputError(f"feature '{kind}:{argument}': value '{name}' stands there twice")
    joint = kind in FEATURES and FEATURES[kind].joint  # a class of a user may extend one of ours
    folders = tuple(folder.split(",")) if joint else (folder,)
    if joint and len(folders) < 2:
        raise InputError(f"feature '{kind}:{argument}': expected several models, separated by commas")
    return folders, names


def parse_requests(texts: Sequence[str], folder: str = "") -> list[FeatureRequest]:
    """Read requests; without a label, the kind's own with the next free number.

    Commands run in the folder, and users' modules are looked for there.

    Raises:
        InputError: an unknown kind, a label that Moses' tools would not take for a dense one, a label of two features,
            or a missing argument.
    """
    requests: list[FeatureRequest] = []
    for text in texts:
        labelled = re.fullmatch("([^=:]*)=(.*)", text, re.DOTALL)
        label, asked = labelled.groups() if labelled else (None, text)
        if label is None:
            taken = {request.label for request in requests}
            start = _row(_split(asked)[0], folder).label
            label = next(name for n in range(len(texts)) if (name := f"{start}{n}") not in taken)
        requests.append(_request(label, asked, folder))
        if label in {request.label for request in requests[:-1]}:
            raise InputError(f"label {label!r} is given to two features")
    return requests


def labelled_requests(texts: Mapping[str, str], folder: str = "") -> list[FeatureRequest]:
    """Read requests by their labels, as files and programs name them: nothing of a label is taken for its request.

    Raises:
        InputError: as `parse_requests`; a label is looked at before the kind, which may be code.
    """
    return [_request(label, text, folder) for label, text in texts.items()]


def runs_code(text: str) -> bool:
    """Return whether a request without its label runs code of its user: a command, or a class of a module."""
    row = row_of(text)
    return row.takes == "shell" if row else ":" in _split(text)[0]


def row_of(text: str) -> Kind | None:
    """Return the row of a request without its label; None for a class of a module, which is not loaded for this."""
    return _rows().get(_split(text)[0])


def _request(label: str, text: str, folder: str) -> FeatureRequest:
    check_label(label)
    kind, argument = _split(text)
    row = _row(kind, folder)
    if (argument and not row.argument) or (row.argument and not argument and not row.optional):
        raise InputError(f"feature {text!r}: expected {usage(kind, row)}")
    if row.fixed != is_fixed(label):
        raise InputError(f"label {label!r}: Rest, Rest0 … are the labels of the feature rest, and of no other")
    return FeatureRequest(label, kind, argument, folder)


def check_label(label: str) -> str:
    """Return the label, unless it is one that Moses' tools would not take for that of a dense feature."""
    if not _LABEL.fullmatch(label):
        expected = "expected a letter, then letters and digits, 100 at most; Moses' tools need it so"
        raise InputError(f"label {label!r}: {expected}")
    return label


def together(requests: Sequence[FeatureRequest]) -> list[list[FeatureRequest]]:
    """Put requests that read the same models together, each group where its first request stands."""
    groups: list[list[FeatureRequest]] = []
    for request in requests:
        near = [group for group in groups if any(request.readers & other.readers for other in group)]
        joint = [*(other for group in near for other in group), request]
        place = groups.index(near[0]) if near else len(groups)
        groups[place : place + 1] = [joint]
        groups = [group for group in groups if group not in near]
    return groups


def usage(kind: str, row: Kind) -> str:
    """Return how a kind is written."""
    if row.optional:
        return f"{kind}[:{row.argument}]"
    return f"{kind}:{row.argument}" if row.argument else kind


def _rows() -> dict[str, Kind]:
    return packaged() | FEATURES


def _split(text: str) -> tuple[str, str]:
    """Split `KIND:ARG`, where the kind may be `module:Class`."""
    kind, _, argument = text.partition(":")
    if kind not in _rows() and _CLASS.match(text):
        module, name, *more = text.split(":", 2)
        return f"{module}:{name}", more[0] if more else ""
    return kind, argument


def _row(kind: str, folder: str) -> Kind:
    """Return a row of the table or of a package, or one for `module:Class`; an `InputError` if there is none."""
    return _rows().get(kind) or class_of_module(kind, folder)
