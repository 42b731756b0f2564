"""Decoders: one step of the target at a time, with everything that goes from step to step in one value."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from features.models.attention import Attention, History, Source
from features.models.settings import Architecture


class State(NamedTuple):
    """What a step hands to the next. Rows can be gathered: batches, beams and children of a prefix all do.

    Attributes:
        hidden: (B, H) output of each layer.
        cell: (B, H) memory of each layer.
        history: what the attention terms remember.
    """

    hidden: tuple[Tensor, ...]
    cell: tuple[Tensor, ...]
    history: History

    def gather(self, rows: Tensor) -> "State":
        """Return the state with row `rows[n]` at n."""
        return State(*(tuple(tensor.index_select(0, rows) for tensor in part) for part in self))


class Words(NamedTuple):
    """Vectors of the previous words y_{j-1}, projected for all steps at once.

    Attributes:
        gates: (T, B, 4H) their part of the first layer's gates.
        output: (T, B, H) their part of the output layer.
    """

    gates: Tensor
    output: Tensor

    def at(self, step: int) -> "Words":
        """Return the words of one step, without the T axis."""
        return Words(self.gates[step], self.output[step])


class AttendFirst(nn.Module):
    """Attention asked by the state before the step, its context read by the step.

    c_j = attend(g_{j-1}); g_j = LSTM([y_{j-1}; c_j], g_{j-1}); u_j = tanh(g_j + W_uc c_j + W_ui y_{j-1})
    (Bahdanau et al. 2015; the output layer as Cohn et al. 2016, eq. 3). The first state is tanh(W_0 backward_1).
    """

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        embedding, hidden = architecture.embedding, architecture.hidden
        self.attention = Attention(architecture)
        self.bridge = nn.Linear(hidden, architecture.layers * hidden)
        self.word_gates = nn.Linear(embedding, 4 * hidden)
        self.gates = nn.ModuleList(
            nn.Linear((3 if layer == 0 else 2) * hidden, 4 * hidden, bias=layer > 0)
            for layer in range(architecture.layers)
        )
        self.word_output = nn.Linear(embedding, hidden)
        self.context_output = nn.Linear(2 * hidden, hidden, bias=False)
        self.dropout = nn.Dropout(dropout)

    def start(self, source: Source) -> State:
        """Return the state before the first step."""
        hidden = torch.tanh(self.bridge(source.first)).chunk(len(self.gates), dim=1)
        cell = tuple(torch.zeros_like(layer) for layer in hidden)
        return State(tuple(hidden), cell, self.attention.start(source))

    def words(self, embedded: Tensor) -> Words:
        """Project the vectors of previous words, (T, B, E)."""
        embedded = self.dropout(embedded)
        return Words(self.word_gates(embedded), self.word_output(embedded))

    def step(self, words: Words, state: State, source: Source) -> tuple[Tensor, Tensor, Tensor, State]:
        """Take one step.

        Returns:
            (B, H) top state g_j, (B, 2H) context c_j, (B, S) row of attention, and the next state.
        """
        context, row, history = self.attention(state.hidden[-1], source, state.history)
        hidden, cell = [], []
        below = self.dropout(context)
        for layer, gates in enumerate(self.gates):
            total = gates(torch.cat([below, state.hidden[layer]], dim=1))
            above, memory = _lstm(total + words.gates if layer == 0 else total, state.cell[layer])
            below = self.dropout(above)
            hidden.append(above)
            cell.append(memory)
        return hidden[-1], context, row, State(tuple(hidden), tuple(cell), history)

    def output(self, top: Tensor, context: Tensor, words: Words) -> Tensor:
        """(…, H) what the softmax reads, u_j, for one step or for all of them."""
        combined: Tensor = self.dropout(torch.tanh(top + self.context_output(context) + words.output))
        return combined

    def forward(self, embedded: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """Run all steps over given previous words (T, B, E).

        Returns:
            (T, B, H) output of every step, and (T, B, S) its row of attention.
        """
        words, state = self.words(embedded), self.start(source)
        tops, contexts, rows = [], [], []
        for step in range(embedded.shape[0]):
            top, context, row, state = self.step(words.at(step), state, source)
            tops.append(top)
            contexts.append(context)
            rows.append(row)
        return self.output(torch.stack(tops), torch.stack(contexts), words), torch.stack(rows)


def _lstm(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """LSTM (Hochreiter & Schmidhuber 1997) from summed gates (B, 4H) in the order input, forget, new, output."""
    enter, forget, new, leave = gates.chunk(4, dim=1)
    memory = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(leave) * torch.tanh(memory), memory


WIRINGS = {"attend-first": AttendFirst}
