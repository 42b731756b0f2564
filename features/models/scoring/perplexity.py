"""How well a trained model predicts texts."""

from collections.abc import Sequence

from features.models.folder import Model
from features.models.scoring.alone import SentencePair, score_pairs
from features.models.training.learner import perplexity


def perplexity_of(model: Model, pairs: Sequence[SentencePair]) -> float:
    """Return the perplexity a word, `</s>` counted, of what a model predicts of pairs of source and target."""
    total = sum(float(scores.log_probs.double().sum()) for _, scores in score_pairs([model], pairs))
    side = 0 if model.config.direction == "backward" else 1
    return perplexity(-total / sum(len(pair[side]) + 1 for pair in pairs))


def parameters_of(model: Model) -> int:
    """Return how many weights scoring needs; those of objectives are for training alone."""
    parameters = model.network.named_parameters()
    return sum(each.numel() for name, each in parameters if not name.startswith("objectives."))
