"""A transformer (Vaswani et al. 2017) with layer normalization before each sublayer (Xiong et al. 2020).

Attention has heads of size d = H / heads. It uses plain products: for sentences of about twenty words, torch's own
attention function is many times slower on a CPU.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from features.models.network.cells import Layer, StepInput
from features.models.network.decoder import State, StepOutput
from features.models.network.encoder import Encoded
from features.models.network.paths import Block
from features.models.network.source import Source
from features.models.settings import Architecture


class Part(NamedTuple):
    """Consecutive nodes of a prefix tree."""

    nodes: slice
    source: Source  # repeated for these nodes


class Dense(nn.Linear):
    """A linear layer that multiplies in the precision of its weights, which may be lower than that of its input."""

    def reset_parameters(self) -> None:
        """Initialize the weights like Glorot & Bengio 2010, and the bias with 0."""
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, rows: Tensor) -> Tensor:
        """Return outputs (…, out)."""
        if rows.dtype == self.weight.dtype:
            return super().forward(rows)
        return functional.linear(rows.to(self.weight.dtype), self.weight).to(rows.dtype) + self.bias


def attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Attend in every head with softmax(q'k / sqrt(d) + bias).

    Args:
        queries: (B, heads, T, d).
        keys: (B, heads, S, d).
        values: (B, heads, S, d).
        bias: (B or 1, T or 1, S or 1), 0 where attention is allowed, minus infinity elsewhere.

    Returns:
        Weighted sums of the values, (B, T, H), and the weights, (B, heads, T, S).
    """
    contexts, weights = _weighted(queries, keys, values, bias.unsqueeze(1))  # (B, heads, T, d), (B, heads, T, S)
    return contexts.transpose(1, 2).flatten(2), weights  # contexts (B, T, H)


