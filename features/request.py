"""Requests of features: a label, a kind (built-in, of a package or of a module), and an argument."""

import importlib.util
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from features.models.tables import ADDED, PER_WORD, VALUES
from features.table import FEATURES, Kind, class_of_module, is_fixed, packaged
from moses_io.files.errors import InputError, nearest, shown
from moses_io.weights import weight_files

_LABELLED = re.compile("([^=:]*)=(.*)", re.DOTALL)

_LABEL = re.compile("[A-Za-z][0-9A-Za-z]{0,99}")
_OPERATOR = re.compile(r"[();<>|&\n]+")
_SEPARATOR = re.compile(r"[();|&\n]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class FeatureRequest:
    """A feature as named by the user: `[LABEL=]KIND[:ARG]`, or `[LABEL=]module:Class[:ARG]`.

    Attributes:
        label: name of the feature in a list.
        kind: built-in kind, kind of a package, or `module:Class`.
        argument: text after the kind.
        folder: folder in which commands run and in which `module.py` is searched, empty for the working folder.
    """

    label: str
    kind: str
    argument: str
    folder: str = ""

    @property
    def row(self) -> Kind:
        """The row of the kind."""
        return _row(self.kind, self.folder)

    @property
    def parts(self) -> list[str]:
        """The folders or files that the argument names."""
        row = self.row
        if not self.argument or row.takes not in ("models", "folder", "files", "weights"):
            return []
        named, texts = self._bracketed
        in_options = [text.partition("=")[2] for text in texts if self._names_file(text)]
        return [*(named.split(",") if row.many else [named]), *in_options]

    @property
    def files(self) -> list[str]:
        """The files that determine the values.

        These are the parts, weight files that an ini among them names, code and programs.
        """
        parts = weight_files(self.argument) if self.row.takes == "weights" else self.parts
        return [*parts, *self.code, *self.programs]

    @property
    def readers(self) -> set[tuple[str, ...]]:
        """Folders of each model that the feature reads. An ensemble is one entry."""
        if self.row.takes != "models":
            return set()
        return {tuple(self.parts)} if self.row.joint else {(part,) for part in self.parts}

    @property
    def text(self) -> str:
        """The kind and its argument as the user writes them."""
        return f"{self.kind}:{self.argument}" if self.argument else self.kind

    def with_parts(self, parts: Sequence[str]) -> "FeatureRequest":
        """Return the request with other folders or files, and with unchanged names of values.

        Raises:
            InputError: one of several paths contains a comma, which is the separator.
        """
        if not self.parts:
            return self
        count = len(parts) - sum(map(self._names_file, self._bracketed[1]))
        separated = parts if self.row.many else parts[count:]
        if any("," in part for part in separated):
            raise InputError(f"feature {self.text!r}: a comma in {next(part for part in separated if ',' in part)!r}")
        return replace(self, argument=",".join(parts[:count]) + self._brackets(parts[count:]))

    @property
    def values(self) -> str:
        """The part of the argument in brackets, names of values or options, without the files of options."""
        return self._brackets([""] * len(self._bracketed[1])) if self.parts else self.argument

    @property
    def _bracketed(self) -> tuple[str, tuple[str, ...]]:
        """The argument before the brackets, and the texts in brackets."""
        return split_values(self.argument) if self.row.takes in ("models", "folder") else (self.argument, ())

    def _names_file(self, text: str) -> bool:
        """Return whether a text in brackets is an option whose value is a file."""
        name, equals, _ = text.partition("=")
        return bool(equals) and name in self.row.options

    def _brackets(self, files: Sequence[str]) -> str:
        """Return the texts in brackets, with other files of options."""
        following = iter(files)
        texts = [
            f"{text.partition('=')[0]}={next(following)}" if self._names_file(text) else text
            for text in self._bracketed[1]
        ]
        return f"[{','.join(texts)}]" if texts else ""

    @property
    def identity(self) -> list[Any]:
        """The settings that determine the values, without the content of files.

        For each file or folder of the argument it contains the parts of the name that have a meaning, usually none. A
        file may move to another folder, but `lex.e2f` and `lex.f2e` differ even if their content is equal.
        """
        return [self.label, self.kind, self.values, [list(self.row.name_parts_of(part)) for part in self.parts]]

    @property
    def code(self) -> list[str]:
        """The file of a user's class and files in its argument, or the files that a command names."""
        row = self.row
        if row.takes == "shell":
            # In an option such as `--table=FILE` the part after `=` may be a file.
            named = [part for word in self._words for part in (word, word.partition("=")[2]) if part]
            return list(dict.fromkeys(filter(os.path.isfile, (os.path.join(self.folder, part) for part in named))))
        if row.takes != "code":
            return []
        module = importlib.util.find_spec(row.target.split(":")[0])
        origin = [module.origin] if module and module.origin else []
        # The argument of a user's class may be one file or several.
        words = dict.fromkeys([self.argument, *self.argument.split(",")])
        return [*origin, *filter(os.path.isfile, (os.path.join(self.folder, word) for word in words if word))]

    @property
    def programs(self) -> list[str]:
        """The programs on the PATH that a command runs: the first word of each part of the line."""
        found = [shutil.which(word) for word in self._first_words if "/" not in word]
        return list(dict.fromkeys(filter(None, found)))

    @property
    def _first_words(self) -> list[str]:
        """The words of a command that name programs, also after `|`, `;`, `&`, `(` or a line end."""
        if self.row.takes != "shell":
            return []
        first = []
        starts = True
        redirected = False
        for word in self._words:
            if starts and not (_OPERATOR.fullmatch(word) or redirected or _ASSIGNMENT.match(word)):
                first.append(word)
                starts = False
            starts |= _SEPARATOR.fullmatch(word) is not None
            redirected = _OPERATOR.fullmatch(word) is not None and word[-1] in "<>"  # the next word is a file
        return first

    @property
    def _words(self) -> list[str]:
        """The words of a command as a shell splits them."""
        lexer = shlex.shlex(self.argument, posix=True, punctuation_chars="();<>|&\n")  # `./a|./b>c` has five words
        lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
        try:
            return list(lexer)
        except ValueError as error:
            raise InputError(f"feature '{self.text}': {error}") from None


def split_values(argument: str) -> tuple[str, tuple[str, ...]]:
    """Split `DIR[NAME,…]` into the folders and the names of values."""
    folders, bracket, names = argument.removesuffix("]").rpartition("[")
    if not (bracket and argument.endswith("]")):
        return argument, ()
    return folders, tuple(names.split(","))


def is_pretrained(model: str) -> bool:
    """Return whether the name of a model is that of a pretrained one, `hf:DIR`, instead of a folder of our own."""
    row = row_of(model)
    return row is not None and row.translates


def parts_of(model: str) -> list[str]:
    """Return the folders and files of a model: its folder, or those of `hf:DIR[…]`."""
    return parse_requests([model])[0].parts if is_pretrained(model) else [model]


def with_parts(model: str, parts: Sequence[str]) -> str:
    """Return a model with other folders and files, as `parts_of` returns them."""
    return parse_requests([model])[0].with_parts(parts).text if is_pretrained(model) else parts[0]


def models_and_values(kind: str, argument: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the folders in the argument of a kind that reads values of models, and the names of the values.

    Raises:
        InputError: an unknown or repeated value, or an ensemble of a single model.
    """
    folder, names = split_values(argument)
    known = [*VALUES, PER_WORD, ADDED]
    for position, name in enumerate(names):
        if name not in known:
            raise InputError(f"feature '{kind}:{argument}': unknown value {shown(name)}{nearest(name, known)}")
        if name in names[:position]:
            raise InputError(f"feature '{kind}:{argument}': value '{name}' occurs twice")
    joint = kind in FEATURES and FEATURES[kind].joint  # a class of a user may extend one of ours
    folders = tuple(folder.split(",")) if joint else (folder,)
    if joint and len(folders) < 2:
        raise InputError(f"feature '{kind}:{argument}': expected several models, separated by commas")
    return folders, names


def parse_requests(texts: Sequence[str], folder: str = "") -> list[FeatureRequest]:
    """Parse requests. The default label is the kind's own with the next free number.

    Commands run in `folder`, and modules of the user are searched there.

    Raises:
        InputError: an unknown kind, a label that Moses' tools would not accept for a dense feature, a repeated label,
            or a missing argument.
    """
    requests: list[FeatureRequest] = []
    parts = [_LABELLED.fullmatch(text) for text in texts]
    given = {labelled[1] for labelled in parts if labelled}
    for text, labelled in zip(texts, parts, strict=True):
        label, asked = labelled.groups() if labelled else (None, text)
        if label is None:
            taken = given | {request.label for request in requests}
            start = _row(_split(asked)[0], folder).label
            label = next(name for n in range(len(texts)) if (name := f"{start}{n}") not in taken)
        requests.append(_request(label, asked, folder))
        if label in {request.label for request in requests[:-1]}:
            raise InputError(f"label {label!r} is given to two features")
    return requests


def labelled_requests(texts: Mapping[str, str], folder: str = "") -> list[FeatureRequest]:
    """Parse requests given by label, as files and programs provide them. A `=` in the text is part of the request.

    Raises:
        InputError: as `parse_requests`. A label is checked before its kind, since loading the kind may run code.
    """
    return [_request(label, text, folder) for label, text in texts.items()]


def runs_code(text: str) -> bool:
    """Return whether a request without label runs code of the user: a command, or a class of a module."""
    row = row_of(text)
    return row.takes == "shell" if row else ":" in _split(text)[0]


def row_of(text: str) -> Kind | None:
    """Return the row of a request without label. For a class of a module return None and do not load it."""
    return _rows().get(_split(text)[0])


def _request(label: str, text: str, folder: str) -> FeatureRequest:
    check_label(label)
    kind, argument = _split(text)
    row = _row(kind, folder)
    if (argument and not row.argument) or (row.argument and not argument and not row.optional):
        raise InputError(f"feature {text!r}: expected {usage(kind, row)}")
    if row.fixed and not is_fixed(label):
        raise InputError(f"label {label!r}: {kind} needs the label {row.label}, or {row.label} and a number")
    if is_fixed(label) and not row.fixed:
        raise InputError(f"label {label!r}: Rest, Rest0 … are reserved for the feature rest")
    return FeatureRequest(label, kind, argument, folder)


def check_label(label: str) -> str:
    """Return the label, or raise `InputError` if Moses' tools would not accept it for a dense feature."""
    if not _LABEL.fullmatch(label):
        expected = "expected a letter, then letters and digits, at most 100, as Moses' tools need it"
        raise InputError(f"label {label!r}: {expected}")
    return label


def group_by_models(requests: Sequence[FeatureRequest]) -> list[list[FeatureRequest]]:
    """Group requests that read the same models. A group has the position of its first request."""
    groups: list[list[FeatureRequest]] = []
    for request in requests:
        overlapping = [group for group in groups if any(request.readers & other.readers for other in group)]
        merged = [*(other for group in overlapping for other in group), request]
        position = groups.index(overlapping[0]) if overlapping else len(groups)
        groups[position : position + 1] = [merged]
        groups = [group for group in groups if group not in overlapping]
    return groups


def usage(kind: str, row: Kind) -> str:
    """Return the syntax of a kind, for messages and the table of features."""
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
    """Return the row of a kind or of `module:Class`, or raise `InputError` if it does not exist."""
    return _rows().get(kind) or class_of_module(kind, folder)
