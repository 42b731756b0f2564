"""The tables of a study, for people, for papers and for programs."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from features.progress import aligned
from rerank import __version__
from rerank.experiment.studies.file import Study
from rerank.experiment.studies.results import ModelResult, Replicated, Results, SystemResult
from rerank.metrics.significance import SEED, TRIALS
from rerank.report.changes import MOSES

COLUMNS = ("size", "seed", "name", "set", "measure", "value")
"""Of the table for programs: a number a line; `name` is a model or a system."""

NOTHING = "-"
"""In the place of a number that there is not."""


@dataclass(frozen=True)
class Table:
    """A table: what it shows, the names of its columns, and its cells; the first `texts` columns are not numbers."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    texts: int = 2

    def plain(self) -> list[str]:
        """Return the lines of it as plain text."""
        return [self.title, *aligned([self.header, *self.rows], left=range(1, self.texts))]

    def markdown(self) -> list[str]:
        """Return the lines of it in Markdown."""
        escaped = [[cell.replace("|", "\\|") for cell in row] for row in (self.header, *self.rows)]
        rule = ["---" if 0 < place < self.texts else "---:" for place in range(len(self.header))]
        return [f"**{self.title}**", "", *(f"| {' | '.join(row)} |" for row in (escaped[0], rule, *escaped[1:]))]


def tables(study: Study, results: Results) -> list[Table]:
    """Return the table of perplexities, and one a test set, or that of dev alone where no test set has references."""
    shown = [_perplexities(study, results.models)] if results.models else []
    tests = [name for name, files in study.experiment.tests.items() if files.reference]
    if study.systems:
        shown += [_systems(study, results, test) for test in tests] if tests else [_dev(study, results)]
    return shown


def notes(study: Study) -> list[str]:
    """Return what numbers and p-values are."""
    several = len(study.seeds) > 1
    seeds = f"seeds {', '.join(map(str, study.seeds))}" if several else f"seed {study.seeds[0]}"
    lines = [f"Mean ± standard deviation over {seeds}." if several else f"One replicate, {seeds}."]
    if study.systems:
        outputs = "outputs of all seeds dealt anew, sentence by sentence (Clark et al. 2011)"
        lines.append(f"p: of the difference in BLEU; approximate randomization, {outputs}; {TRIALS:,} trials.")
    return lines


def as_json(study: Study, results: Results, failed: Sequence[str]) -> str:
    """Return all numbers with signatures and version; `failed` are stages without a result."""
    models = [
        {
            "size": each.size,
            "model": each.model,
            "parameters": each.parameters,
            "perplexity": {text: value.as_json() for text, value in each.perplexity.items()},
        }
        for each in results.models
    ]
    content = {
        "version": __version__,
        "sizes": study.sizes,
        "seeds": study.seeds,
        "metric": results.metric,
        "unseen": results.unseen,
        "signatures": results.signatures,
        "significance": {"test": "stratified approximate randomization", "trials": TRIALS, "seed": SEED},
        "tuning": study.experiment.tuning.tuning.signature,
        "models": models,
        "systems": [_system_as_json(each) for each in results.systems],
        "failed": list(failed),
    }
    return json.dumps(content, indent=1)


def as_csv(results: Results) -> str:
    """Return each number of each seed on a line, with Moses as a system of its own."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for size, name, where, measure, replicated in _numbers(results):
        writer.writerows([size, seed, name, where, measure, repr(value)] for seed, value in replicated.values.items())
    return stream.getvalue()


def _numbers(results: Results) -> Iterator[tuple[int, str, str, str, Replicated]]:
    for model in results.models:
        for text, replicated in model.perplexity.items():
            yield model.size, model.model, text, "perplexity", replicated
    for system in results.systems:
        where, _, how = results.unseen.partition(", ")
        yield system.size, system.system, where, f"{results.metric} {how}".strip(), system.folds
        for test, result in system.tests.items():
            for metric, replicated in result.scores.items():
                yield system.size, system.system, test, metric, replicated
    seen = set()
    for system in results.systems:
        for test, result in system.tests.items():
            for metric, replicated in result.moses.items():
                if (system.size, test, metric) not in seen:
                    seen.add((system.size, test, metric))
                    yield system.size, MOSES, test, metric, replicated


def _perplexities(study: Study, models: Sequence[ModelResult]) -> Table:
    header = ("pairs", "model", "parameters", *study.texts)
    rows = [
        (
            f"{each.size:,}",
            each.model,
            f"{each.parameters:,}" if each.parameters is not None else NOTHING,
            *(in_short(each.perplexity[text]) for text in study.texts),
        )
        for each in models
    ]
    return Table("Perplexity a word, ends of sentences counted", header, rows)


def _systems(study: Study, results: Results, test: str) -> Table:
    systems, first = results.systems, next(iter(study.systems))
    metrics = list(next((each.tests[test].scores for each in systems if each.tests[test].scores["BLEU"].values), {}))
    others = [metric for metric in metrics if metric != "BLEU"]
    against = [f"p to {first}"] if len(study.systems) > 1 else []
    header = ("pairs", "system", results.unseen, "BLEU", "gain", "p", *against, *others)
    moses = next((each.tests[test].moses for each in systems if each.tests[test].moses["BLEU"].values), {})
    rows = [
        ("", MOSES, NOTHING, _only(moses, "BLEU"), *[NOTHING] * (2 + len(against)), *(_only(moses, m) for m in others))
    ]
    for each in systems:
        result = each.tests[test]
        p_values = [_p(result.p, MOSES), *(_p(result.p, first) for _ in against)]
        others_of = [in_short(result.scores[metric]) if metric in result.scores else NOTHING for metric in others]
        bleu, gain = in_short(result.scores["BLEU"]), in_short(result.gain, sign="+")
        rows.append((f"{each.size:,}", each.system, in_short(each.folds), bleu, gain, *p_values, *others_of))
    return Table(f"{test}: reranking of Moses' lists", header, rows)


def _dev(study: Study, results: Results) -> Table:
    header = ("pairs", "system", "without its features", "with them")
    rows = [
        (f"{each.size:,}", each.system, in_short(each.folds_without), in_short(each.folds)) for each in results.systems
    ]
    return Table(f"{results.unseen}: {results.metric}, times 100", header, rows)


def in_short(replicated: Replicated, sign: str = "") -> str:
    """Return mean and standard deviation as a table has them."""
    if replicated.mean is None:
        return NOTHING
    spread = "" if replicated.deviation is None else f" ± {replicated.deviation:.2f}"
    return f"{replicated.mean:{sign}.2f}{spread}"


def _only(scores: dict[str, Replicated], metric: str) -> str:
    """Return a score that is the same for all seeds."""
    return f"{scores[metric].mean:.2f}" if metric in scores else NOTHING


def _p(p_values: dict[str, float], name: str) -> str:
    return f"{p_values[name]:.4f}" if name in p_values else NOTHING


def _system_as_json(result: SystemResult) -> dict[str, Any]:
    tests = {
        name: {
            "scores": {metric: value.as_json() for metric, value in test.scores.items()},
            MOSES: {metric: value.mean for metric, value in test.moses.items()},
            "gain": test.gain.as_json(),
            "p_values": test.p,
        }
        for name, test in result.tests.items()
    }
    unseen = {"with": result.folds.as_json(), "without": result.folds_without.as_json()}
    return {"size": result.size, "system": result.system, "unseen": unseen, "tests": tests}
