"""Checks before the hours of training: files, lists, weights and features that do not fit each other."""

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import numpy as np

from features.feature import Resources
from features.feature_set import FeatureSet
from features.models.config import read_config
from features.models.tables import ADDED, load
from features.monolingual import MAX_SENTENCE_LENGTH, check_language, usable_sentences
from features.progress import log
from features.request import FeatureRequest, split_values
from moses_io.files.errors import InputError, at, counted, shown
from moses_io.files.streams import check_plain, digest, name_of
from moses_io.files.text import read_texts
from moses_io.hypothesis import UNLABELLED, no_total
from moses_io.merge import first_indicator
from moses_io.nbest import SentenceList, check_id, read_moses_output, read_nbest, without_marks
from moses_io.weights import read_weights
from rerank.experiment.entries import NbestFiles
from rerank.experiment.experiment import Experiment
from rerank.experiment.recipe import LABELS
from rerank.experiment.scoring import scoring_settings
from rerank.experiment.stages import RECORD, digests_read, has_settings
from rerank.linear.candidates import FeatureSpace
from rerank.linear.weights import limits
from rerank.lists.scoring import WholeSources, check_labels, score_list
from rerank.systems.translations import indicators
from rerank.tuners.table import AUTO
from rerank.tuning.folds import check_folds, usable_folds


def check_inputs(experiment: Experiment, to_make: str = "") -> None:
    """Check everything that can be checked without a model.

    A list is read to its end, unless a stage of an earlier run has read this file.

    Args:
        experiment: the experiment.
        to_make: path of the list of dev if it does not exist yet, or empty if it exists.

    Raises:
        InputError: a file is missing or no plain file, weights or a line of a list cannot be read, weights do not fit
            the list of dev, a source and its references differ in length, a list has an id beyond its source, a list
            already has a feature of the experiment, a list lacks a total or the features of a merged list although a
            feature needs them, or a package that a feature needs is missing.
    """
    for path in experiment.files:
        if path != to_make:
            check_plain(path)
    for name in experiment.models if experiment.trained_models else ():
        _check_trained(experiment, name)
    if experiment.monolingual and not next(usable_sentences(experiment.monolingual), ""):
        raise InputError(f"{experiment.monolingual}: no sentence of 1 to {MAX_SENTENCE_LENGTH} words")
    if experiment.monolingual:
        check_language(experiment.monolingual, experiment.train)
    read_weights(experiment.initial_weights)  # only for its errors, before hours of work
    for name, files in experiment.sets.items():
        source, _ = read_texts(files.source, files.reference)
        if files.moses_output:
            printed = read_moses_output(files.moses_output, marks=experiment.tuning.filters.marks)
            printed.check(len(source), files.source)
        paths_by_feature = [each.parts for each in experiment.requests(name) if each.row.takes in ("files", "weights")]
        for path in itertools.chain.from_iterable(paths_by_feature):
            check_plain(path)
        if files.nbest != to_make:
            _check_list(experiment, files, len(source))
    for request in experiment.pretrained:
        for path in request.paths[1:]:
            check_plain(path)
        if not os.path.isdir(request.paths[0]):
            raise InputError(f"pretrained.{request.name}: no folder {request.paths[0]!r}")
    for required in {request.row.requires for request in experiment.features.values()} - {""}:
        load(required)()
    parts = [part for request in experiment.features.values() for part in request.parts]
    used = {
        part.partition("/")[0] for part in (*parts, *(entry.pretrained_model for entry in experiment.models.values()))
    }
    if experiment.translates_text:
        used.add(experiment.back_translator)
    for name, entry in experiment.models.items():
        if name not in used and not entry.candidates:
            log.warning(f"no feature uses the model {shown(name)}")


def try_features(experiment: Experiment, resources: Resources) -> None:
    """Score the first sentence of dev with features that need no model of ours, except those of an earlier run.

    Pretrained models are loaded on the CPU, since this process keeps the memory of a GPU.

    Raises:
        InputError: a file that a feature cannot use, a program that fails, or a list without the fields that a feature
            needs.
    """
    tried = [each for each in experiment.requests("dev") if each.row.takes != "models" and not each.row.learns]
    if _is_read(experiment, experiment.dev):
        record = experiment.output / RECORD
        tried = [each for each in tried if not has_settings(record, scoring_settings([each], resources))]
    if tried:
        dev, on_cpu = experiment.dev, replace(resources, device="cpu")
        next(score_list(dev.nbest, WholeSources(dev.source), FeatureSet(tried, on_cpu), max_sentences=1))


def _is_read(experiment: Experiment, files: NbestFiles) -> bool:
    """Return whether earlier runs have read a list, its source and, if any, Moses' output, perhaps not together."""
    paths = filter(None, (files.nbest, files.source, files.moses_output))
    return {digest(Path(path)) for path in paths} <= digests_read(experiment.output / RECORD)


