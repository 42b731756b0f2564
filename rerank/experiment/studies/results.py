"""Results of a study: collected from the files that its stages have written, and formatted as tables, JSON and CSV."""

import csv
import io
import itertools
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from features.progress import aligned
from moses_io.files.json_files import as_written, read_record, record_of
from rerank import __version__
from rerank.experiment.entries import SELECTION
from rerank.experiment.studies.file import Study
from rerank.metrics.significance import SEED, TRIALS
from rerank.report.changes import MOSES
from rerank.tuning.gain import GAIN, read_gain

COLUMNS = ("size", "seed", "name", "set", "measure", "value")
"""Columns of the CSV file, which has one value per line. `name` is a model or a system."""

NOTHING = "-"
"""Placeholder for a value that is missing."""


@dataclass(frozen=True)
class Replicated:
    """A value for each seed. Seeds that failed are missing."""

    values: Mapping[int, float]

    @property
    def mean(self) -> float | None:
        """Mean over seeds, or None without values."""
        return statistics.mean(self.values.values()) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation (n - 1 in the denominator), or None for fewer than two values."""
        return statistics.stdev(self.values.values()) if len(self.values) > 1 else None

    def as_json(self) -> dict[str, Any]:
        """Return mean, deviation and values as JSON values."""
        seeds = {str(seed): value for seed, value in self.values.items()}
        return {"mean": self.mean, "standard_deviation": self.deviation, "seeds": seeds}


@dataclass(frozen=True)
class Measured:
    """The record that `measure` writes for a model.

    Attributes:
        parameters: number of parameters.
        perplexity: perplexity by text.
    """

    parameters: int
    perplexity: dict[str, float]


@dataclass(frozen=True)
class ModelResult:
    """Results of a model at one size.

    Attributes:
        size: sentence pairs of the corpus.
        model: name of the model.
        parameters: number of parameters, or None if all seeds failed.
        perplexity: perplexity by text.
    """

    size: int
    model: str
    parameters: int | None
    perplexity: dict[str, Replicated]


@dataclass(frozen=True)
class TestResult:
    """Results of a system on a test set at one size.

    Attributes:
        scores: scores of the system, by metric.
        moses: scores of Moses' own translations, by metric.
        p: p-values of the difference in BLEU to other systems, over all seeds, by system. See `replicates_p_value`.
    """

    __test__ = False
    scores: dict[str, Replicated]
    moses: dict[str, Replicated]
    p: dict[str, float]

    @property
    def gain(self) -> Replicated:
        """Difference in BLEU to Moses."""
        scores, moses = self.scores["BLEU"].values, self.moses["BLEU"].values
        return Replicated({seed: value - moses[seed] for seed, value in scores.items()})


@dataclass(frozen=True)
class SystemResult:
    """Results of a system at one size.

    Attributes:
        size: sentence pairs of the corpus.
        system: name of the system.
        with_features: metric on sentences that the weights were not tuned on, with the features of the system.
        without_features: the metric on these sentences without the features of the system.
        tests: results by test set.
    """

    size: int
    system: str
    with_features: Replicated
    without_features: Replicated
    tests: dict[str, TestResult]

    def as_json(self) -> dict[str, Any]:
        """Return the results as JSON values, with `Replicated` objects for values by seed."""
        tests = {
            name: {
                "scores": test.scores,
                MOSES: {metric: value.mean for metric, value in test.moses.items()},
                "gain": test.gain,
                "p_values": test.p,
            }
            for name, test in self.tests.items()
        }
        unseen = {"with": self.with_features, "without": self.without_features}
        return {"size": self.size, "system": self.system, "unseen": unseen, "tests": tests}


@dataclass(frozen=True)
class Results:
    """All results of a study.

    Attributes:
        models: results of models.
        systems: results of systems.
        metric: metric that the weights were tuned for.
        unseen: where `with_features` and `without_features` were measured: in cross-validation on dev, or on the set
            `selection`.
        signatures: sacreBLEU signatures of the scores on test sets, by metric.
    """

    models: list[ModelResult]
    systems: list[SystemResult]
    metric: str
    unseen: str
    signatures: dict[str, str]


def gather(study: Study) -> Results:
    """Read all results that exist. Raise `InputError` if a file is not as this package wrote it."""
    models = [
        result
        for size, model in itertools.product(study.sizes, study.experiment.models)
        for result in _models(study, size, model)
    ]
    systems = [_system(study, size, system) for size, system in itertools.product(study.sizes, study.systems)]
    signatures: dict[str, str] = {}
    for size, seed, system in itertools.product(study.sizes, study.seeds, study.systems):
        for test in study.experiment.tests:
            signatures |= _report(study, study.replicate(size, seed) / system, test).get("signatures", {})
    unseen = SELECTION if study.experiment.selection else "dev, cross-validated"
    return Results(models, systems, study.experiment.tuning.tuning.metric, unseen, signatures)


def _models(study: Study, size: int, model: str) -> list[ModelResult]:
    """Return the result of a model, or both results of a pair of models."""
    paths = {seed: Path(study.perplexities(size, seed, model)) for seed in study.seeds}
    measured = {seed: read_record(path, list[Measured]) for seed, path in paths.items() if path.exists()}
    results = []
    with as_written(f"{study.output}/{size}"):
        for index, name in enumerate(study.folders(size, study.seeds[0], model)):
            of_model = {seed: models[index] for seed, models in measured.items()}
            by_text = {
                text: Replicated({seed: each.perplexity[text] for seed, each in of_model.items()})
                for text in study.texts
            }
            parameters = next((each.parameters for each in of_model.values()), None)
            results.append(ModelResult(size, name, parameters, by_text))
    return results


def _system(study: Study, size: int, system: str) -> SystemResult:
    folders = {seed: study.replicate(size, seed) / system for seed in study.seeds}
    gains = {seed: read_gain(str(folder / GAIN)) for seed, folder in folders.items() if (folder / GAIN).exists()}
    return SystemResult(
        size=size,
        system=system,
        with_features=Replicated({seed: gain.new for seed, gain in gains.items() if gain.new is not None}),
        without_features=Replicated({seed: gain.old for seed, gain in gains.items() if gain.old is not None}),
        tests={test: _test(study, folders, test, Path(study.p_values(size, system, test))) for test in study.tests},
    )


def _test(study: Study, folders: Mapping[int, Path], test: str, compared: Path) -> TestResult:
    """Return the result of a system on a test set. `folders` are the folders of its seeds."""
    reports = {seed: report for seed, folder in folders.items() if (report := _report(study, folder, test))}
    with as_written(compared.parent):
        metrics = list(next(iter(reports.values()))["signatures"]) if reports else ["BLEU"]
        moses, reranked = (
            {
                metric: Replicated(
                    {
                        seed: record_of(each["systems"][row][metric]["score"], float, compared.parent)
                        for seed, each in reports.items()
                    }
                )
                for metric in metrics
            }
            for row in (0, 1)  # Moses, then the reranker
        )
    return TestResult(reranked, moses, p=read_record(compared, dict[str, float]) if compared.exists() else {})


def _report(study: Study, folder: Path, test: str) -> dict[str, Any]:
    """Return the report on a test set in the folder of a cell. It is empty if the cell failed."""
    path = Path(replace(study.experiment, output=folder).report(test, "json"))
    return read_record(path, dict[str, Any]) if path.exists() else {}


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: description of the values.
        header: names of the columns.
        rows: cells. The second column is text, the other columns are values.
    """

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def plain(self) -> list[str]:
        """Return the lines of the table as plain text."""
        return [self.title, *aligned([self.header, *self.rows], left=(1,))]

    def markdown(self) -> list[str]:
        """Return the lines of the table in Markdown."""
        escaped = [[cell.replace("|", "\\|") for cell in row] for row in (self.header, *self.rows)]
        escaped.insert(1, ["---:", "---", *["---:"] * (len(self.header) - 2)])
        return [f"**{self.title}**", "", *(f"| {' | '.join(row)} |" for row in escaped)]


