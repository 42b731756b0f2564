"""Whether two systems of a study differ by more than chance, over all their seeds."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from features.arrays import Array
from moses_io.json_files import write_json
from moses_io.text import read_references
from rerank.metrics.filters import Filters
from rerank.metrics.metric import Metric
from rerank.metrics.significance import replicates_p_value

Outputs = Mapping[str, Sequence[str]]
"""Files of translations, one a seed, by the name of the system; those of cells that failed are not there."""


def compare(references: Sequence[str], own: Sequence[str], others: Outputs, filters: Filters, output: str) -> None:
    """Write, as JSON, p of the difference in BLEU between a system and each of the others, where both have outputs.

    Raises:
        InputError: files of different lengths.
    """
    answers = filters.references(references)
    metric = Metric("bleu")
    counters = [metric.counter(each) for each in zip(*answers, strict=True)]

    def statistics(paths: Sequence[str]) -> Array:
        read = read_references([*references[:1], *(path for path in paths if Path(path).exists())])[1:]
        counted = [[count(filters(line)) for count, line in zip(counters, lines, strict=True)] for lines in read]
        return np.array(counted, dtype=np.float64)  # (seeds, n, size)

    mine = statistics(own)
    theirs = {name: statistics(paths) for name, paths in others.items()}
    p_values = {
        name: replicates_p_value(metric.formula.score, each, mine)
        for name, each in theirs.items()
        if len(each) and len(mine)
    }
    write_json(output, p_values)
