"""Results of a tuning: its gain and the comparison of tuners, for Python and as JSON for the report."""

from dataclasses import asdict, dataclass
from typing import NamedTuple

from moses_io.files.json_files import read_record, write_json

GAIN = "tuning.json"
"""Name of the file in the folder of an experiment."""

FORMAT = 4
"""Version of the file format. Results in another format are computed again."""


class ComparedTuner(NamedTuple):
    """Score of one of the tuners that `auto` compares.

    Attributes:
        name: tuner, and the features that it leaves out, if any.
        score: metric, 0 … 100, on sentences that it was not tuned on.
        p_value: p-value of its difference from the mean of tuners.
    """

    name: str
    score: float
    p_value: float


class RelativeWeight(NamedTuple):
    """Relative weight of a feature: weight · spread, divided by the sum of |weight · spread| over all dense features.

    The spread is the standard deviation within a sentence, pooled over the sentences of the tuning set.

    Attributes:
        name: name of the feature, with `.0`, `.1` … if it has several values.
        value: relative weight, -1 to 1, of the weight that was written.
        folds: relative weights of the weights tuned without each fold, empty without cross-validation.
    """

    name: str
    value: float
    folds: tuple[float, ...]


@dataclass(frozen=True)
class Gain:
    """Results of a tuning. Metrics are 0 … 100, higher is better.

    Attributes:
        metric: name of the metric.
        before: metric on the tuning set with the initial weights.
        after: metric on the tuning set with the weights that were written.
        measured: how `old` and `new` were measured and tuners were compared, such as `in 5-fold cross-validation`.
            Empty if not measured.
        old: metric without the new features, with the other features tuned again. If tuners were compared, it is the
            metric with the initial weights if that is higher. None if not measured.
        new: metric with all features or, if tuners were compared, with the choice in nested cross-validation.
            None if not measured.
        p_value: two-sided p-value of the difference between `old` and `new`. None if not measured.
        chosen: the chosen tuner, empty if there was no comparison.
        compared: the compared tuners, best first.
        signature: settings and versions that produced the weights.
        relative_weights: relative weights of the dense features that are not constant.
    """

    metric: str
    before: float
    after: float
    measured: str
    old: float | None
    new: float | None
    p_value: float | None
    chosen: str
    compared: tuple[ComparedTuner, ...]
    signature: str
    relative_weights: tuple[RelativeWeight, ...]


def write_gain(path: str, gain: Gain) -> None:
    """Write the results of a tuning as JSON."""
    write_json(path, asdict(gain), indent=1)


def read_gain(path: str) -> Gain:
    """Read a file that `write_gain` wrote. Raises `InputError` if its content is anything else."""
    return read_record(path, Gain)
