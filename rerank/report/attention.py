"""What models attended to while they read the choices of a set."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from features.arrays import AttentionRows


class Attention(NamedTuple):
    """What one model attended to while it read one target sentence."""

    model: str  # as the experiment names it
    weights: AttentionRows  # (J, I) of target words on source words; a row sums to 1 at most


Attentions = Mapping[tuple[int, str], Sequence[Attention]]
"""Of a sentence by its id and of a system by its name, what each model attended to; one without models is missing."""