def tables(study: Study, results: Results) -> list[Table]:
    """Return the tables of a study: perplexities, and one table for each test set with references.

    Without such test sets, there is a table for dev instead.
    """
    shown = [_perplexities(study, results.models)] if results.models else []
    if study.systems:
        shown += [_systems(study, results, test) for test in study.tests] or [_dev(results)]
    return shown


def notes(study: Study) -> list[str]:
    """Return notes for the tables: seeds, deviations and the significance test."""
    several = len(study.seeds) > 1
    seeds = f"seeds {', '.join(map(str, study.seeds))}" if several else f"seed {study.seeds[0]}"
    lines = [f"Mean ± standard deviation over {seeds}." if several else f"One replicate, {seeds}."]
    if study.systems and study.tests:
        outputs = "outputs of all seeds shuffled within each sentence (Clark et al. 2011)"
        test = f"approximate randomization, {outputs}, {TRIALS:,} trials"
        lines.append(f"p: p-value of the difference in BLEU by {test}.")
    return lines


def as_json(study: Study, results: Results, failed: Sequence[str]) -> str:
    """Return all results as JSON, with signatures and version. `failed` are the names of stages that failed."""
    content = {
        "version": __version__,
        "sizes": study.sizes,
        "seeds": study.seeds,
        "metric": results.metric,
        "unseen": results.unseen,
        "signatures": results.signatures,
        "significance": {"test": "stratified approximate randomization", "trials": TRIALS, "seed": SEED},
        "tuning": study.experiment.tuning.tuning.signature,
        "models": [vars(each) for each in results.models],
        "systems": [each.as_json() for each in results.systems],
        "failed": list(failed),
    }
    return json.dumps(content, indent=1, default=Replicated.as_json)


