"""Recurrent layers: over a whole sequence by torch's fused kernels, or one step at a time with the same weights."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from features.models.settings import Architecture
from features.models.tables import find

Layer = tuple[Tensor, ...]
"""State of a layer: (B, H) its output, then what else the cell keeps."""


def tanh(values: Tensor) -> Tensor:
    """Return tanh, on a CPU as 2 sigmoid(2x) - 1, which torch reckons in a third of the time."""
    return torch.tanh(values) if values.is_cuda else torch.sigmoid(values + values).mul(2).sub(1)


class Cell(NamedTuple):
    """A recurrent cell.

    Attributes:
        gates: blocks of H in its weights.
        kept: tensors in the state of a layer.
        layers: torch's module for a stack of them.
        step: from what enters (B, gates·H), what comes from the state (B, gates·H), and the state, to the next state.
    """

    gates: int
    kept: int
    layers: type[nn.RNNBase]
    step: Callable[[Tensor, Tensor, Layer], Layer]


def _lstm(entering: Tensor, recurrent: Tensor, state: Layer) -> Layer:
    enter, forget, new, leave = (entering + recurrent).chunk(4, dim=1)
    memory = torch.sigmoid(forget) * state[1] + torch.sigmoid(enter) * tanh(new)
    return torch.sigmoid(leave) * tanh(memory), memory


def _gru(entering: Tensor, recurrent: Tensor, state: Layer) -> Layer:
    (reset, update, new), (was_reset, was_update, was_new) = entering.chunk(3, dim=1), recurrent.chunk(3, dim=1)
    candidate = tanh(new + torch.sigmoid(reset + was_reset) * was_new)
    keep = torch.sigmoid(update + was_update)
    return ((1 - keep) * candidate + keep * state[0],)


def _rnn(entering: Tensor, recurrent: Tensor, state: Layer) -> Layer:
    return (tanh(entering + recurrent),)


LSTM = Cell(4, 2, nn.LSTM, _lstm)
"""Hochreiter & Schmidhuber 1997."""
GRU = Cell(3, 1, nn.GRU, _gru)
"""Cho et al. 2014, in the form of torch: the reset gate acts after the recurrent product."""
RNN = Cell(1, 1, nn.RNN, _rnn)
"""Elman 1990."""


def product(weight: Tensor, rows: Tensor, bias: Tensor | None) -> Tensor:
    """(out, N) W xᵀ + b for rows (N, in), multiplied in the precision of W, which may be lower than theirs.

    On a CPU this is up to twice as fast as x Wᵀ.
    """
    wide = torch.mm(weight, rows.t().to(weight.dtype)).to(rows.dtype)
    return wide if bias is None else wide.add_(bias.unsqueeze(1))


def columns(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(…, out) W x + b for rows (…, in): what `functional.linear` gives, laid out in memory by columns.

    The gates of a cell are then blocks without gaps.
    """
    return product(weight, rows.flatten(0, -2), bias).t().view(*rows.shape[:-1], -1)


class Columns(nn.Linear):
    """A linear layer whose result is laid out by columns."""

    def forward(self, rows: Tensor) -> Tensor:
        """(…, out)."""
        return columns(rows, self.weight, self.bias)


class Recurrence(nn.Module):
    """A stack of layers that reads word vectors (…, E) and, beside them, `beside` values that arise while it runs."""

    def __init__(self, architecture: Architecture, beside: int, dropout: float) -> None:
        super().__init__()
        self.cell: Cell = find("cell", architecture.cell)
        hidden, layers = architecture.hidden, architecture.layers
        between = dropout if layers > 1 else 0.0
        self.stack = self.cell.layers(architecture.embedding, hidden, layers, dropout=between)
        self.beside = Columns(beside, self.cell.gates * hidden, bias=False) if beside else None
        self.dropout = nn.Dropout(dropout)

    def words(self, embedded: Tensor) -> Tensor:
        """(…, gates·H) part of the word vectors in the first layer's gates, for all steps at once."""
        return columns(embedded, self._weight("weight_ih", 0), self._weight("bias_ih", 0))

    def step(self, words: Tensor, beside: Tensor | None, state: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """Take one step of every layer, from `words` (B, gates·H) and `beside` (B, …)."""
        entering = words
        after: list[Layer] = []
        if self.beside is not None and beside is not None:
            entering = entering + self.beside(self.dropout(beside))
        for layer, before in enumerate(state):
            if layer:
                below = self.dropout(after[-1][0])
                entering = columns(below, self._weight("weight_ih", layer), self._weight("bias_ih", layer))
            recurrent = columns(before[0], self._weight("weight_hh", layer), self._weight("bias_hh", layer))
            after.append(self.cell.step(entering, recurrent, before))
        return tuple(after)

    def run(self, embedded: Tensor, state: tuple[Layer, ...]) -> Tensor:
        """(T, B, H) top layer over all steps (T, B, E); for what reads nothing beside the words."""
        started = [torch.stack(tensors) for tensors in zip(*state, strict=True)]
        outputs: Tensor = self.stack(embedded, tuple(started) if self.cell.kept > 1 else started[0])[0]
        return outputs

    def _weight(self, name: str, layer: int) -> Tensor:
        weight: Tensor = getattr(self.stack, f"{name}_l{layer}")
        return weight
