"""How well a trained model predicts texts."""

from collections.abc import Sequence

from features.models.folder import Model
from features.models.scoring.alone import SentencePair, score_pairs
from features.models.scoring.members import Members
from features.models.training.learner import perplexity


def perplexity_of(model: Members, pairs: Sequence[SentencePair]) -> float:
    """Return the perplexity a word, `</s>` counted, of what a model predicts of pairs of source and target.

    Of a pair of dev it is that of weights which have not learned from it.
    """
    total = 0.0
    for places, models in model.for_each([source for source, _ in pairs]):
        scored = score_pairs(models, [pairs[place] for place in places])
        total += sum(float(scores.log_probs.double().sum()) for _, scores in scored)
    side = 0 if model.models[0].config.direction == "backward" else 1
    return perplexity(-total / sum(len(pair[side]) + 1 for pair in pairs))


def parameters_of(model: Model) -> int:
    """Return how many weights scoring needs; those of objectives are for training alone."""
    parameters = model.network.named_parameters()
    return sum(each.numel() for name, each in parameters if not name.startswith("objectives."))
