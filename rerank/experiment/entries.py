"""Entries of an experiment file: the corpus, the sets with their lists, and the models."""

import itertools
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from features.kinds.pretrained import require_transformers
from features.models.training.request import TrainingRequest
from features.request import FeatureRequest, is_pretrained, parts_of, with_parts
from moses_io.files.errors import InputError, at, shown
from moses_io.files.text import ParallelFiles
from moses_io.input_filters import InputFilters
from rerank.experiment.toml import RENAMED, as_table, check_keys, path_of
from rerank.systems.translations import CandidateRequest, check_candidates, check_forward, list_name

Groups = dict[str, tuple[str, ...]]
"""Names of the models of each group, by the name of the group."""

MOST = 1000
"""Maximum number of models of a group."""

LONGEST = 100
"""Maximum bytes of a name. Folders and files are named after it, and file systems allow 255 bytes."""

UNNAMED = "test"
"""Name of the only test set if it has no name. Its report has no name either."""

SELECTION = "selection"
"""Key of the set on which the tuner `auto` compares tuners."""

SET = "{set}"
"""Placeholder in the argument of a feature for the name of the set that is scored."""

TAKEN = (
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
    """The table `[shortlist]`: features that are computed only for the best candidates by all other features.

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
            raise InputError(f"shortlist.features: {label} has the scores of a file, which are for all candidates")
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


def read_monolingual(table: dict[str, Any], folder: Path, models: Mapping[str, "ModelEntry"], unplanned: bool) -> str:
    """Return the path of the monolingual text in the table of a corpus, or an empty string.

    Args:
        table: the table.
        folder: base folder of relative paths.
        models: the models of the experiment.
        unplanned: whether models are still to be chosen.

    Raises:
        InputError: the value is no path, no model trains on the text, a forward model trains on it and no model is a
            backward model, which would translate it, or a model has a setting for synthetic pairs and there are none.
    """
    text = str(folder / path_of(table, "monolingual", "train.")) if "monolingual" in table else ""
    if unplanned:
        return text
    requests, translates = [entry.request for entry in models.values()], read_back_translation(table, unplanned)
    trained = [
        each for each in requests if each.language_model or (translates and not (each.backward or each.symmetric))
    ]
    if text and not trained:
        kinds = "forward model or language model" if translates else f"language model ({BACK_TRANSLATION} = false)"
        raise InputError(f"train.monolingual: no {kinds} in [models] trains on it. Remove it")
    translated = any(not each.language_model for each in trained)
    if text and translated and not any(each.backward for each in requests):
        raise InputError("train.monolingual: expected a backward model in [models], which translates this text")
    for name, entry in models.items():
        if entry.request not in trained or not text:
            with at(f"models.{name}: "):
                entry.request.check_synthetic(None)
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
        place = f"pretrained.{name}"
        entry = as_table(value, place)
        check_keys(entry, ("model", "candidates"), f"{place}.")
        model = entry.get("model")
        if not isinstance(model, str) or not is_pretrained(model):
            raise InputError(f"{place}.model: expected a folder as in hf:DIR, found {model!r}")
        with at(f"{place}: "):
            require_transformers()
            from features.models.pretrained.form import with_form  # imports the packages

            check_candidates(entry.get("candidates"), name, backward=False)
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
        if name in TAKEN or name in tests:
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
    return NbestFiles(
        source=str(folder / path_of(table, "source", prefix)),
        reference=tuple(str(folder / str(path)) for path in references),
        nbest=str(folder / path_of(table, "nbest", prefix)),
        moses_output=str(folder / path_of(table, MOSES_OUTPUT, prefix)) if MOSES_OUTPUT in table else "",
    )


def members(presets: str, seeds: int) -> dict[str, dict[str, Any]]:
    """Return preset and seed of each model of `--preset A,B --seeds N`, by model name. Seeds count from 1."""
    names = presets.split(",")
    if len(set(names)) < len(names):
        raise InputError(f"preset: {presets} has a duplicate, seeds = N makes several models of one preset")
    if isinstance(seeds, bool) or not isinstance(seeds, int) or not 1 <= seeds * len(names) <= MOST:
        expected = f"expected a whole number from 1, and at most {MOST} models of one name"
        raise InputError(f"seeds: {expected}, found {seeds!r}")
    pairs = itertools.product(names, range(1, seeds + 1))
    return {f"{preset}-{seed}": {"preset": preset, "seed": seed} for preset, seed in pairs}


def expand_models(entries: Mapping[str, Any]) -> tuple[dict[str, Any], Groups]:
    """Expand entries with several presets or seeds to one entry per model, with the name `NAME-PRESET-SEED`.

    Such an entry has `preset = "a,b"`, a list of presets, or `seeds = N`.

    Raises:
        InputError: an invalid name, more than `MOST` models in a group, or two models with one name.
    """
    expanded: dict[str, Any] = {}
    groups: Groups = {}
    for name, entry in entries.items():
        check_name(name, "models")
        models = _models(name, entry)
        if models is None:
            expanded[name] = entry
            continue
        for model in models:
            if model in expanded or model in entries:
                raise InputError(f"models.{name}: another entry also makes a model {model!r}")
        expanded |= models
        groups[name] = tuple(models)
    return expanded, groups


def _models(name: str, entry: Any) -> dict[str, Any] | None:
    """Return the models of an entry with several presets or seeds, or None for an entry of one model."""
    presets = entry.get("preset") if isinstance(entry, dict) else None
    if isinstance(presets, list):
        presets = ",".join(str(preset) for preset in presets)
    elif not isinstance(presets, str) or not ("," in presets or "seeds" in entry):
        return None
    if "seed" in entry:
        raise InputError(f"models.{name}.seed: several models have the seeds 1, 2, …. Remove it")
    others = {key: value for key, value in entry.items() if key != "seeds"}
    with at(f"models.{name}."):
        several = members(presets, entry.get("seeds", 1))
    return {f"{name}-{member}": others | settings for member, settings in several.items()}


def check_name(name: str, key: str) -> None:
    """Raise `InputError` if a name below `key` of the experiment file is not valid as the name of a folder or file."""
    if not _NAME.fullmatch(name) or len(name.encode()) > LONGEST:
        expected = f"letters, digits, '_', and after the first character '-' and '.', {LONGEST} bytes at most"
        raise InputError(f"{key}: expected names of {expected}, found {name[:40]!r}")


def expand_feature(request: FeatureRequest, groups: Groups) -> list[FeatureRequest]:
    """Expand a feature of a group of models to one feature per model, with a number after the label.

    An `ensemble` remains one feature that uses all models of its groups.
    """
    if request.row.takes != "models":
        return [request]
    lists = []
    for part in request.parts:
        name, slash, member = part.partition("/")
        lists.append([f"{model}{slash}{member}" for model in groups.get(name, (name,))])
    if request.row.joint:
        return [request.with_parts([part for parts in lists for part in parts])]
    size = max(len(parts) for parts in lists)
    if any(len(parts) not in (1, size) for parts in lists):
        sizes = " and ".join(str(len(parts)) for parts in lists)
        raise InputError(f"features.{request.label}: groups of {sizes} models")
    # A single model is combined with each model of a group.
    expanded = [request.with_parts([parts[place % len(parts)] for parts in lists]) for place in range(size)]
    if size == 1:
        return expanded
    return [replace(each, label=f"{request.label}{number}") for number, each in enumerate(expanded, start=1)]


@dataclass(frozen=True)
class ModelEntry:
    """A model to train, or a pair of models that train together.

    Attributes:
        request: preset, direction and settings.
        pretrained: name of the entry, or folder, of the model that training starts from, or empty for none.
        candidates: translations that the model adds to each list, 0 for none. For a pair, its forward model adds them.
        group: name of the group of models, or of the model, with which it translates, or empty if it translates alone.
    """

    request: TrainingRequest
    pretrained: str = ""
    candidates: int = 0
    group: str = ""

    @property
    def subwords(self) -> tuple[Any, ...]:
        """Settings of vocabulary and target order that models which translate together must share."""
        _, training = self.request.settle()
        return (
            training.vocabulary_size,
            training.min_frequency,
            training.bpe,
            training.max_length,
            self.request.right_to_left,
        )


def read_model(entry: Any, place: str, train: ParallelFiles) -> ModelEntry:
    """Read the table of a model that is trained on a corpus.

    Args:
        entry: the table.
        place: its key, for messages.
        train: the corpus.

    Raises:
        InputError: no preset, an unknown setting, incompatible settings, or a corpus without data that a setting needs.
    """
    if not isinstance(entry, dict) or not isinstance(entry.get("preset"), str):
        raise InputError(f"{place}: expected a table with a preset")
    settings = dict(entry)
    for key in settings:
        if "-" in key and key in RENAMED:
            raise InputError(f"{place}: unknown key {key}. It is now {RENAMED[key]}")
    if isinstance(settings.get("candidates"), str):
        raise InputError(f"{place}.candidates: expected a number. The key for the name of a model is translate_with")
    preset, pretrained = settings.pop("preset"), str(settings.pop("pretrained_model", ""))
    candidates, leader = settings.pop("candidates", 0), settings.pop("translate_with", None)
    switches = {}
    for key in ("backward", "right_to_left", "paper_sizes"):
        value = switches[key] = settings.pop(key, False)
        if not isinstance(value, bool):
            raise InputError(f"{place}.{key}: expected true or false, found {value!r}")
    request = TrainingRequest(preset, **switches, settings=settings)
    with at(f"{place}: "):
        request.check(pretrained)
        request.check_corpus(request.reads(train))
        if request.language_model and (leader is not None or "candidates" in entry):
            raise InputError("candidates: a language model does not translate")
        if leader is not None:
            check_forward(request.backward)
            if not isinstance(leader, str):
                raise InputError(f"translate_with: expected the name of a model, found {leader!r}")
            if "candidates" in entry:
                raise InputError(f"candidates: with translate_with, give the number in the entry of {leader!r}")
            return ModelEntry(request, pretrained, group=leader)
        if "candidates" in entry:
            check_candidates(candidates, place.removeprefix("models."), request.backward)
    return ModelEntry(request, pretrained, candidates)


def grouped(models: Mapping[str, ModelEntry], groups: Groups) -> dict[str, ModelEntry]:
    """Return the models, each with the name of the group (ensemble) in which it translates.

    This is the group of its entry, or the model or group named by its key `translate_with`.

    Raises:
        InputError: `translate_with` is not the name of a model or group with `candidates`.
    """
    of_group = {name: group for group, names in groups.items() for name in names}
    together = {name: replace(entry, group=entry.group or of_group.get(name, "")) for name, entry in models.items()}
    for name, entry in models.items():
        if entry.group:
            first = models.get(groups.get(entry.group, (entry.group,))[0])
            if first is None or not first.candidates:
                expected = "expected the name of a model with candidates"
                raise InputError(f"models.{name}.translate_with: {expected}, found {entry.group!r}")
            group = of_group.get(entry.group, entry.group)
            together[name] = replace(together[name], group=group, candidates=first.candidates)
    return together


def translating(models: Mapping[str, ModelEntry]) -> dict[str, list[str]]:
    """Return the names of models that add candidates, by group, or by model if it translates alone.

    Raises:
        InputError: models of a group differ in target vocabulary, or in target order (left to right, right to left).
    """
    together: dict[str, list[str]] = {}
    for name, entry in models.items():
        if entry.candidates:
            together.setdefault(entry.group or name, []).append(name)
    for group, names in together.items():
        for name in names:
            if models[name].subwords != models[names[0]].subwords:
                fault = f"{names[0]} and {name} predict different words, or in a different order"
                raise InputError(
                    f"models.{group}: candidates: {fault}, and cannot translate together. Give each its own number"
                )
    return together


def find_pretrained(name: str, models: Mapping[str, ModelEntry], folder: Path) -> str:
    """Return the model or folder that a model starts from, after all checks that are possible before training."""
    start = models[name].pretrained
    with at(f"models.{name}.pretrained_model: "):
        if start not in models:
            start = known_folder(start, models, folder)
        elif start in list(models)[list(models).index(name) :]:
            raise InputError(f"put {start!r} before {name!r}")
        else:
            models[name].request.check_start(models[start].request)
    return start


def known_folder(name: str, models: Mapping[str, ModelEntry], folder: Path) -> str:
    """Return the path of an existing folder. Raise `InputError`, with the names of the models, if it does not exist."""
    if not os.path.isdir(folder / name):
        known = f". Models: {', '.join(models)}" if models else ""
        raise InputError(f"no model and no folder {name!r}{known}")
    return str(folder / name)
