"""Ablation of the new features, cross-validated on dev and measured on test sets.

The sets of features are: Moses' features, these plus each new feature alone, all features, and all but each new one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.progress import aligned, log, progress_bar
from moses_io.files.json_files import read_record, write_json
from moses_io.files.text import write_text
from moses_io.weights import Weights
from rerank.metrics.metric import Metric
from rerank.metrics.significance import p_value
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning, run
from rerank.tuning.folds import cross_validated, usable_folds, without
from rerank.tuning.tuning_set import Lists, TuningSet, read_problem

MAX_BYTES = 2**30
"""Maximum size of a file of results. It is large because a file can have many sparse weights."""

BASE, EVERY = "Moses' features", "all features"


@dataclass(frozen=True)
class SetScore:
    """Score of a set of features.

    Attributes:
        score: metric, 0 … 100.
        p_value: p-value of the difference from the set named by `against`, by a paired randomization test
            (`rerank.metrics.significance`). None for the first set.
    """

    score: float
    p_value: float | None


Column = dict[str, SetScore]
"""Scores by set of features, on dev or on a test set."""


class Ablation(NamedTuple):
    """Results of an ablation.

    Attributes:
        how: metric and number of folds, as text.
        columns: scores by data set, dev first.
    """

    how: str
    columns: dict[str, Column]


@dataclass(frozen=True)
class _File:
    """Content of a JSON file for a data set."""

    column: Column


@dataclass(frozen=True)
class _DevFile(_File):
    """Content of the JSON file for dev, with how the scores were measured and the weights of each set of features."""

    how: str
    weights: dict[str, Weights]


def write_ablation(
    lists: Lists, initial_weights: str, features: Sequence[str], tuning: Tuning, folds: int, output: str
) -> None:
    """Compare the sets of features in cross-validation on dev. Write their scores and weights as JSON.

    Args:
        lists: lists and references of dev.
        initial_weights: path of the initial weights.
        features: labels of the new features.
        tuning: settings of the tuning.
        folds: number of folds, 0 for `FOLDS`.
        output: path of the JSON file.
    """
    dev, _ = read_problem(lists, initial_weights, tuning)
    columns = dev.candidates.space.columns_by_feature
    folds = usable_folds(folds, len(dev.candidates.sentences))
    column, weights = ablate(dev, tuning, {label: columns[label] for label in features}, folds)
    _write(
        output, column, how=f"{dev.formula.name}, {folds}-fold cross-validation on dev, one run each", weights=weights
    )


def write_column(test: Lists, metric: Metric, ablation: str, output: str) -> None:
    """Measure the sets of features on a test set and write their scores as JSON.

    Args:
        test: lists and references of the test set.
        metric: metric of the scores.
        ablation: path of the file that `write_ablation` wrote, with the weights.
        output: path of the JSON file.
    """
    weights = read_record(ablation, _DevFile, MAX_BYTES).weights
    _write(output, score_test(test.read(metric), weights, metric))


def read_ablation(paths: Mapping[str, str]) -> Ablation:
    """Read the JSON files of an ablation, given by the names of their data sets, dev first."""
    dev = read_record(paths["dev"], _DevFile, MAX_BYTES)
    tests = {
        data_set: read_record(path, _File, MAX_BYTES).column for data_set, path in paths.items() if data_set != "dev"
    }
    return Ablation(dev.how, {"dev": dev.column, **tests})


def _write(path: str, column: Column, **others: object) -> None:
    write_json(path, {**others, "column": {name: asdict(score) for name, score in column.items()}})


def ablate(dev: Problem, tuning: Tuning, new: dict[str, Integers], folds: int) -> tuple[Column, dict[str, Weights]]:
    """Tune with each set of features, with one run each.

    Args:
        dev: the tuning problem with all features.
        tuning: settings of the tuning.
        new: dense columns of each new feature, by its label.
        folds: number of folds.

    Returns:
        The cross-validated score of each set of features, and the weights tuned on all of dev, by set.
    """
    once = tuning.once
    all_new = np.concatenate(list(new.values()))  # (columns,)
    left_out: dict[str, Integers] = {BASE: all_new}  # each (columns,)
    left_out |= {f"+ {name}": np.setdiff1d(all_new, columns_of_feature) for name, columns_of_feature in new.items()}
    left_out |= {EVERY: np.array([], dtype=np.int64)}
    left_out |= (
        {f"without {name}": columns_of_feature for name, columns_of_feature in new.items()} if len(new) > 1 else {}
    )
    chosen: dict[str, Array] = {}
    weights: dict[str, Weights] = {}
    with progress_bar("ablate", (folds + 1) * len(left_out), whole=True) as bar:
        for name, columns in left_out.items():
            rest = without(dev, columns)
            chosen[name] = cross_validated(rest, once, folds, bar)[0]  # (n, formula.size)
            weights[name] = dev.candidates.space.weights(run(rest, once).weights)
            bar.advance(1, "")
    return _compare(chosen, dev.formula.score), weights


def log_ablation(problem: Problem, tuning: Tuning, folds: int) -> None:
    """Log the cross-validated loss without each feature, with the other features tuned again, largest loss first."""
    columns = problem.candidates.space.columns_by_feature
    left_out = {EVERY: np.array([], dtype=np.int64)} | {
        f"without {name}": columns_of_feature for name, columns_of_feature in columns.items()
    }
    with progress_bar("folds", folds * len(left_out)) as bar:
        chosen = {
            name: cross_validated(without(problem, columns_of_feature), tuning, folds, bar)[0]  # (n, formula.size)
            for name, columns_of_feature in left_out.items()
        }
    column = _compare(chosen, problem.formula.score)
    every = column.pop(EVERY).score
    log.info(f"{problem.formula.name} in {folds}-fold cross-validation: {every:.2f} with all features")
    for name, rest in sorted(zip(columns, column.values(), strict=True), key=lambda item: item[1].score):
        log.info(f"  without {name}: {rest.score:.2f} ({rest.score - every:+.2f}, p {rest.p_value:.4f})")


def score_test(test: TuningSet, weights: Mapping[str, Weights], metric: Metric) -> Column:
    """Return the scores of several weights, given by set of features, on a list that they were not tuned on."""
    chosen = {name: test.chosen(set_weights) for name, set_weights in weights.items()}  # each (n, formula.size)
    return _compare(chosen, metric.formula.score)


def _compare(chosen: Mapping[str, Array], score: Callable[[Array], Array]) -> Column:
    """Return scores and p-values from the (n, formula.size) statistics of the candidates chosen by each set."""
    column = {}
    for name, statistics in chosen.items():
        baseline = chosen.get(against(name))
        p = None if baseline is None else p_value(score, statistics, baseline)
        column[name] = SetScore(100 * float(score(statistics.sum(axis=0))), p)  # ()
    return column


def against(name: str) -> str:
    """Return the name of the set that a set of features is compared with, empty for the first set.

    Sets without one new feature are compared with all features, the other sets with Moses' features.
    """
    return "" if name == BASE else EVERY if name.startswith("without ") else BASE


def write_table(paths: Mapping[str, str], outputs: Sequence[str]) -> None:
    """Write the table of an ablation as text and as JSON.

    Args:
        paths: JSON files of the ablation by data set, dev first.
        outputs: paths of the text file and of the JSON file.
    """
    ablation = read_ablation(paths)
    rows = [
        {
            "name": name,
            "against": against(name),
            "sets": {data_set: asdict(column[name]) for data_set, column in ablation.columns.items()},
        }
        for name in ablation.columns["dev"]
    ]
    as_text, as_json = outputs
    write_text(as_text, "".join(f"{line}\n" for line in ablation_lines(ablation)))
    write_json(as_json, rows, indent=2)


def ablation_lines(ablation: Ablation) -> list[str]:
    """Return the table of an ablation as plain text."""
    return [ablation_title(ablation), *aligned(ablation_cells(ablation)), *ablation_notes(ablation)]


def ablation_title(ablation: Ablation) -> str:
    """Return the title of the table."""
    return f"Ablation of features ({ablation.how})"


def ablation_cells(ablation: Ablation) -> list[list[str]]:
    """Return the cells of the table, head first: one row per set of features, two columns per data set."""
    heads = {data_set: data_set for data_set in ablation.columns} | {"dev": "dev, cross-validated"}
    rows = [["features", *(cell for head in heads.values() for cell in (head, "p"))]]
    for name in ablation.columns["dev"]:
        row = [name]
        for each in (column[name] for column in ablation.columns.values()):
            row += [f"{each.score:.2f}", "" if each.p_value is None else f"{each.p_value:.4f}"]
        rows.append(row)
    return rows


def ablation_notes(ablation: Ablation) -> list[str]:
    """Return the meaning of p, and a warning if the new features do not help."""
    on_dev = ablation.columns["dev"]
    notes = [f"p: against {BASE}, in rows 'without …' against {EVERY}"]
    if on_dev[EVERY].score <= on_dev[BASE].score:
        notes.append("warning: the new features do not improve the cross-validated score")
    return notes
