"""Expected metric: gradient-based tuning of the metric of expected statistics, with p(candidate) ∝ exp(w·f).

The expectation of each statistic under p is summed over the corpus, and the metric is computed from these sums as from
the statistics of real translations (expected BLEU, Rosti et al. 2011). The entropy of p is rewarded in the first
stages, which makes the objective smoother. The squared distance to the initial weights is penalized in all stages.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import Bounds, minimize

from features.arrays import Array
from moses_io.files.errors import InputError, shown
from rerank.tuners.problem import MAX_COUNT, Problem, Tuned, check_numbers


@dataclass(frozen=True)
class ExpectedSettings:
    """Settings of the tuner `expected`.

    Attributes:
        entropies: weight of the mean entropy per sentence, in nats, for each stage.
        ridge: weight of the squared distance to the initial weights.
        max_iterations: maximum number of L-BFGS iterations per stage.
    """

    entropies: tuple[float, ...] = (0.03, 0.01, 0.003, 0.0)
    ridge: float = 1e-4
    max_iterations: int = 50

    def __post_init__(self) -> None:
        stages = self.entropies
        if not (isinstance(stages, (list, tuple)) and stages):
            raise InputError(f"entropies: expected a list of numbers, found {shown(stages)}")
        for stage in stages:
            check_numbers(0, entropies=stage)
        check_numbers(1, integer=True, maximum=MAX_COUNT, max_iterations=self.max_iterations)
        check_numbers(0, ridge=self.ridge)

    @property
    def signature(self) -> str:
        """Tuner and settings, as written above the weights."""
        entropies = ",".join(f"{entropy:g}" for entropy in self.entropies)
        return f"expected|entropies:{entropies}|ridge:{self.ridge:g}|max_iterations:{self.max_iterations}"


def tune(problem: Problem, settings: ExpectedSettings) -> Tuned:
    """Return the weights with the highest metric among the initial weights and the results of all stages."""
    best, weights, result = problem.measure(problem.initial), problem.initial, problem.initial
    bounds = Bounds(*problem.bounds())
    for entropy in settings.entropies:
        objective = partial(loss, problem, entropy=entropy, ridge=settings.ridge)
        options = {"maxiter": settings.max_iterations}
        weights = minimize(objective, weights, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        metric = problem.measure(weights)
        if metric > best:
            best, result = metric, weights
    return Tuned(result, best)


def loss(problem: Problem, weights: Array, entropy: float, ridge: float) -> tuple[float, Array]:
    """Return the loss and its (size,) gradient.

    The loss is -metric - entropy · mean entropy per sentence + ridge · squared distance to the initial weights.
    """
    candidates = problem.candidates
    starts, counts = candidates.offsets[:-1], np.diff(candidates.offsets)  # (n,)
    scores = candidates.scores(weights)  # (N,)
    scores = scores - np.repeat(np.maximum.reduceat(scores, starts), counts)  # (N,): at most 0, so exp cannot overflow
    weighted = np.exp(scores)
    norms = np.add.reduceat(weighted, starts)  # (n,)
    probabilities = weighted / np.repeat(norms, counts)  # (N,)
    log_probabilities = scores - np.repeat(np.log(norms), counts)  # (N,)
    expected = probabilities @ problem.statistics  # (formula.size,)
    displacement = weights - problem.initial
    mean_entropy = -float(probabilities @ log_probabilities) / len(starts)  # ()
    objective = (
        -float(problem.formula.score(expected)) - entropy * mean_entropy + ridge * float(displacement @ displacement)
    )  # ()
    gains = problem.statistics @ _slope(problem, expected) - entropy * log_probabilities / len(starts)  # (N,)
    # Softmax gradient with respect to the scores: p · (gain - expected gain in the sentence).
    score_gradient = probabilities * (gains - np.repeat(np.add.reduceat(probabilities * gains, starts), counts))  # (N,)
    return objective, -candidates.sums(score_gradient) + 2 * ridge * displacement  # (), (size,)


def _slope(problem: Problem, sums: Array) -> Array:
    """Return the (formula.size,) derivative of the metric by each summed statistic, by differences.

    Differences are central, except that they do not go below 0. A statistic that is 0 for all candidates cannot change,
    so its derivative is 0.
    """
    score = problem.formula.score
    above = np.where(sums > 0, np.maximum(1e-4 * sums, 1e-6), 0)  # (formula.size,)
    below = np.minimum(above, sums)  # (formula.size,)
    rises = score(sums + np.diag(above)) - score(sums - np.diag(below))  # (formula.size,)
    derivative: Array = np.divide(rises, above + below, where=above > 0, out=np.zeros_like(sums))  # (formula.size,)
    return derivative
