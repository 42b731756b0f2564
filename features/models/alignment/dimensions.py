"""Fine-grained attention as it is: a weight for each dimension of each annotation (Choi et al. 2018)."""

import numpy as np
from torch import Tensor, nn

from features.arrays import AttentionRows
from features.models.alignment.rows import word_rows
from features.models.device import within_memory
from features.models.folder import Model
from features.models.scoring.alone import SentencePair, score_pairs


def dimension_rows(model: Model, pair: SentencePair) -> AttentionRows:
    """Return the attention of the words that a model says on those that it reads, in each dimension, (J, I, K).

    The mean over K is what `word_rows` makes of the model's rows. The direction is the model's own: a backward model
    reads the translation.

    Args:
        model: with granularity `fine`.
        pair: source and translation, neither empty.

    Raises:
        InputError: the memory does not suffice.
    """
    steps: list[Tensor] = []  # (1, S, K) each
    attention = model.network.decoder.attention

    def keep(window: nn.Module, inputs: tuple[Tensor, ...], weights: Tensor) -> None:
        steps.append(weights)

    hook = attention.window.register_forward_hook(keep)
    try:
        with within_memory("the sentence pair is too long for this model"):
            list(score_pairs([model], [pair]))
    finally:
        hook.remove()
    weights = np.stack([step[0].float().cpu().numpy() for step in steps], axis=2)  # (S, K, J'+1)
    source, target = pair[::-1] if model.config.direction == "backward" else pair
    return np.stack([word_rows(model, source, target, own.T) for own in weights.swapaxes(0, 1)], axis=2)  # (J, I, K)
