"""A model that processes prefixes of one length together, which share source sentences."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from features.arrays import Integers
from features.models.batches import pad
from features.models.device import on_device
from features.models.folder import Model
from features.models.network.decoder import State
from features.models.network.lexicon import ENTRIES, Lexical
from features.models.network.softmax import BLOCK
from features.models.network.source import Source, gather, join
from features.models.settings import Architecture

MEMORY = {"cpu": 2**25, "cuda": 2**31}
"""Bytes for the prefixes that take a step at once. On a CPU about the size of the cache."""


class Stepped(NamedTuple):
    """Result of one step of N prefixes."""

    state: State  # N rows, the state after the step
    outputs: Tensor  # (N, H) input of the softmax
    lexical: Lexical | None  # lexicon values for the next words, None without a lexicon
    row: Tensor  # (N, S) attention


class Walk:
    """A model, its encoded sources, and its state after all prefixes of the current length.

    Attributes:
        network: the network of the model.
        architecture: its settings.
        device: device of the model.
        source: the encoded sources.
        max_prefixes: number of prefixes that may take a step at once.
    """

    def __init__(self, model: Model, sources: Sequence[tuple[str, ...]]) -> None:
        self.network, self.device, self.architecture = model.network, model.device, model.config.architecture
        self.source = self.network.encode(pad([model.source.encode(source) for source in sources], model.device))
        self._state = self.network.decoder.start(self.source)
        size = _bytes_of_prefix(self.architecture, self.source.bias.shape[1])
        self.max_prefixes = fitting(size + self.copied_bytes, model.device)

    @property
    def copied_bytes(self) -> int:
        """Bytes that `Source.repeated_for` copies to each prefix of the tensors that stay shared on a CPU."""
        if not self.source.states.is_cuda:
            return 0
        shared = (self.source.states, self.source.keys, *self.source.lexicon[:1])
        return sum(tensor[0].numel() * tensor.element_size() for tensor in shared)

    def step(self, sources: Integers, words: Integers, parents: Integers) -> Stepped:
        """Run the step of N prefixes without changing the state of the walk.

        Args:
            sources: (N,) index of each prefix's source, ascending.
            words: (N,) last word of each prefix.
            parents: (N,) index of the prefix that is one word shorter. At the root, index of the source.
        """
        decoder, source = self.network.decoder, self.sources_of(sources)
        vectors = self.network.embed(self.on_device(words), source)  # (N, E)
        step_input = decoder.step_input(vectors)
        step, state = decoder.step(step_input, gather(self._state, self.on_device(parents)), source)
        outputs = decoder.output(step, step_input.vectors)  # (N, H)
        return Stepped(state=state, outputs=outputs, lexical=self.network.lexical(source, step.row), row=step.row)

    def sources_of(self, sources: Integers) -> Source:
        """Return the encoded sources for N prefixes with these sources (N,), ascending."""
        counts = np.bincount(sources, minlength=len(self.source.states))  # (sources,)
        return self.source.repeated_for(self.on_device(sources), tuple(counts.tolist()))

    def advance(self, states: Sequence[State]) -> None:
        """Advance to the next length: set the state to the concatenated states of all steps of this length."""
        self._state = join(states)

    def on_device(self, numbers: Integers, dtype: torch.dtype | None = None) -> Tensor:
        """Return the integers as a tensor on the model's device."""
        return on_device(numbers, self.device, dtype)


def fitting(size: int, device: torch.device) -> int:
    """Return how many prefixes of `size` bytes are processed at once on a device."""
    prefixes = max(1, MEMORY[device.type] // size)
    # a multiple of the softmax's block of rows
    return prefixes - prefixes % BLOCK if prefixes > BLOCK else prefixes


def _bytes_of_prefix(architecture: Architecture, positions: int) -> int:
    """Return approximately how many bytes a prefix takes during its step."""
    a = architecture
    known = 3 * ENTRIES if a.lexicon != "none" else 0
    if a.decoder == "transformer":
        # keys and values of previous words, assuming half as many as source positions
        earlier = positions * a.hidden_size
        return 4 * ((1 + a.decoder_layers) * earlier + 12 * a.hidden_size + 2 * a.feedforward_size + positions * known)
    attended = (3 if a.attention_terms else 1) * a.attention_size + (3 * a.annotation if a.granularity == "fine" else 0)
    remembered = 10 * a.memory_size if "memory" in a.attention_terms else 0
    return 4 * (positions * (attended + remembered + known) + 20 * a.hidden_size * a.decoder_layers)
