"""Entries of an experiment file for the corpus, the sets with their lists, the shortlist and pretrained models."""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from features.kinds.pretrained import require_transformers
from features.models.training.request import TrainingRequest
from features.request import FeatureRequest, is_pretrained, parts_of, with_parts
from moses_io.files.errors import InputError, at, shown
from moses_io.files.text import ParallelFiles
from moses_io.input_filters import InputFilters
from rerank.experiment.toml import as_table, check_keys, path_of
from rerank.systems.translations import CandidateRequest, check_candidates, list_name

MAX_NAME_BYTES = 100
"""Maximum bytes of a name. Folders and files are named after it, and file systems allow 255 bytes."""

UNNAMED = "test"
"""Name of the only test set if it has no name. Its report has no name either."""

SELECTION = "selection"
"""Key of the set on which the tuner `auto` compares tuners."""

SET = "{set}"
"""Placeholder in the argument of a feature for the name of the set that is scored."""

RESERVED_NAMES = (
    "dev", SELECTION, "report", "weights", "tuning", "models", "reranker", "ablation", "stages", "confidence",
    "shortlist", "plan", "monolingual", "train",
)  # fmt: skip
"""Reserved names: files in the folder of results have them."""

BACK_TRANSLATION = "back_translation"
"""Key of a corpus: whether forward models train on translations of the monolingual text."""

_KEYS = ("source", "reference", "nbest")

MOSES_OUTPUT = "moses_output"
"""Key of Moses' own output, which is compared with the choices on dev and on test sets."""

_NAME = re.compile(r"\w[\w.-]*")


AUTO_SIZE = "auto"
"""Value of `shortlist.size` that compares sizes in cross-validation."""


@dataclass(frozen=True)
class ShortlistEntry:
    """The table `[shortlist]`: features that are computed only for the candidates that all others rank best.

    Attributes:
        features: labels of these features.
        size: number of candidates of a sentence, or 0 for a choice in cross-validation on dev.
    """

    features: tuple[str, ...]
    size: int = 0


def read_shortlist(value: Any, features: Mapping[str, FeatureRequest], planned: Collection[str] = ()) -> ShortlistEntry:
    """Read the table `[shortlist]`.

    Args:
        value: the table.
        features: the features of the experiment.
        planned: labels of features that may be added later.

    Raises:
        InputError: a key is unknown, missing or of the wrong type, a label is not among the features, or a feature is
            the scores of another tool, which has scored all candidates.
    """
    table = {"size": AUTO_SIZE, **as_table(value, "shortlist")}
    check_keys(table, ("features", "size"), "shortlist.")
    labels, size = table.get("features"), table["size"]
    if not isinstance(labels, list) or not labels or not all(isinstance(label, str) for label in labels):
        raise InputError(f"shortlist.features: expected a list of labels of features, found {shown(labels)}")
    for label in labels:
        if label in planned:
            continue
        if label not in features:
            known = f"no feature {shown(label)}. Features: {', '.join((*features, *planned))}"
            raise InputError(f"shortlist.features: {known}")
        if features[label].row.one_list:
            fault = f"{label} reads scores of all candidates from a file. Remove it from the list"
            raise InputError(f"shortlist.features: {fault}")
    if size != AUTO_SIZE and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        expected = f'a whole number from 1, or "{AUTO_SIZE}"'
        raise InputError(f"shortlist.size: expected {expected}, found {shown(size)}")
    return ShortlistEntry(tuple(labels), 0 if size == AUTO_SIZE else size)


def read_corpus(table: dict[str, Any], folder: Path) -> ParallelFiles:
    """Read the table of a corpus, with paths relative to `folder`. Raise `InputError` if a key is wrong."""
    check_keys(table, ("source", "target", "alignment", "monolingual", BACK_TRANSLATION), "train.")
    keys = ("source", "target", *(["alignment"] if "alignment" in table else []))
    return ParallelFiles(*(str(folder / path_of(table, key, "train.")) for key in keys))


