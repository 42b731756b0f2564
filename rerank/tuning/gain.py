"""What a tuning gained, and how it was chosen: as Python gets it, and as JSON for the report."""

from dataclasses import asdict, dataclass
from typing import NamedTuple

from moses_io.files.json_files import read_record, write_json

GAIN = "tuning.json"
"""Name of the file among the results of an experiment."""

FORMAT = 2
"""Of the file: what is written anew where the results are of another one."""


class TriedWay(NamedTuple):
    """A way to tune: its name, the metric times 100 where it was not tuned, and p of its difference to the mean."""

    name: str
    score: float
    p: float


class Share(NamedTuple):
    """How much a weight counts: its product with the spread of its feature, of the sum of all products' sizes.

    The spread is the standard deviation among the candidates of a sentence, pooled over those that are tuned on.

    Attributes:
        name: of the feature, with `.0`, `.1` … where it has several values.
        value: of the weight that was written, -1 to 1.
        folds: those of weights tuned in the same way without one fold each; none without folds.
    """

    name: str
    value: float
    folds: tuple[float, ...]


@dataclass(frozen=True)
class Gain:
    """What a tuning gained; metrics are times 100, higher is better.

    Attributes:
        metric: its name.
        before: of the best candidates of the tuning set under the start weights.
        after: the same under the weights that were written.
        where: on which sentences `old` and `new` were measured, and a way to tune chosen; empty if on none.
        old: without the new features, the others tuned anew or, if a way to tune was chosen and they are better, by the
            start weights; None if not measured.
        new: with all features or, if a way to tune was chosen, by nested folds of that choice.
        p: how likely so large a difference of these two is, in either direction, if there is none.
        chosen: the way to tune that was chosen; empty where there was no choice.
        tried: what it was chosen from, what reaches most first.
        signature: what made the weights.
        shares: of the dense features that are not constant.
    """

    metric: str
    before: float
    after: float
    where: str
    old: float | None
    new: float | None
    p: float | None
    chosen: str
    tried: tuple[TriedWay, ...]
    signature: str
    shares: tuple[Share, ...]


def write_gain(path: str, gain: Gain) -> None:
    """Write it as JSON."""
    write_json(path, asdict(gain), indent=1)


def read_gain(path: str) -> Gain:
    """Read what `write_gain` wrote; an `InputError` if it is something else."""
    return read_record(path, Gain)
