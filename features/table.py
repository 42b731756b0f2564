"""The kinds of features: built-in, from installed packages, and from Python modules of the user.

To add a kind, write a class and add a row here. Everything that other code needs to know about a kind is a field of its
row.
"""

import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from moses_io.files.errors import InputError, nearest


@dataclass(frozen=True)
class Kind:
    """A row of the table.

    Attributes:
        target: `module:callable`, a `Feature`, `ListFeature` or `ModelFeature` of `features.feature`.
        label: start of the default label, to which a number is added.
        description: line in the output of `moses-rerank features`.
        argument: placeholder of the argument after the colon, empty if there is none.
        takes: type of the argument: `models` (our model folders), `folder`, `files`, `weights` (a file of weights,
            which may name other files), `shell` (a command line), `code` (any argument of a user's class), or `text`.
        reads: data that is read from models: `values`, whose names may follow in brackets, or `attention`. Two models
            that are read for attention are a forward and a backward model, in this order.
        joint: whether several models are read as one, with averaged distributions.
        optional: whether the argument may be omitted.
        many: whether the argument names several models or files, separated by commas.
        total: whether the lines of the list must have Moses' total.
        of_decoder: whether only candidates of the decoder have the data that it needs: word alignment, total, or order.
        one_list: whether the argument is data of a single list. A saved reranker omits such a feature.
        learns: whether it is estimated from a corpus when it is created, which may take minutes.
        fixed: whether the weight is 1 by default and never tuned. `is_fixed` recognizes its labels.
        requires: `module:function` that raises `InputError` if a package that the kind needs is not installed.
        name_parts: substrings of a file name that determine how the file is used.
        options: names of options in brackets whose values are files or folders.
        translates: whether its models can also translate.
    """

    target: str
    label: str
    description: str
    argument: str = ""
    takes: str = "text"
    reads: str = ""
    joint: bool = False
    optional: bool = False
    many: bool = False
    total: bool = False
    of_decoder: bool = False
    one_list: bool = False
    learns: bool = False
    fixed: bool = False
    requires: str = ""
    name_parts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    translates: bool = False

    def name_parts_of(self, path: str) -> tuple[str, ...]:
        """Return those of `name_parts` that the name of a file has, ignoring the name of its folder."""
        return tuple(part for part in self.name_parts if part in os.path.basename(path))


_KENLM = "features.kinds.language_model:require_kenlm"

FEATURES: dict[str, Kind] = {
    "neural": Kind("features.kinds.neural:Neural", "Neural",
        "log-probability by a trained model, including </s>", "DIR", "models", reads="values"),
    "ensemble": Kind("features.kinds.neural:Ensemble", "Ensemble",
        "log-probability by several models, whose distributions are averaged",
        "DIR,DIR,…", "models", reads="values", joint=True, many=True),
    "agreement": Kind("features.kinds.neural:Agreement", "Agreement",
        "trace of the attention of a forward and a backward model, also divided by the shorter length",
        "DIR,DIR", "models", reads="attention", many=True),
    "links": Kind("features.kinds.neural:Links", "Links",
        "attention of a forward model, summed over the links of Moses' word alignment",
        "DIR", "models", reads="attention", of_decoder=True),
    "kenlm": Kind("features.kinds.language_model:KenLM", "KenLM",
        "log-probability by an n-gram model, and number of unknown words", "ARPA", "files", requires=_KENLM),
    "kenlm-reversed": Kind("features.kinds.language_model:Reversed", "KenLMReversed",
        "values of kenlm from a model of reversed sentences", "ARPA", "files", requires=_KENLM),
    "lexical": Kind("features.kinds.lexical:Lexical", "Lexical",
        "log-probability by IBM model 1 with the table lex.f2e or lex.e2f of Moses",
        "FILE", "files", name_parts=("f2e", "e2f")),
    "ibm1": Kind("features.kinds.lexical:Estimated", "IBM",
        "log-probability by IBM model 1 in both directions, estimated from a corpus",
        "SOURCE,TARGET", "files", many=True, learns=True),
    "phrases": Kind("features.kinds.moses:Phrases", "Phrases",
        "number of phrases, mean words per phrase, negated numbers of unaligned source and target words, "
        "fraction of monotone steps",
        of_decoder=True),
    "length": Kind("features.kinds.surface:Length", "Length",
        "number of words, and with a corpus the log-density of the length ratio",
        "SOURCE,TARGET", "files", optional=True, many=True),
    "copied": Kind("features.kinds.surface:Copied", "Copied", "number of words that also occur in the source"),
    "repetition": Kind("features.kinds.surface:Repetition", "Repetition",
        "minus the number of words, bigrams and trigrams that are repeated immediately"),
    "numbers": Kind("features.kinds.surface:Numbers", "Numbers",
        "minus the number of numbers that occur in only one of source and candidate"),
    "punctuation": Kind("features.kinds.surface:Punctuation", "Punctuation",
        "minus the number of punctuation marks that occur in only one of source and candidate"),
    "consensus": Kind("features.kinds.consensus:Consensus", "Consensus",
        "similarity to the n-best list, weighted by Moses' total, as in MBR decoding", "bleu|chrf[,SCALE]", total=True),
    "posteriors": Kind("features.kinds.consensus:Posteriors", "Posteriors",
        "posterior probabilities of the candidate's n-grams, one sum for each order from 1 to 4",
        "SCALE", optional=True, total=True),
    "rest": Kind("features.kinds.moses:Rest", "Rest",
        "part of Moses' total that the printed features do not explain",
        "MOSES.INI", "weights", total=True, of_decoder=True, fixed=True),
    "scores": Kind("features.kinds.external:Scores", "Scores",
        "scores of another tool, one line per candidate", "FILE", "files", of_decoder=True, one_list=True),
    "command": Kind("features.kinds.external:Command", "Command",
        "values that a program prints for each line with source, tab, candidate", "COMMAND", "shell"),
    "server": Kind("features.kinds.external:Server", "Server",
        "as command, for a program that keeps running: an empty line follows each sentence's candidates",
        "COMMAND", "shell"),
    "comet": Kind("features.kinds.comet:Comet", "Comet",
        "score of a COMET model, which runs in a Python environment of its own", "DIR", "folder",
        options=("truecaser", "encoder")),
    "hf": Kind("features.kinds.pretrained:HuggingFace", "HF",
        "log-probability by a local Hugging Face model, DIR[LANG,LANG] for a multilingual one",
        "DIR", "folder", options=("template", "truecaser"), translates=True,
        requires="features.kinds.pretrained:require_transformers"),
}  # fmt: skip