def read_back_translation(table: dict[str, Any], unplanned: bool) -> bool:
    """Return whether forward models train on monolingual text.

    Raise `InputError` if the value is of the wrong type, if there is no text, or if models are still to be chosen.
    """
    value = table.get(BACK_TRANSLATION, True)
    if not isinstance(value, bool):
        raise InputError(f"train.{BACK_TRANSLATION}: expected true or false, found {value!r}")
    if BACK_TRANSLATION in table and (unplanned or "monolingual" not in table):
        reason = "is for experiments that name their models" if unplanned else "there is no train.monolingual"
        raise InputError(f"train.{BACK_TRANSLATION}: {reason}. Remove it")
    return value


def read_monolingual(
    table: dict[str, Any], folder: Path, requests: Mapping[str, TrainingRequest], unplanned: bool, translates: bool
) -> str:
    """Return the path of the monolingual text in the table of a corpus, or an empty string.

    Args:
        table: the table.
        folder: base folder of relative paths.
        requests: the models of the experiment, by name.
        unplanned: whether models are still to be chosen.
        translates: whether forward models train on it.

    Raises:
        InputError: the value is no path, no model trains on the text, a forward model trains on it and no model is a
            backward model, which would translate it, or a model has a setting for synthetic pairs and there are none.
    """
    text = str(folder / path_of(table, "monolingual", "train.")) if "monolingual" in table else ""
    if unplanned:
        return text
    trained = [
        name
        for name, each in requests.items()
        if each.language_model or (translates and not (each.backward or each.symmetric))
    ]
    if text and not trained:
        kinds = "forward model or language model" if translates else f"language model ({BACK_TRANSLATION} = false)"
        raise InputError(f"train.monolingual: no {kinds} in [models] trains on it. Remove it")
    translated = any(not requests[name].language_model for name in trained)
    if text and translated and not any(each.backward for each in requests.values()):
        raise InputError(
            f"train.monolingual: expected a backward model in [models], which translates this text, or "
            f"train.{BACK_TRANSLATION} = false, with which only language models train on it"
        )
    for name, request in requests.items():
        if name not in trained or not text:
            with at(f"models.{name}: "):
                request.check_synthetic(None)
    return text


@dataclass(frozen=True)
class NbestFiles:
    """The files of a set.

    Attributes:
        source: source text.
        reference: references, or empty for a test set without references.
        nbest: n-best list.
        moses_output: Moses' own output, or empty if that is the candidates with the highest totals.
    """

    source: str
    reference: tuple[str, ...]
    nbest: str
    moses_output: str = ""

    @property
    def texts(self) -> ParallelFiles:
        """The source and the first reference, as parallel text."""
        return ParallelFiles(source=self.source, target=self.reference[0])

    @property
    def files(self) -> list[str]:
        """Paths of all files of the set."""
        return [path for path in (self.source, *self.reference, self.nbest, self.moses_output) if path]

    @property
    def table(self) -> dict[str, Any]:
        """The set as a table that `read_set` reads."""
        reference = self.reference[0] if len(self.reference) == 1 else list(self.reference)
        table = {"source": self.source, "reference": reference, "nbest": self.nbest, MOSES_OUTPUT: self.moses_output}
        return {key: value for key, value in table.items() if value}


def table_of_tests(tests: Mapping[str, NbestFiles]) -> Any:
    """Return test sets in the form that `read_tests` reads: one table if the only set is unnamed, otherwise a list."""
    if list(tests) == [UNNAMED]:
        return tests[UNNAMED].table
    return [{"name": name, **files.table} for name, files in tests.items()]


def read_set(value: Any, name: str, folder: Path) -> NbestFiles:
    """Read the table of dev or of `selection`, with paths relative to `folder`.

    Raises:
        InputError: a key is unknown, missing or of the wrong type.
    """
    table = {"reference": None, **as_table(value, name)}
    check_keys(table, _KEYS if name == SELECTION else (*_KEYS, MOSES_OUTPUT), f"{name}.")
    return _set(table, f"{name}.", folder)


