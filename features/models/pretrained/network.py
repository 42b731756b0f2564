"""Networks of transformers, reduced to the steps that scoring needs."""

import copy
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor
from transformers import EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

PADDING = 0
"""Token at padded positions, which no other position attends to."""


class State(NamedTuple):
    """Decoder states after some target tokens. A row is a prefix of a candidate.

    Attributes:
        cache: keys and values of transformers, with all rows, or None before the first token.
        sentences: (rows,) index of the sentence of each row.
        past: number of target tokens in the cache.
        read: output of the encoder and its mask, or the mask of the prompts.
    """

    cache: Any
    sentences: Tensor
    past: int
    read: tuple[Tensor, ...]


class Network(Protocol):
    """A network that predicts the tokens of candidates.

    A source is the input of an encoder, or the prompt of a language model.

    Attributes:
        device: device of its parameters.
    """

    device: torch.device

    def begin(self, sources: Sequence[Sequence[int]]) -> tuple[State, list[int]]:
        """Read sources, and return the state with one row for each and the tokens that the candidates start with."""

    def step(self, state: State, rows: Tensor, inputs: Tensor, keep: bool) -> tuple[Tensor, State]:
        """Continue some prefixes.

        Args:
            state: states of all prefixes.
            rows: (n,) rows of the state that are continued. A row may occur several times.
            inputs: (n, L) next input tokens of each.
            keep: whether the new state is needed.

        Returns:
            (n, L, V) logits of the tokens after each input, and the state with n rows.
        """

    def whole(self, sources: Sequence[Sequence[int]], inputs: Tensor) -> Tensor:
        """Return logits (n, L, V) for sources and target inputs (n, L), without a cache and without start tokens."""

    def start(self, source: Sequence[int]) -> int:
        """Return the token that the candidates of a source start with."""


