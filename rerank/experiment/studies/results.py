"""The numbers of a study, gathered from what its stages have made."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from moses_io.json_files import as_written, number_of, read_json, text_of
from rerank.experiment.entries import CHOOSE
from rerank.experiment.studies.file import Study
from rerank.experiment.studies.stages import Plan, folders, perplexities
from rerank.tuning.gain import GAIN, read_gain


@dataclass(frozen=True)
class Replicated:
    """A number by seed; what failed is not there."""

    values: Mapping[int, float]

    @property
    def mean(self) -> float | None:
        """The mean; None of nothing."""
        return statistics.mean(self.values.values()) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation with n - 1 in the denominator; None of fewer than two."""
        return statistics.stdev(self.values.values()) if len(self.values) > 1 else None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        seeds = {str(seed): value for seed, value in self.values.items()}
        return {"mean": self.mean, "standard_deviation": self.deviation, "seeds": seeds}


@dataclass(frozen=True)
class ModelResult:
    """A model at one size: the number of its weights, None if all seeds failed, and its perplexities by text."""

    size: int
    model: str
    parameters: int | None
    perplexity: dict[str, Replicated]


@dataclass(frozen=True)
class TestResult:
    """A system on a test set at one size.

    Attributes:
        scores: by metric.
        moses: by metric, what Moses' own choice reaches.
        p: of the difference in BLEU to other systems over all seeds, by their names; see `replicates_p_value`.
    """

    __test__ = False
    scores: dict[str, Replicated]
    moses: dict[str, Replicated]
    p: dict[str, float]

    @property
    def gain(self) -> Replicated:
        """BLEU above Moses'."""
        own, moses = self.scores["BLEU"].values, self.moses["BLEU"].values
        return Replicated({seed: value - moses[seed] for seed, value in own.items()})


@dataclass(frozen=True)
class SystemResult:
    """A system at one size: the metric where nothing was tuned, with and without its features; test sets by name."""

    size: int
    system: str
    folds: Replicated
    folds_without: Replicated
    tests: dict[str, TestResult]


@dataclass(frozen=True)
class Results:
    """All numbers of a study.

    Attributes:
        models: perplexities.
        systems: what reranking reaches.
        metric: that was tuned on.
        unseen: where it is measured beside test sets: on dev out of fold, or on the set to choose on.
        signatures: of the scores on test sets.
    """

    models: list[ModelResult]
    systems: list[SystemResult]
    metric: str
    unseen: str
    signatures: dict[str, str]


def gather(study: Study, plan: Plan) -> Results:
    """Read what there is; errors are those of files that are not as they were written."""
    models = [
        result
        for size in study.sizes
        for model in study.experiment.models
        for result in _models(study, plan, size, model)
    ]
    systems = [_system(study, plan, size, system) for size in study.sizes for system in study.systems]
    signatures: dict[str, str] = {}
    for cell in plan.cells:
        for test in study.experiment.tests:
            signatures |= _report(study, cell.path.parent, test).get("signatures", {})
    unseen = CHOOSE if study.experiment.choose else "dev, out of fold"
    return Results(models, systems, study.experiment.tuning.tuning.metric, unseen, signatures)


def _models(study: Study, plan: Plan, size: int, model: str) -> list[ModelResult]:
    """Return the result of a model, or of both of a pair."""
    replicates = [each for each in plan.replicates if each.size == size]
    names, results = list(folders(replicates[0], model)), []
    for place, name in enumerate(names):
        measured: dict[int, Any] = {}
        for each in replicates:
            path = Path(perplexities(each, model))
            with as_written(path):
                measured |= {each.seed: read_json(path)[place]} if path.exists() else {}
        with as_written(f"{study.output}/{size}"):
            by_text = {
                text: Replicated({seed: number_of(each["perplexity"][text]) for seed, each in measured.items()})
                for text in study.texts
            }
            parameters = next((int(number_of(each["parameters"])) for each in measured.values()), None)
        results.append(ModelResult(size, name, parameters, by_text))
    return results


def _system(study: Study, plan: Plan, size: int, system: str) -> SystemResult:
    places = {
        cell.replicate.seed: cell.path.parent
        for cell in plan.cells
        if (cell.replicate.size, cell.system) == (size, system)
    }
    gains = {seed: read_gain(str(place / GAIN)) for seed, place in places.items() if (place / GAIN).exists()}
    compared = {each.test: Path(each.path) for each in plan.comparisons if (each.size, each.system) == (size, system)}
    return SystemResult(
        size=size,
        system=system,
        folds=Replicated({seed: gain.new for seed, gain in gains.items() if gain.new is not None}),
        folds_without=Replicated({seed: gain.old for seed, gain in gains.items() if gain.old is not None}),
        tests={test: _test(study, places, test, path) for test, path in compared.items()},
    )


def _test(study: Study, places: Mapping[int, Path], test: str, compared: Path) -> TestResult:
    """Return what is there of a system on a test set, by the folders of its seeds."""
    reports = {seed: report for seed, place in places.items() if (report := _report(study, place, test))}
    with as_written(compared.parent):
        metrics = list(next(iter(reports.values()))["signatures"]) if reports else ["BLEU"]
        moses, own = (
            {
                metric: Replicated(
                    {seed: number_of(each["systems"][row][metric]["score"]) for seed, each in reports.items()}
                )
                for metric in metrics
            }
            for row in (0, 1)
        )
        p_values = read_json(compared) if compared.exists() else {}
        p = {text_of(name): number_of(value) for name, value in p_values.items()}
    return TestResult(scores=own, moses=moses, p=p)


def _report(study: Study, place: Path, test: str) -> dict[str, Any]:
    """Return the report on a test set in the folder of a cell; nothing where it failed."""
    path = Path(replace(study.experiment, output=place).report(test, "json"))
    report = read_json(path) if path.exists() else {}
    with as_written(path):
        return dict(report)
