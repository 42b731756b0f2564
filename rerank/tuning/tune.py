"""Tuning from lists, references and user settings to a weight file."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from features.arrays import Array
from features.compilation_status import compilation_shown
from features.progress import log, progress_bar
from moses_io.files.errors import InputError, counted, nearest, shown
from moses_io.weights import names_of_values, write_weights
from rerank import __version__
from rerank.linear.weights import INITIAL, load_weight_file, log_unmatched, with_unseen
from rerank.metrics.metric import Metric
from rerank.tuners import moses
from rerank.tuners.problem import MAX_COUNT, Problem, check_numbers, normalized_initial_weights
from rerank.tuners.table import AUTO, RENAMED, TUNERS, TunerKind, Tuning, run
from rerank.tuning.ablation import log_ablation
from rerank.tuning.auto import Choice, choose_and_log
from rerank.tuning.folds import FOLDS, CrossValidation, check_folds, cross_validate, usable_folds
from rerank.tuning.gain import Gain, RelativeWeight
from rerank.tuning.tuning_set import Extracted, Lists, TuningSet, make_problem


def make_tuning(values: dict[str, Any]) -> Tuning:
    """Return a `Tuning` from values by name, with defaults for the rest.

    Args:
        values: fields of `Tuning` except `settings`, and settings of its tuner.

    Raises:
        InputError: a name is unknown or a value is invalid.
    """
    shared_names = [each.name for each in fields(Tuning) if each.name != "settings"]
    shared_values = {name: value for name, value in values.items() if name in shared_names}
    tuner_values = {name: value for name, value in values.items() if name not in shared_names}
    parity = shared_values.get("parity", "")
    tuner = shared_values.get("tuner", "kbmira" if parity else "mean")
    for name in ("sign", "freeze"):
        names = shared_values.setdefault(name, ())
        if not (isinstance(names, (list, tuple)) and all(isinstance(each, str) for each in names)):
            raise InputError(f"{name}: expected a list of names, found {shown(names)}")
        shared_values[name] = tuple(names)
    if not isinstance(tuner, str) or tuner not in TUNERS:
        raise InputError(f"tuner: unknown tuner {shown(tuner)}{nearest(str(tuner), list(TUNERS))}")
    kind = TUNERS[tuner]
    if parity and tuner == "kbmira":
        tuner_values = {"C": moses.STEP} | tuner_values
    known = setting_names(kind)
    for name in tuner_values:
        owners = [other for other, row in TUNERS.items() if name in setting_names(row)]
        if name not in known and owners:
            raise InputError(
                f"unknown key {shown(name)} for the tuner {tuner}. It is for the tuners {', '.join(owners)}"
            )
        if name not in known:
            hint = f". It is now {RENAMED[name]}" if name in RENAMED else nearest(name, [*known, *shared_names])
            raise InputError(f"unknown key {shown(name)}{hint}")
    defaults: dict[str, Any] = {"tuner": tuner, "runs": 1 if parity else kind.runs, "metric": "bleu", "parity": ""}
    tuning = Tuning(**(defaults | shared_values), settings=kind.settings(**tuner_values))
    Metric(tuning.metric)  # only for its errors
    check_numbers(1, integer=True, maximum=MAX_COUNT, runs=tuning.runs)
    if not kind.random and tuning.runs > 1:
        raise InputError(f"runs: {tuner} uses no random numbers, so all runs are equal")
    if tuning.tuner == AUTO and tuning.runs > 1:
        raise InputError(f"runs: not a setting of {AUTO}. For more climbs of mert and runs of kbmira, set climbs=40")
    if tuning.parity not in ("", "moses"):
        raise InputError(f"parity: expected 'moses', found {shown(tuning.parity)}")
    plain = (tuning.tuner, tuning.metric, tuning.runs) == ("kbmira", "bleu", 1) and not tuning.sign + tuning.freeze
    if tuning.parity and not plain:
        raise InputError("parity: expected the tuner kbmira, the metric bleu, one run, and neither sign nor freeze")
    return tuning


def setting_names(kind: TunerKind) -> list[str]:
    """Return the names of the settings of a tuner."""
    return [each.name for each in fields(kind.settings)]


@dataclass(frozen=True)
class FoldSettings:
    """Settings of the cross-validation of a tuning.

    Attributes:
        folds: number of folds. 0: no cross-validation, or `FOLDS` with the tuner `auto`.
        fallback: whether to write the initial weights if these, or weights tuned without the new features, score
            higher in cross-validation (`CrossValidation.keeps_initial`). No effect for the tuner `auto`, which compares
            them itself.
        ablate: whether to log the loss without each feature.

    Raises:
        InputError: a value has a wrong type, or there is a fallback without folds.
    """

    folds: int = 0
    fallback: bool = False
    ablate: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.folds, int) or self.folds < 0 or self.folds == 1:
            raise InputError(f"folds: expected a whole number from 2, or 0 for none, found {shown(self.folds)}")
        for name, value in (("fallback", self.fallback), ("ablate", self.ablate)):
            if not isinstance(value, bool):
                raise InputError(f"{name}: expected true or false, found {shown(value)}")
        if self.fallback and not self.folds:
            raise InputError("fallback needs folds, which compare the initial weights with tuned weights")


@compilation_shown()
def tune(
    files: Lists | Extracted,
    initial_weights: str,
    tuning: Tuning,
    output: str,
    fold_settings: FoldSettings,
    selection: Lists | None = None,
) -> Gain:
    """Tune weights, write them to an ini file, and return the gain.

    Args:
        files: tuning set.
        initial_weights: path of the initial weights.
        tuning: settings of the tuning.
        output: path of the ini file.
        fold_settings: settings of the cross-validation.
        selection: lists on which `auto` chooses how to tune. None: it chooses in cross-validation.

    Raises:
        InputError: the metric is 0 for all weights, `selection` is given with a tuner other than `auto`, or there are
            too few sentences for cross-validation.
    """
    if selection and tuning.tuner != AUTO:
        raise InputError(f"selection is only for the tuner {AUTO}, not for {tuning.tuner}")
    content = load_weight_file(initial_weights)
    tuning_set = files.read(Metric(tuning.metric))
    problem, weights = make_problem(tuning_set, content, tuning)
    space, sentences = problem.candidates.space, len(problem.candidates.sentences)
    log_unmatched(space, weights, initial_weights)
    _warn_of(tuning_set)
    _check_matches(problem, tuning_set.advice)
    folds = usable_folds(fold_settings.folds, sentences)
    if (fold_settings.folds and tuning.tuner != AUTO) or fold_settings.ablate:
        check_folds(folds, sentences)
    new = [name for name, _ in space.dense if name not in weights]
    vector, validated, choice, comments = _find(problem, tuning, new, fold_settings, selection)
    chosen_on = f"|folds:{validated.folds}{'|compared:selection' if selection else ''}" if choice and validated else ""
    measured = f"metric:{Metric(tuning.metric).signature}|{files.signature}|version:{__version__}"
    gain = _gain(problem, vector, validated, choice, f"{tuning.signature}{chosen_on}|{measured}")
    gained = f"{gain.metric} on the tuning set {gain.before:.2f} -> {gain.after:.2f}"
    log.info(f"{gained} ({counted(sentences, 'sentence')}, {counted(len(problem.statistics), 'candidate')})")
    log.info(f"signature: {gain.signature}")
    sparse = [f"sparse weights: {os.path.abspath(path)}" for path in content.files[1:]]
    tuned = with_unseen(space.weights(vector), weights, space)
    write_weights(output, tuned, [gain.signature, gained, *sparse, *comments], content.untuneable)
    if fold_settings.ablate:
        log_ablation(problem, tuning, folds)
    return gain


def _find(
    problem: Problem, tuning: Tuning, new: list[str], fold_settings: FoldSettings, selection: Lists | None
) -> tuple[Array, CrossValidation | None, Choice | None, list[str]]:
    """Tune, after a cross-validation if requested.

    Returns:
        (size,) weights, cross-validated metrics with and without the `new` features (None if not measured), the choice
        of `auto` (None for other tuners), and comment lines to write above the weights.
    """
    if tuning.tuner == AUTO:
        choice, measured = choose_and_log(problem, tuning, new, fold_settings.folds or FOLDS, selection)
        return choice.weights, measured, choice, [choice.comment]
    validated = _cross_validate_new(problem, tuning, new, fold_settings.folds) if fold_settings.folds else None
    with progress_bar(f"tune by {tuning.tuner}", None):
        tuned = run(problem, tuning)
    if len(tuned.runs) > 1:
        metrics = 100 * np.array(tuned.runs)
        log.info(
            f"{len(metrics)} runs of {tuning.tuner}: {metrics.mean():.2f} on the tuning set, ± {metrics.std():.2f}"
        )
    if not (fold_settings.fallback and validated and validated.keeps_initial):
        return tuned.weights, validated, None, []
    comment = f"{INITIAL} are kept: weights with the new features score lower in cross-validation"
    scores = f"{100 * validated.new:.2f}, other weights tuned again {100 * validated.old:.2f} (p {validated.p:.4f})"
    if validated.initial is not None:
        scores += f", {INITIAL} {100 * validated.initial:.2f} (p {validated.p_initial:.4f})"
    log.info(f"{comment}: {scores}")
    return normalized_initial_weights(problem), replace(validated, weights=()), None, [comment]


def _cross_validate_new(problem: Problem, tuning: Tuning, new: list[str], folds: int) -> CrossValidation | None:
    """Cross-validate the new features and log their gain. Returns None if there are no new features."""
    if not new:
        log.info("all features have an initial weight: no new features to cross-validate")
        return None
    folds = usable_folds(folds, len(problem.candidates.sentences))
    columns = problem.candidates.space.columns_by_feature
    validated = cross_validate(problem, tuning, np.concatenate([columns[name] for name in new]), folds)  # (columns,)
    validated.report(new, f"{problem.formula.name} {validated.measured}", "other weights tuned again")
    return validated


def _check_matches(problem: Problem, advice: Sequence[str]) -> None:
    """Raise `InputError`, with advice on filters, if no candidate matches its references."""
    score, statistics = problem.formula.score, problem.statistics
    if not (score(statistics.sum(axis=0)) or score(statistics).any()):  # (), (N,)
        hint = ". ".join(advice) or "Do list and references match (tokens, case)?"
        raise InputError(f"{problem.formula.name} on the tuning set is 0 for all weights. {hint}")


def _gain(
    problem: Problem, weights: Array, validated: CrossValidation | None, choice: Choice | None, signature: str
) -> Gain:
    return Gain(
        metric=problem.formula.name,
        before=100 * problem.measure(problem.initial),
        after=100 * problem.measure(weights),
        measured=validated.measured if validated else "",
        old=100 * validated.old if validated else None,
        new=100 * validated.new if validated else None,
        p_value=validated.p if validated else None,
        chosen=choice.method.name if choice else "",
        compared=choice.compared if choice else (),
        signature=signature,
        relative_weights=tuple(_relative_weights(problem, weights, validated.weights if validated else ())),
    )


def _relative_weights(problem: Problem, weights: Array, folds: Sequence[Array]) -> Iterator[RelativeWeight]:
    """Yield the relative weight of each dense value that is not constant, in `weights` and in the weights of folds."""
    spread = problem.spread()  # (dense,)
    names = [
        value_name for name, count in problem.candidates.space.dense for value_name in names_of_values(name, count)
    ]
    products = np.stack([each[: len(spread)] * spread for each in (weights, *folds)])  # (1 + folds, dense)
    sums = np.abs(products).sum(axis=1, keepdims=True)  # (1 + folds, 1)
    value, *others = (products / np.where(sums > 0, sums, 1)).tolist()  # (dense,) each
    for column in np.flatnonzero(spread):
        yield RelativeWeight(names[column], value[column], tuple(fold[column] for fold in others))


def _warn_of(tuning_set: TuningSet) -> None:
    """Warn if list and references differ in form, and of feature names with `_`, which Moses' tools misinterpret."""
    for message in tuning_set.advice:
        log.warning(message)
    candidates = tuning_set.candidates
    misread = "Moses' tools read its first value as a sparse feature, and the others as dense values without a name"
    for name, _ in candidates.space.dense:
        if "_" in name:
            log.warning(f"feature {shown(name)} has '_' in its name: {misread}")
    counts = np.bincount(candidates.sparse.columns, minlength=len(candidates.space.sparse))  # (sparse,)
    for column in np.flatnonzero(counts == len(candidates.dense)):
        name = shown(candidates.space.sparse[column])
        log.warning(f"feature {name} is in every line, but Moses' tools take a name with '_' for a sparse feature")