def _weighted(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Return weighted sums (A, B, T, d) and weights (A, B, T, S) of values (A, B, S, d), for queries (A, B, T, d)."""
    steps, size = queries.shape[2:]
    scores = torch.bmm((queries * size**-0.5).flatten(0, 1), keys.flatten(0, 1).transpose(1, 2))  # (A·B, T, S)
    weights = torch.softmax(scores.view(*queries.shape[:3], -1) + bias, dim=-1)  # (A, B, T, S)
    contexts = torch.bmm(weights.flatten(0, 1).to(values.dtype), values.flatten(0, 1))  # (A·B, T, d)
    return contexts.view(*queries.shape[:2], steps, size), weights  # (A, B, T, d), (A, B, T, S)


def _split(rows: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """Split rows (B, T, parts·H) into their parts, (B, heads, T, d) each."""
    batch, length, size = rows.shape
    return rows.view(batch, length, parts, heads, size // parts // heads).permute(2, 0, 3, 1, 4).unbind(0)


def _attend_to_source(queries: Tensor, keys_values: Tensor, source: Source, heads: int) -> tuple[Tensor, Tensor]:
    """Attend with queries (B, T, H) to keys and values (B, S, 2H) of the source, like `attend`.

    If rows share their source (`Source.repeated_for`), T is 1, and the rows of one source are processed as its steps.
    """
    if not source.counts:
        keys, values = _split(keys_values, 2, heads)
        return attend(_split(queries, 1, heads)[0], keys, values, source.bias.unsqueeze(1))  # bias (B, 1, S)
    counts = list(source.counts)
    rows = zip(torch.split(queries.transpose(0, 1), counts, dim=1), torch.split(source.bias, counts), strict=True)
    parts = []
    for number, (query, bias) in enumerate(rows):  # (1, count, H), (count, S)
        if len(bias):
            keys, values = _split(keys_values[number].unsqueeze(0), 2, heads)
            parts.append(attend(_split(query, 1, heads)[0], keys, values, bias.unsqueeze(0)))
    contexts, weights = zip(*parts, strict=True)
    sums = torch.cat(contexts, dim=1).transpose(0, 1)  # (B, 1, H)
    return sums, torch.cat(weights, dim=2).transpose(0, 2)  # (B, heads, 1, S)


def add_positions(embedded: Tensor, positions: Tensor) -> Tensor:
    """Return word vectors (…, E) times sqrt(E), plus sine and cosine of their positions (…, 1), which count from 0."""
    size = embedded.shape[-1]
    dimensions = torch.arange(0, size, 2, device=embedded.device, dtype=embedded.dtype)  # (E/2,)
    angles = positions * torch.exp(dimensions * (-math.log(10000) / size))  # (…, E/2)
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)  # (…, E)
    return embedded * math.sqrt(size) + waves[..., :size]


class SelfAttention(nn.Module):
    """x + attention(norm(x)): attention to all positions of the same side, with dropout on the sublayer's output."""

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        hidden, self.heads = architecture.hidden_size, architecture.attention_heads
        self.norm = nn.LayerNorm(hidden)
        self.project, self.out = Dense(hidden, 3 * hidden), Dense(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def along_paths(self, rows: Tensor, parts: Sequence[slice], blocks: Sequence[Block]) -> Tensor:
        """Return the output (N, H) at the nodes of a prefix tree, which attend to the nodes of their paths.

        `rows` (N, H) are overwritten. `parts` divide them into rows that are processed together.
        """
        size = rows.shape[1] // self.heads
        queries, keys, values = rows.new_empty(3, self.heads, len(rows), size)  # (heads, N, d) each
        for part in parts:
            projected = self.project(self.norm(rows[part])).view(-1, 3, self.heads, size)  # (n, 3, heads, d)
            for whole, values_of_part in zip((queries, keys, values), projected.unbind(1), strict=True):
                whole[:, part] = values_of_part.transpose(0, 1)  # (heads, n, d)
        contexts = torch.empty_like(queries)  # (heads, N, d)
        for block in blocks:
            paths, count = block.positions.shape  # P, M
            query, key, value = (
                whole.index_select(1, chosen).view(self.heads, paths, -1, size)  # (heads, P, M or T, d)
                for whole, chosen in ((queries, block.queries), (keys, block.keys), (values, block.keys))
            )
            sums = _weighted(query, key, value, block.bias)[0].view(self.heads, paths * count, size)  # (heads, P·M, d)
            contexts.index_copy_(1, block.nodes, sums.index_select(1, block.computed))  # (heads, N, d)
        for part in parts:
            rows[part] += self.out(contexts[:, part].transpose(0, 1).flatten(1))  # (n, H)
        return rows

    def forward(self, rows: Tensor, before: Layer, bias: Tensor) -> tuple[Tensor, Layer]:
        """Return the output (B, T, H), and the keys and values of all positions, (B, heads, t+T, 2d).

        The last axis has the key, then the value of a position. `before` has the keys and values of the t earlier
        positions, or is empty. `bias` (B or 1, T or 1, t+T or 1) is like that of `attend`.
        """
        queries, *new = _split(self.project(self.norm(rows)), 3, self.heads)  # (B, heads, T, d) each
        after = torch.cat(new, dim=-1)  # (B, heads, T, 2d)
        if before:
            after = torch.cat([before[0], after], dim=2)  # (B, heads, t+T, 2d)
        keys, values = after.chunk(2, dim=-1)  # (B, heads, t+T, d) each
        return rows + self.dropout(self.out(attend(queries, keys, values, bias)[0])), (after,)


class SourceAttention(nn.Module):
    """x + attention(norm(x)): attention to the annotations, with dropout on the sublayer's output."""

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        hidden, self.heads = architecture.hidden_size, architecture.attention_heads
        self.norm = nn.LayerNorm(hidden)
        self.query, self.keys_values = Dense(hidden, hidden), Dense(hidden, 2 * hidden)
        self.out = Dense(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor, keys_values: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """Return the output (B, T, H) and the weights (B, heads, T, S).

        `keys_values` (B, S, 2H) are the keys and values of the annotations.
        """
        contexts, weights = _attend_to_source(self.query(self.norm(rows)), keys_values, source, self.heads)
        return rows + self.dropout(self.out(contexts)), weights


class FeedForward(nn.Module):
    """x + W_2 max(0, W_1 norm(x) + b_1) + b_2, with dropout on the hidden layer and on the sublayer's output."""

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        hidden, inner = architecture.hidden_size, architecture.feedforward_size
        self.norm = nn.LayerNorm(hidden)
        self.enter, self.leave = Dense(hidden, inner), Dense(inner, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the output (…, H)."""
        activations = self.dropout(torch.relu(self.enter(self.norm(rows))))  # (…, F)
        outputs: Tensor = rows + self.dropout(self.leave(activations))
        return outputs


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward sublayer."""

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        self.attention = SelfAttention(architecture, dropout)
        self.feedforward = FeedForward(architecture, dropout)

    def forward(self, rows: Tensor, bias: Tensor) -> Tensor:
        """Return the output (B, S, H)."""
        outputs: Tensor = self.feedforward(self.attention(rows, (), bias)[0])
        return outputs


class DecoderLayer(nn.Module):
    """Self-attention to the previous words, attention to the source, then the feed-forward sublayer."""

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        self.attention = SelfAttention(architecture, dropout)
        self.source_attention = SourceAttention(architecture, dropout)
        self.feedforward = FeedForward(architecture, dropout)

    def forward(
        self, rows: Tensor, before: Layer, bias: Tensor, keys_values: Tensor, source: Source
    ) -> tuple[Tensor, Layer, Tensor]:
        """Return the output (B, T, H), the keys and values of all positions, and the weights on the source."""
        rows, after = self.attention(rows, before, bias)
        rows, weights = self.source_attention(rows, keys_values, source)
        return self.feedforward(rows), after, weights


class TransformerEncoder(nn.Module):
    """Layers of self-attention, with layer normalization at the end."""

    shares_prefixes = False

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(architecture, dropout) for _ in range(architecture.encoder_layers))
        self.norm = nn.LayerNorm(architecture.hidden_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, embedded: Tensor, mask: Tensor) -> Encoded:
        """Encode word vectors (B, S, E); `mask` (B, S) is false on padding."""
        positions = torch.arange(mask.shape[1], device=mask.device, dtype=embedded.dtype)  # (S,)
        bias = embedded.new_zeros(mask.shape).masked_fill(~mask, float("-inf")).unsqueeze(1)  # (B, 1, S)
        rows = self.dropout(add_positions(embedded, positions.unsqueeze(1)))  # (B, S, H)
        for layer in self.layers:
            rows = layer(rows, bias)
        return self.norm(rows) * mask.unsqueeze(-1), ()


class TransformerDecoder(nn.Module):
    """Layers of attention to the previous words and to the source. The softmax reads their normalized output.

    It has the interface of `decoder.Decoder`. The state between steps has the keys and values of all positions so far.
    Attention rows are the weights of the last layer, averaged over its heads.
    """

    readers: tuple[str, ...] = ()
    recurrent = False

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(architecture, dropout) for _ in range(architecture.decoder_layers))
        self.norm = nn.LayerNorm(architecture.hidden_size)
        self.dropout = nn.Dropout(dropout)

    def draw_vectors(self, vectors: Tensor) -> None:
        """Initialize the word vectors (V, E) of one side. They are multiplied by sqrt(E) when they are read."""
        nn.init.normal_(vectors, std=vectors.shape[1] ** -0.5)

    def values(self, states: Tensor) -> Tensor:
        """Return annotations (B, S, H) and their keys and values for each layer, (B, S, H + layers·2H)."""
        return torch.cat([states, *(layer.source_attention.keys_values(states) for layer in self._layers())], dim=-1)

    def keys(self, annotations: Tensor, source_length: Tensor) -> Tensor:
        """Return empty keys (B, S, 0): the keys are part of `values`, which rows of the same source share."""
        return annotations[:, :, :0]

    def start(self, source: Source) -> State:
        """Return the state before the first step."""
        step = torch.ones_like(source.source_length)  # (B, 1)
        return State(step=step, layers=((),) * len(self.layers), feed=(), history=())

    def step_input(self, embedded: Tensor) -> StepInput:
        """Return the input of a step, from the vectors (B, E) of the previous words."""
        return StepInput(vectors=embedded, gates=embedded[:, :0])

    def step(self, step_input: StepInput, state: State, source: Source) -> tuple[StepOutput, State]:
        """Return the output of one step and the next state."""
        rows = add_positions(step_input.vectors, state.step - 1).unsqueeze(1)  # (B, 1, H)
        tops, weights, layers = self._run(rows, state.layers, source, rows.new_zeros(1, 1, 1))
        top, row = tops[:, 0], weights[:, 0]  # (B, H), (B, S)
        return StepOutput(top=top, context=top[:, :0], row=row), state._replace(step=state.step + 1, layers=layers)

    def output(self, steps: StepOutput, vectors: Tensor) -> Tensor:
        """Return the normalized output of the top layer."""
        return steps.top

    def tree(self, rows: Tensor, parts: Sequence[Part], blocks: Sequence[Block]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield softmax inputs (n, H) and attention rows (n, S) at the nodes of a prefix tree, part by part.

        Args:
            rows: (N, H) vectors of the nodes' last words with their positions (`add_positions`), are overwritten.
            parts: consecutive nodes, with the sources that they share.
            blocks: the paths of the tree.
        """
        keys_values_size, top = 2 * rows.shape[1], self._layers()[-1]
        for number, layer in enumerate(self._layers()):
            rows = layer.attention.along_paths(rows, [part.nodes for part in parts], blocks)
            # `source.states` has annotations (H), then keys and values (2H) of each layer, see `values`.
            start = rows.shape[1] + number * keys_values_size
            own = slice(start, start + keys_values_size)
            for part in parts:
                keys_values = part.source.states[..., own]  # (sources, S, 2H), or (n, S, 2H) copied on a GPU
                seen, weights = layer.source_attention(rows[part.nodes].unsqueeze(1), keys_values, part.source)
                rows[part.nodes] = layer.feedforward(seen[:, 0])  # (n, H)
                if layer is top:
                    yield self.norm(rows[part.nodes]), weights[:, :, 0].mean(dim=1)  # (n, H), (n, S)

    def forward(self, embedded: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """Return the softmax inputs (T, B, H) and the attention rows (T, B, S) of all steps.

        `embedded` (T, B, E) are the vectors of the previous words.
        """
        vectors = embedded.transpose(0, 1)  # (B, T, E)
        steps = vectors.shape[1]
        positions = torch.arange(steps, device=vectors.device, dtype=vectors.dtype).unsqueeze(1)  # (T, 1)
        later = vectors.new_full((1, steps, steps), float("-inf")).triu(1)  # (1, T, T)
        tops, weights, _ = self._run(add_positions(vectors, positions), self.start(source).layers, source, later)
        return tops.transpose(0, 1), weights.transpose(0, 1)  # (T, B, H), (T, B, S)

    def _run(
        self, rows: Tensor, before: tuple[Layer, ...], source: Source, bias: Tensor
    ) -> tuple[Tensor, Tensor, tuple[Layer, ...]]:
        """Run all layers over rows (B, T, H). Return outputs (B, T, H), attention rows (B, T, S) and the next state."""
        rows, layers, weights = self.dropout(rows), [], source.bias
        width = 2 * rows.shape[2]
        keys_values = torch.split(source.states[..., rows.shape[2] :], width, dim=-1)  # (B, S, 2H) each
        for layer, earlier, layer_keys_values in zip(self._layers(), before, keys_values, strict=True):
            rows, after, weights = layer(rows, earlier, bias, layer_keys_values, source)
            layers.append(after)
        return self.norm(rows), weights.mean(dim=1), tuple(layers)

    def _layers(self) -> list[DecoderLayer]:
        return list(self.layers)  # type: ignore[arg-type]