def _check_trained(experiment: Experiment, name: str) -> None:
    """Raise `InputError` if the folder of a model that is already trained does not exist or is no model."""
    for folder in experiment.models[name].request.folders:
        path = Path(experiment.model(name)) / folder
        if not path.is_dir():
            raise InputError(f"{path}: no such folder, expected the trained model {name!r}")
        read_config(path)


def _check_list(experiment: Experiment, files: NbestFiles, lines: int) -> None:
    """Raise `InputError` if a list does not fit its source, the features or the initial weights.

    `lines` is the number of lines of the source.
    """
    lists, folds, count, listed = read_nbest(files.nbest), experiment.tuning.fold_settings.folds, 0, 0
    if experiment.features or experiment.candidates or not experiment.tuning.filters.marks:
        lists = without_marks(lists)  # features and models read no segmentation marks
    if files.moses_output:
        lists = read_moses_output(files.moses_output, marks=experiment.tuning.filters.marks).add_to(lists)
    first = next(lists)
    added = indicators([each.name for each in experiment.candidates])
    check_labels(first, [*experiment.features, *added])
    # Models that are chosen by `run` may add no translations, after a comparison with Moses.
    chosen = LABELS.values() if experiment.text else ()
    features = {} if experiment.candidates and not experiment.text else experiment.features
    _check_merged(first, {label: each for label, each in features.items() if label not in chosen})
    if files == experiment.dev:
        _check_weights(experiment, first, added)
    needing_total = [label for label, request in experiment.features.items() if request.row.total]
    read, last = _is_read(experiment, files), first
    for sentence_list in itertools.chain([first], () if read else lists):
        check_id(sentence_list, lines, "source")
        _check_total(sentence_list, needing_total)
        count += 1
        listed += sentence_list.moses_choice is not None
        last = max(last, sentence_list, key=attrgetter("sentence"))
    if not read:
        _check_end(experiment, files, last, lines)
    if not (listed or read):
        expected = "Expected Moses' output of the same sentences"
        log.warning(f"{files.moses_output}: no line is a candidate of {files.nbest}. {expected}")
    if files == experiment.dev and not read:
        with at(f"{files.nbest}: "):
            check_folds(usable_folds(folds, count), count)
            if experiment.tuning.tuning.tuner == AUTO and not experiment.selection and count < 3:
                raise InputError(f"{AUTO} needs at least 3 sentences, found {count}")


def _check_total(sentence_list: SentenceList, labels: Sequence[str]) -> None:
    """Raise `InputError` if a line has no total. `labels` are those of the features that need Moses' total."""
    for hypothesis in sentence_list.hypotheses if labels else ():
        if hypothesis.total is None:
            fault = f"feature {shown(labels[0])} needs Moses' total: {no_total(hypothesis)}"
            hint = "Remove it from [features]. If `run` chose it, name [models] and [features] without it"
            raise InputError(f"{name_of(sentence_list.path)}:{hypothesis.number}: {fault}. {hint}")


def _check_merged(sentence_list: SentenceList, requests: Mapping[str, FeatureRequest]) -> None:
    """Raise `InputError` if a feature has the value `added` of merged lists and the list is not merged."""
    merged = first_indicator(sentence_list.hypotheses[0]) is not None
    for label, request in requests.items():
        if request.row.takes == "models" and ADDED in split_values(request.argument)[1] and not merged:
            hint = f"Set `candidates` of a model, or remove '{ADDED}'"
            raise InputError(f"feature {shown(label)}: the value '{ADDED}' is for merged lists. {hint}")


def _check_end(experiment: Experiment, files: NbestFiles, last: SentenceList, lines: int) -> None:
    """Raise `InputError` if a list of a test set ends early and there is no output of Moses, or warn for other lists.

    Tuning ignores sentences without candidates, but their reranked translations would be empty.
    """
    missing = lines - last.sentence - 1
    if not missing or files.moses_output:
        return
    ends = f"{last.end}: the list ends at sentence {last.sentence}, expected sentences up to {lines - 1}"
    if files in experiment.tests.values():
        raise InputError(f"{ends}. The decoder probably stopped early. The key moses_output fills missing lines")
    log.warning(f"{ends}. {counted(missing, 'sentence')} without candidates are ignored")


def _check_weights(experiment: Experiment, first: SentenceList, added: list[str]) -> None:
    """Raise `InputError` if initial weights, `sign` or `freeze` do not match the features of dev."""
    weights, tuning = read_weights(experiment.initial_weights), experiment.tuning.tuning
    space = FeatureSpace(tuple((name, len(values)) for name, values in first.hypotheses[0].dense))
    if UNLABELLED not in weights:
        with at(f"{experiment.initial_weights}: "):
            space.vector(weights)
    names = [*space.columns, *experiment.features, *added]
    sparse = [name for text in tuning.sign if (name := text.rpartition(":")[0]) not in names and "_" in name]
    whole = FeatureSpace(tuple((name, 1) for name in dict.fromkeys(names)), tuple(sparse))
    with at("tuning: "):
        limits(whole, np.zeros(whole.size), tuning.sign, tuning.freeze)  # (size,) each
