"""What each new feature is worth: alone beside Moses' own, all of them, and all but it; on folds of dev, on tests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from features.arrays import Array, Integers
from features.progress import aligned, progress_bar
from moses_io.json_files import as_written, number_of, read_json, text_of, write_json
from moses_io.text import write_text
from moses_io.weights import Weights
from rerank.metrics.metric import Metric
from rerank.metrics.significance import p_value
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning, run
from rerank.tuning.folds import FOLDS, out_of_fold, without
from rerank.tuning.tune import read_problem
from rerank.tuning.tuning_set import Lists, TuningSet

MOST_BYTES = 2**30
"""Size of the largest file that is read: with many sparse weights it is large."""

BASE, EVERY = "Moses' features", "and all"


@dataclass(frozen=True)
class Reached:
    """What a set of features reaches: the metric, 0 … 100, and its p against another set, None of the first.

    p is that of `rerank.metrics.significance`.
    """

    score: float
    p_value: float | None


Column = dict[str, Reached]
"""What each set of features, by its name, reaches on dev or on a test set."""


class Ablation(NamedTuple):
    """A scored list of dev, weights to start from, labels of the new features, and parts of dev; 0: as usual."""

    dev: Lists
    start: str
    features: tuple[str, ...]
    folds: int


class Ablated(NamedTuple):
    """What dev says: out of fold, and the weights of each set of features, by its name, tuned on all of dev."""

    column: Column
    weights: dict[str, Weights]


class Worth(NamedTuple):
    """What was found on some sets of sentences, by their names and dev first; `how` says by which metric and folds."""

    how: str
    columns: dict[str, Column]


def write_ablation(ablation: Ablation, tuning: Tuning, output: str) -> None:
    """Compare the sets of features on folds of dev, and write what they reach, and their weights, as JSON."""
    dev = read_problem(ablation.dev, ablation.start, tuning)[0]
    columns = dev.candidates.space.columns_by_feature
    folds = min(ablation.folds or FOLDS, len(dev.candidates.sentences))
    ablated = ablate(dev, tuning, {label: columns[label] for label in ablation.features}, folds)
    _write(output, ablated.column, how=f"{dev.formula.name}, {folds} folds, one run each", weights=ablated.weights)


def write_column(test: Lists, metric: Metric, ablation: str, output: str) -> None:
    """Write, as JSON, what the sets of features of `write_ablation` reach on a test set."""
    content = _read(ablation)
    with as_written(ablation):
        sets: dict[str, Weights] = {
            name: {feature: tuple(map(number_of, values)) for feature, values in own.items()}
            for name, own in content["weights"].items()
        }
    _write(output, reach(test.read(metric), sets, metric))


def read_worth(paths: Mapping[str, str]) -> Worth:
    """Read what was written of some sets of sentences, by their names and dev first."""
    how, columns = "", {}
    for of, path in paths.items():
        content = _read(path)
        with as_written(path):
            columns[of] = {name: _reached(**reached) for name, reached in content["column"].items()}
            how = text_of(content["how"]) if of == "dev" else how
    return Worth(how, columns)


def _read(path: str) -> Any:
    """Read what `_write` wrote."""
    return read_json(Path(path), MOST_BYTES)


def _reached(score: Any, p_value: Any) -> Reached:
    return Reached(number_of(score), None if p_value is None else number_of(p_value))


def _write(path: str, column: Column, **others: object) -> None:
    write_json(path, {**others, "column": {name: asdict(reached) for name, reached in column.items()}})


def ablate(dev: Problem, tuning: Tuning, new: dict[str, Integers], folds: int) -> Ablated:
    """Tune, once each, on all choices of features that leave a new one, by its dense columns, out or have it alone."""
    once = tuning.once
    every = np.concatenate(list(new.values()))  # (columns,)
    left_out: dict[str, Integers] = {BASE: every}  # each (columns,)
    left_out |= {f"and {name}": np.setdiff1d(every, own) for name, own in new.items()}
    left_out |= {EVERY: np.array([], dtype=np.int64)}
    left_out |= {f"all but {name}": own for name, own in new.items()} if len(new) > 1 else {}
    chosen: dict[str, Array] = {}
    weights: dict[str, Weights] = {}
    with progress_bar("ablate", (folds + 1) * len(left_out)) as bar:
        for name, columns in left_out.items():
            rest = without(dev, columns)
            chosen[name] = out_of_fold(rest, once, folds, bar).statistics  # (n, formula.size)
            weights[name] = dev.candidates.space.weights(run(rest, once).weights)
            bar.advance(1, "")
    return Ablated(_compare(chosen, dev.formula.score), weights)


def reach(test: TuningSet, weights: Mapping[str, Weights], metric: Metric) -> Column:
    """Return what weights, by the name of their set of features, reach on a scored list that they were not tuned on."""
    chosen = {name: test.chosen(own) for name, own in weights.items()}  # each (n, formula.size)
    return _compare(chosen, metric.formula.score)


def _compare(chosen: Mapping[str, Array], score: Callable[[Array], Array]) -> Column:
    """Return what is reached by (n, formula.size) statistics of the candidates that sets of features choose."""
    column = {}
    for name, mine in chosen.items():
        p = p_value(score, mine, chosen[against(name)]) if against(name) else None
        column[name] = Reached(100 * float(score(mine.sum(axis=0))), p)  # ()
    return column


def against(name: str) -> str:
    """Return the name of the set of features that another one is compared with, empty for the first."""
    return "" if name == BASE else EVERY if name.startswith("all but ") else BASE


def write_table(paths: Mapping[str, str], outputs: Sequence[str]) -> None:
    """Write the table of what `read_worth` reads, as text and as JSON."""
    worth = read_worth(paths)
    rows = [
        {"name": name, "against": against(name), "sets": {of: asdict(each[name]) for of, each in worth.columns.items()}}
        for name in worth.columns["dev"]
    ]
    as_text, as_json = outputs
    write_text(as_text, "".join(f"{line}\n" for line in worth_lines(worth)))
    write_json(as_json, rows, indent=2)


def worth_lines(worth: Worth) -> list[str]:
    """Return the lines of a table: a row a set of features, a column a set of sentences."""
    on_dev = worth.columns["dev"]
    heads = {of: f"{of:>8}" for of in worth.columns} | {"dev": f"{'dev, out of fold':>18}"}
    rows = [["features", *(cell for head in heads.values() for cell in (head, f"{'p':>6}"))]]
    for name in on_dev:
        row = [name]
        for reached in (column[name] for column in worth.columns.values()):
            row += [f"{reached.score:.2f}", "" if reached.p_value is None else f"{reached.p_value:.4f}"]
        rows.append(row)
    title = f"What each feature is worth ({worth.how}; p against {BASE}, below against all)"
    table = [title, *aligned(rows)]
    if on_dev[EVERY].score <= on_dev[BASE].score:
        table.append("warning: the new features do not help on sentences that were not tuned on")
    return table
