"""Recurrent layers: over a whole sequence by torch's fused kernels, or one step at a time with the same weights."""

from collections.abc import Callable
from typing import Any, NamedTuple

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

    `step` takes what enters (B, gates·H), what comes from the state (B, gates·H), and the state, to the next state.
    """

    gates: int  # blocks of H in its weights
    kept: int  # tensors in the state of a layer
    layers: type[nn.RNNBase]  # torch's module for a stack of them
    step: Callable[[Tensor, Tensor, Layer], Layer]
    run: Callable[..., Any]  # torch's fused kernel of a stack

    def packed(self, state: Layer) -> Tensor | Layer:
        """Return a state as torch's module takes it: what the cell keeps, without the tuple if that is one tensor."""
        return state if self.kept > 1 else state[0]


def _lstm(entering: Tensor, recurrent: Tensor, state: Layer) -> Layer:
    enter, forget, new, leave = (entering + recurrent).chunk(4, dim=1)  # (B, H) each
    memory = torch.sigmoid(forget) * state[1] + torch.sigmoid(enter) * tanh(new)
    return torch.sigmoid(leave) * tanh(memory), memory


def _gru(entering: Tensor, recurrent: Tensor, state: Layer) -> Layer:
    reset_in, update_in, new_in = entering.chunk(3, dim=1)  # (B, H) each
    reset, update, new = recurrent.chunk(3, dim=1)  # (B, H) each
    candidate = tanh(new_in + torch.sigmoid(reset_in + reset) * new)
    keep = torch.sigmoid(update_in + update)
    return ((1 - keep) * candidate + keep * state[0],)


def _rnn(entering: Tensor, recurrent: Tensor, state: Layer) -> Layer:
    return (tanh(entering + recurrent),)


LSTM = Cell(gates=4, kept=2, layers=nn.LSTM, step=_lstm, run=torch.lstm)
"""Hochreiter & Schmidhuber 1997."""
GRU = Cell(gates=3, kept=1, layers=nn.GRU, step=_gru, run=torch.gru)
"""Cho et al. 2014, in the form of torch: the reset gate acts after the recurrent product."""
RNN = Cell(gates=1, kept=1, layers=nn.RNN, step=_rnn, run=torch.rnn_tanh)
"""Elman 1990."""


def product(weight: Tensor, rows: Tensor, bias: Tensor | None) -> Tensor:
    """(out, N) W xᵀ + b for rows (N, in), multiplied in the precision of W, which may be lower than theirs.

    On a CPU this is up to twice as fast as x Wᵀ.
    """
    wide = torch.mm(weight, rows.t().to(weight.dtype)).to(rows.dtype)  # (out, N)
    return wide if bias is None else wide.add_(bias.unsqueeze(1))  # (out, N)


def columns(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(…, out) W x + b for rows (…, in): what `functional.linear` gives, laid out in memory by columns.

    The gates of a cell are then blocks without gaps.
    """
    return product(weight, rows.flatten(0, -2), bias).t().view(*rows.shape[:-1], -1)  # (…, out)


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
        self.stack = self.cell.layers(architecture.embedding, hidden, layers, dropout=dropout if layers > 1 else 0.0)
        self.beside = Columns(beside, self.cell.gates * hidden, bias=False) if beside else None
        self.dropout = nn.Dropout(dropout)

    def word_gates(self, embedded: Tensor) -> Tensor:
        """(…, gates·H) part of the word vectors in the first layer's gates, for all steps at once."""
        weight, _, bias, _ = self.stack.all_weights[0]
        return columns(embedded, weight, bias)

    def step(self, word_gates: Tensor, beside: Tensor | None, state: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """Take one step of every layer, from `word_gates` (B, gates·H) and `beside` (B, …)."""
        entering = word_gates
        after: list[Layer] = []
        if self.beside is not None and beside is not None:
            entering = entering + self.beside(self.dropout(beside))
        for (weight_in, weight, bias_in, bias), before in zip(self.stack.all_weights, state, strict=True):
            if after:
                entering = columns(self.dropout(after[-1][0]), weight_in, bias_in)
            after.append(self.cell.step(entering, columns(before[0], weight, bias), before))
        return tuple(after)

    def run(self, embedded: Tensor, state: tuple[Layer, ...]) -> Tensor:
        """(T, B, H) top layer over all steps (T, B, E); for what reads nothing beside the words."""
        first = tuple(torch.stack(tensors) for tensors in zip(*state, strict=True))  # (layers, B, H) each
        outputs: Tensor = self.stack(embedded, self.cell.packed(first))[0]
        return outputs