def read_pretrained(
    table: dict[str, Any], folder: Path, dev: NbestFiles, filters: InputFilters
) -> tuple[CandidateRequest, ...]:
    """Read the table of pretrained models that add candidates.

    Args:
        table: the table.
        folder: base folder of relative paths.
        dev: files of dev. Translations get the form of its first reference.
        filters: filters of the reference.

    Raises:
        InputError: an entry is wrong, or a package that reads such models is not installed.
    """
    requests = []
    for name, value in table.items():
        key = f"pretrained.{name}"
        entry = as_table(value, key)
        check_keys(entry, ("model", "candidates"), f"{key}.")
        model = entry.get("model")
        if not isinstance(model, str) or not is_pretrained(model):
            raise InputError(f"{key}.model: expected a folder as in hf:DIR, found {model!r}")
        with at(f"{key}: "):
            require_transformers()
            from features.models.pretrained.form import with_form  # imports the packages

            check_candidates(entry.get("candidates"), name)
            parts = [str(folder / part) for part in parts_of(model)]
            model = with_parts(model, parts)
            if os.path.isfile(dev.reference[0]):  # else `check_inputs` names it
                model = with_form(model, dev.reference[0], filters)
        requests.append(CandidateRequest(list_name(name), (model,), entry["candidates"]))
    return tuple(requests)


def read_tests(value: Any, folder: Path) -> dict[str, NbestFiles]:
    """Read the table of one test set, or a list of tables with names. `reference` is optional.

    Raises:
        InputError: a key is wrong as in `read_set`, or a name is missing, invalid, reserved or a duplicate.
    """
    if not isinstance(value, list):
        value = [{"name": UNNAMED} | as_table(value, "test")]
    tests: dict[str, NbestFiles] = {}
    for number, each in enumerate(value, start=1):
        table = as_table(each, "test")
        name = table.get("name")
        if not isinstance(name, str):
            other = "nothing" if name is None else repr(name)
            raise InputError(f"test.name: expected a name, found {other} in the [[test]] with number {number}")
        check_name(name, "test")
        if name in RESERVED_NAMES or name in tests:
            fault = "another test set has this name" if name in tests else "files of the results have this name"
            raise InputError(f"test.{name}: {fault}. Choose another one")
        prefix = "test." if name == UNNAMED else f"test.{name}."
        check_keys(table, ("name", *_KEYS, MOSES_OUTPUT), prefix)
        tests[name] = _set(table, prefix, folder)
    return tests


def _set(table: dict[str, Any], prefix: str, folder: Path) -> NbestFiles:
    """Read the paths of a set. `reference` is optional, and is one path or a list of paths."""
    references = table.get("reference", [])
    if not isinstance(references, list) or ("reference" in table and not references):
        references = [path_of(table, "reference", prefix)]
    if wrong := [path for path in references if not isinstance(path, str)]:
        raise InputError(f"{prefix}reference: expected paths, found {wrong[0]!r}")
    return NbestFiles(
        source=str(folder / path_of(table, "source", prefix)),
        reference=tuple(str(folder / path) for path in references),
        nbest=str(folder / path_of(table, "nbest", prefix)),
        moses_output=str(folder / path_of(table, MOSES_OUTPUT, prefix)) if MOSES_OUTPUT in table else "",
    )


def check_name(name: str, key: str) -> None:
    """Raise `InputError` if a name below `key` of the experiment file is not valid as the name of a folder or file."""
    if not _NAME.fullmatch(name) or len(name.encode()) > MAX_NAME_BYTES:
        expected = f"letters, digits, '_', and after the first character '-' and '.', {MAX_NAME_BYTES} bytes at most"
        raise InputError(f"{key}: expected names of {expected}, found {name[:40]!r}")
