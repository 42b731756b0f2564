"""A judge of choices, from a file of confidence and what a user wants of it."""

from dataclasses import dataclass

from features.progress import warn
from moses_io.errors import InputError
from moses_io.weights import read_weights
from rerank.confidence.confidence import Confidence
from rerank.confidence.file import read_confidence
from rerank.linear.selection import Ranking
from rerank.linear.weights import fingerprint


@dataclass(frozen=True)
class ConfidentJudge:
    """Estimates each choice, and keeps Moses' where the change helps less likely than `keep_unless`, 0 … 1."""

    confidence: Confidence
    keep_unless: float = 0.0

    def __call__(self, ranking: Ranking) -> Ranking:
        """Return the ranking with its estimate; errors are those of `Confidence.check`."""
        estimate = self.confidence.estimate(self.confidence.predictors(ranking))
        kept = estimate.helped is not None and estimate.helped < self.keep_unless
        return ranking._replace(estimate=estimate, kept=kept)


def read_judge(path: str, weights: str, keep_unless: float | None, moses_output: bool) -> ConfidentJudge:
    """Read confidence that was fitted for the choices of weights, a file; warn if it needs Moses' output of the list.

    Args:
        path: of the confidence.
        weights: file.
        keep_unless: probability below which Moses' choice is kept; None for never.
        moses_output: whether Moses' output of the list is given.

    Raises:
        InputError: it cannot be read, or was fitted for other weights.
    """
    confidence = read_confidence(path)
    if confidence.weights != fingerprint(read_weights(weights)):
        raise InputError(f"{path}: fitted for other weights than those of {weights}")
    if confidence.moses_output and not moses_output:
        taken = "the candidate with the highest total is taken for Moses' choice"
        warn(f"{path}: fitted with Moses' output of dev, but none of this list is given (--moses-output); {taken}")
    return ConfidentJudge(confidence, keep_unless or 0.0)