def as_csv(results: Results) -> str:
    """Return scores and perplexities as CSV, one line for each value of each seed. Moses is a system of its own."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for size, name, data_set, measure, replicated in _numbers(results):
        writer.writerows(
            [size, seed, name, data_set, measure, repr(value)] for seed, value in replicated.values.items()
        )
    return stream.getvalue()


def _numbers(results: Results) -> Iterator[tuple[int, str, str, str, Replicated]]:
    for model in results.models:
        for text, replicated in model.perplexity.items():
            yield model.size, model.model, text, "perplexity", replicated
    for system in results.systems:
        data_set, _, method = results.unseen.partition(", ")
        yield system.size, system.system, data_set, f"{results.metric} {method}".strip(), system.with_features
        for test, result in system.tests.items():
            for metric, replicated in result.scores.items():
                yield system.size, system.system, test, metric, replicated
    moses: dict[tuple[int, str, str], dict[int, float]] = {}
    for system in results.systems:  # Moses' scores depend on no system, but a system that failed has none
        for test, result in system.tests.items():
            for metric, replicated in result.moses.items():
                moses.setdefault((system.size, test, metric), {}).update(replicated.values)
    for (size, test, metric), values in moses.items():
        yield size, MOSES, test, metric, Replicated(dict(sorted(values.items())))


def _perplexities(study: Study, models: Sequence[ModelResult]) -> Table:
    header = ("pairs", "model", "parameters", *study.texts)
    rows = [
        (
            f"{each.size:,}",
            each.model,
            f"{each.parameters:,}" if each.parameters is not None else NOTHING,
            *(mean_and_deviation(each.perplexity[text]) for text in study.texts),
        )
        for each in models
    ]
    return Table("Perplexity per word, including ends of sentences", header, rows)


def _systems(study: Study, results: Results, test: str) -> Table:
    tests, first = [each.tests[test] for each in results.systems], next(iter(study.systems))
    # Moses' scores depend on no system: take them from the first system with results.
    done = next((each for each in tests if each.scores["BLEU"].values), TestResult({}, {}, {}))
    others = [metric for metric in done.scores if metric != "BLEU"]
    against = [first] if len(study.systems) > 1 else []
    header = ("pairs", "system", results.unseen, "BLEU", "gain", "p", *(f"p to {name}" for name in against), *others)
    bleu, *of_others = (f"{done.moses[each].mean:.2f}" if done.moses else NOTHING for each in ("BLEU", *others))
    rows = [("", MOSES, NOTHING, bleu, *[NOTHING] * (2 + len(against)), *of_others)]
    for system, result in zip(results.systems, tests, strict=True):
        p_values = [f"{result.p[name]:.4f}" if name in result.p else NOTHING for name in (MOSES, *against)]
        bleu, *of_others = (mean_and_deviation(result.scores.get(each, Replicated({}))) for each in ("BLEU", *others))
        gain = mean_and_deviation(result.gain, sign="+")
        rows.append(
            (
                f"{system.size:,}",
                system.system,
                mean_and_deviation(system.with_features),
                bleu,
                gain,
                *p_values,
                *of_others,
            )
        )
    return Table(f"{test}: reranking of Moses' lists", header, rows)


def _dev(results: Results) -> Table:
    header = ("pairs", "system", "without its features", "with them")
    rows = [
        (
            f"{each.size:,}",
            each.system,
            mean_and_deviation(each.without_features),
            mean_and_deviation(each.with_features),
        )
        for each in results.systems
    ]
    return Table(f"{results.unseen}: {results.metric}, at most 100, higher is better", header, rows)


def mean_and_deviation(replicated: Replicated, sign: str = "") -> str:
    """Return mean and standard deviation as text for a table. `sign` is the sign option of a format, such as `+`."""
    if replicated.mean is None:
        return NOTHING
    spread = "" if replicated.deviation is None else f" ± {replicated.deviation:.2f}"
    return f"{replicated.mean:{sign}.2f}{spread}"