@runtime_checkable
class ShiftsLabels(Protocol):
    """A model whose decoder starts with a token that depends on the target, such as the language code of mBART."""

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Return the inputs of the decoder for targets."""


class Seq2Seq:
    """An encoder-decoder.

    Args:
        model: a sequence-to-sequence model of transformers.
        targets: an encoded target, from which the model derives the first input of its decoder.
    """

    def __init__(self, model: Any, targets: Sequence[int]) -> None:
        self._model, self.device = model, model.device
        if isinstance(model, ShiftsLabels):
            labels = torch.tensor([targets], device=self.device)  # (1, L)
            self._start = int(model.prepare_decoder_input_ids_from_labels(labels=labels)[0, 0])
        else:
            self._start = int(model.config.decoder_start_token_id)

    def begin(self, sources: Sequence[Sequence[int]]) -> tuple[State, list[int]]:
        """Encode sources."""
        inputs, mask = padded(sources, self.device)  # (B, I) each
        encoder = self._model.get_encoder()
        encoded = encoder(input_ids=inputs, attention_mask=mask, return_dict=True).last_hidden_state  # (B, I, d)
        rows = torch.arange(len(sources), device=self.device)  # (B,)
        return State(None, rows, 0, (encoded, mask)), [self._start] * len(sources)

    def step(self, state: State, rows: Tensor, inputs: Tensor, keep: bool) -> tuple[Tensor, State]:
        """Run the decoder."""
        sentences = state.sentences[rows]  # (n,)
        encoded, mask = state.read
        output = self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=encoded[sentences]),  # (n, I, d)
            attention_mask=mask[sentences],  # (n, I)
            decoder_input_ids=inputs,
            past_key_values=_selected(state.cache, rows),
            use_cache=keep,
        )
        return output.logits, State(output.past_key_values, sentences, state.past + inputs.shape[1], state.read)

    def whole(self, sources: Sequence[Sequence[int]], inputs: Tensor) -> Tensor:
        """Run encoder and decoder."""
        read, mask = padded(sources, self.device)  # (n, I) each
        output = self._model(input_ids=read, attention_mask=mask, decoder_input_ids=inputs, use_cache=False)
        logits: Tensor = output.logits
        return logits

    def start(self, source: Sequence[int]) -> int:
        """Return the first input of the decoder."""
        return self._start

    @torch.inference_mode()
    def generate(
        self, sources: Sequence[Sequence[int]], empty: Sequence[int], beam: int, best: int, longest: int | None
    ) -> list[list[int]]:
        """Return the tokens of `best` translations of each source, found with a beam.

        Args:
            sources: tokens of the sources.
            empty: tokens of an empty target, which begin with the language if targets do.
            beam: size of the beam.
            best: number of translations.
            longest: maximum number of tokens that the decoder reads, or None if there is no maximum.
        """
        inputs, mask = padded(sources, self.device)  # (B, I) each
        first = {"forced_bos_token_id": empty[0]} if empty[0] != self._model.config.eos_token_id else {}
        size = 2 * inputs.shape[1] + 10
        size = min(size, longest - 1) if longest else size
        rows = self._model.generate(
            input_ids=inputs, attention_mask=mask, decoder_start_token_id=self._start, num_beams=beam, do_sample=False,
            num_return_sequences=best, max_length=None, max_new_tokens=size, **first,
        )  # (B * best, longest)  # fmt: skip
        tokens: list[list[int]] = rows.tolist()
        return tokens


class Causal:
    """A causal language model. The last token of a prompt is the start token of its candidates.

    Args:
        model: a causal language model of transformers.
    """

    def __init__(self, model: Any) -> None:
        self._model, self.device = model, model.device
        self._parameters = inspect.signature(model.forward).parameters

    def begin(self, sources: Sequence[Sequence[int]]) -> tuple[State, list[int]]:
        """Read the prompts without their last tokens."""
        inputs, mask = padded([source[:-1] for source in sources], self.device, left=True)  # (B, P) each
        cache = None
        if inputs.shape[1]:
            # Without the output layer, whose logits of a prompt are not needed.
            network = self._model.base_model
            positions = self._positions((mask.cumsum(dim=1) - 1).clamp(min=0))  # (B, P)
            cache = network(input_ids=inputs, attention_mask=mask, use_cache=True, **positions).past_key_values
        rows = torch.arange(len(sources), device=self.device)  # (B,)
        return State(cache, rows, 0, (mask,)), [source[-1] for source in sources]

    def step(self, state: State, rows: Tensor, inputs: Tensor, keep: bool) -> tuple[Tensor, State]:
        """Read the next tokens."""
        sentences = state.sentences[rows]  # (n,)
        past = state.past + inputs.shape[1]
        mask = state.read[0][sentences]  # (n, P)
        steps = torch.arange(state.past, past, device=inputs.device)  # (L,)
        output = self._model(
            input_ids=inputs,
            attention_mask=torch.cat([mask, mask.new_ones(len(rows), past)], dim=1),  # (n, P + past)
            past_key_values=_selected(state.cache, rows),
            use_cache=keep,
            **self._positions(mask.sum(dim=1, keepdim=True) + steps),  # (n, L)
        )
        return output.logits, State(output.past_key_values, sentences, past, state.read)

    def whole(self, sources: Sequence[Sequence[int]], inputs: Tensor) -> Tensor:
        """Read prompts and candidates together."""
        prompts, mask = padded([source[:-1] for source in sources], self.device, left=True)  # (n, P) each
        mask = torch.cat([mask, torch.ones_like(inputs)], dim=1)  # (n, P + L)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)  # (n, P + L)
        output = self._model(
            input_ids=torch.cat([prompts, inputs], dim=1),  # (n, P + L)
            attention_mask=mask,
            use_cache=False,
            **self._positions(positions),
            **({"logits_to_keep": inputs.shape[1]} if "logits_to_keep" in self._parameters else {}),
        )
        logits: Tensor = output.logits[:, -inputs.shape[1] :]  # (n, L, V)
        return logits

    def start(self, source: Sequence[int]) -> int:
        """Return the last token of the prompt."""
        return source[-1]

    def _positions(self, positions: Tensor) -> dict[str, Tensor]:
        """Return the argument with positions, if the model has one. Other models derive positions from the mask."""
        return {"position_ids": positions} if "position_ids" in self._parameters else {}


def padded(rows: Sequence[Sequence[int]], device: torch.device, left: bool = False) -> tuple[Tensor, Tensor]:
    """Return rows of tokens as one tensor, and a mask with 1 at tokens and 0 at padding, both (rows, longest)."""
    longest = max(map(len, rows), default=0)
    tokens = torch.full((len(rows), longest), PADDING, dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for number, row in enumerate(rows):
        columns = slice(longest - len(row), longest) if left else slice(len(row))
        tokens[number, columns] = torch.tensor(row, dtype=torch.long)
        mask[number, columns] = 1
    return tokens.to(device), mask.to(device)


def _selected(cache: Any, rows: Tensor) -> Any:
    """Return a cache with some rows. The given cache is not changed, because other candidates need it."""
    if cache is None:
        return None
    selected = _copied(cache)
    selected.reorder_cache(rows)
    return selected


def _copied(cache: Any) -> Any:
    """Copy a cache without the tensors of its layers, which the methods of a cache replace and never change."""
    if isinstance(cache, EncoderDecoderCache):
        return EncoderDecoderCache(_copied(cache.self_attention_cache), _copied(cache.cross_attention_cache))
    copied = copy.copy(cache)
    copied.layers = [copy.copy(layer) for layer in cache.layers]
    return copied