def is_fixed(label: str) -> bool:
    """Return whether a label, such as Rest or Rest0, belongs to a kind whose weight is never tuned."""
    return any(row.fixed and re.fullmatch(f"{row.label}[0-9]*", label) for row in FEATURES.values())


ENTRY_POINTS = "moses_rerank.features"
"""Entry point group of packages that provide features: name = `module:Class`."""


@functools.cache
def packaged() -> dict[str, Kind]:
    """Return the kinds that installed packages provide."""
    points = importlib.metadata.entry_points(group=ENTRY_POINTS)
    labels = {point.name: re.sub("[^0-9A-Za-z]", "", point.name.title()) for point in points}
    return {point.name: _row(point.value, labels[point.name], point.value) for point in points}


def class_of_module(kind: str, folder: str) -> Kind:
    """Return a row for `module:Class`, from `module.py` in the folder if it exists, else from an installed module.

    A file is loaded under a unique module name. It can import installed modules, but not the files in its folder.

    Raises:
        InputError: the module does not exist or cannot be imported, or has no such class.
    """
    name, colon, attribute = kind.partition(":")
    known = nearest(name, list(packaged() | FEATURES))
    if not colon:
        raise InputError(f"unknown feature {kind!r}{known}")
    path = Path(os.path.abspath(folder), *name.split(".")).with_suffix(".py")
    try:
        module = _load(path) if path.is_file() else importlib.import_module(name)
    except SyntaxError as error:
        raise InputError(f"feature {kind!r}: {error.filename}:{error.lineno}: {error.msg}") from None
    except ImportError as error:
        if path.is_file():
            alone = ". A feature module can import installed packages, not files next to it"
            raise InputError(f"feature {kind!r}: {path}: {error}{alone}") from None
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise InputError(f"unknown feature {kind!r}: no {path}, and no such module is installed{known}") from None
        raise InputError(f"feature {kind!r}: {error}") from None
    kind_class = getattr(module, attribute, None)
    if not isinstance(kind_class, type) or not any("__call__" in vars(base) for base in kind_class.__mro__):
        origin = getattr(module, "__file__", None) or name  # built-in modules have no file
        raise InputError(f"unknown feature {kind!r}: {origin} has no class {attribute!r} with __call__{known}")
    return _row(f"{module.__name__}:{attribute}", attribute.replace("_", ""), name)


def _row(target: str, label: str, origin: str) -> Kind:
    return Kind(target, label, f"feature from {origin}", "ARG", "code", optional=True)


@functools.cache
def _load(path: Path) -> ModuleType:
    """Load a file as a module with a unique name, so that no other import can find it."""
    name = f"{path.stem}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
