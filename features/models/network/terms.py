"""Terms of the additive score: biases from positions, the previous word, and earlier attention.

A term is added to the hidden layer of size A, before the tanh, with its own weights (Cohn et al. 2016, section 3). It
defines the state that it carries from one decoder step to the next. Only the additive score has terms.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

from features.models.network.cells import Cell
from features.models.settings import Architecture
from features.models.tables import find

Carried = tuple[Tensor, ...]
"""State of a term between two steps. Every tensor has B rows."""


class Term(nn.Module, ABC):
    """Base class of terms. By default a term carries no state and has no constant part.

    `forward` gets the previous word, `update` gets only the attention row. A term that remembers words needs a further
    argument of `update`, which `Attention.forward` must then pass.
    """

    def constant(self, source_length: Tensor, positions: Tensor) -> Tensor | None:
        """Return the part (B, S, A) that is constant over steps, or None if there is none.

        `source_length` (B, 1) is I. `positions` (S,) are counted from 0.
        """
        return None

    def start(self, bias: Tensor) -> Carried:
        """Return the state before the first step. `bias` (B, S) only gives shape, type and device."""
        return ()

    @abstractmethod
    def forward(self, carried: Carried, step: Tensor, word: Tensor) -> Tensor:
        """Return the bias (B, S or 1, A) at step j (B, 1), with the vector of the previous word (B, E)."""

    def update(self, carried: Carried, row: Tensor) -> Carried:
        """Return the state after a step with attention row (B, S)."""
        return carried


class Position(Term):
    """Position term: log(1+j), log(1+i), log(1+I) of target step, source position, source length (Cohn eq. 6)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.target = nn.Linear(1, architecture.attention_size, bias=False)
        self.source = nn.Linear(2, architecture.attention_size, bias=False)

    def constant(self, source_length: Tensor, positions: Tensor) -> Tensor:
        """Return the part (B, S, A) of i and I."""
        shape = (len(source_length), len(positions))
        values = torch.stack([positions.expand(shape), source_length.expand(shape)], dim=-1)  # (B, S, 2)
        added: Tensor = self.source(torch.log1p(values))
        return added

    def forward(self, carried: Carried, step: Tensor, word: Tensor) -> Tensor:
        """Return the part (B, 1, A) of j."""
        added: Tensor = self.target(torch.log1p(step)).unsqueeze(1)  # (B, 1, A)
        return added


class Markov(Term):
    """Markov term: attention of the previous step in a window around each position (Cohn eq. 7)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.radius = architecture.term_radius
        self.window = nn.Linear(2 * self.radius + 1, architecture.attention_size, bias=False)

    def start(self, bias: Tensor) -> Carried:
        """Return zeros (B, S)."""
        return (torch.zeros_like(bias),)

    def forward(self, carried: Carried, step: Tensor, word: Tensor) -> Tensor:
        """Return the bias (B, S, A)."""
        added: Tensor = self.window(windows(carried[0], self.radius))
        return added

    def update(self, carried: Carried, row: Tensor) -> Carried:
        """Return the last row."""
        return (row,)


class Fertility(Markov):
    """Local fertility term: attention summed over all previous steps, in a window around each position (Cohn 3.3)."""

    def update(self, carried: Carried, row: Tensor) -> Carried:
        """Add the row to the sum."""
        return (carried[0] + row,)


class PreviousWord(Term):
    """Previous-word term: the vector of y_{j-1} (Choi eq. 6, AttY)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.word = nn.Linear(architecture.embedding_size, architecture.attention_size, bias=False)

    def forward(self, carried: Carried, step: Tensor, word: Tensor) -> Tensor:
        """Return the bias (B, 1, A)."""
        added: Tensor = self.word(word).unsqueeze(1)  # (B, 1, A)
        return added


class Memory(Term):
    """Memory term: a recurrent cell reads the attention in a window around each source position (Yang eq. 10-13).

    One cell serves all positions. It reads the row of step j-1 before step j. Before the first step that row is 0. The
    memory is used for addressing only and is not part of the context.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.cell: Cell = find("cell", architecture.cell)
        self.radius, self.size = architecture.term_radius, architecture.memory_size
        self.window = nn.Linear(2 * self.radius + 1, self.cell.gates * self.size)
        self.recurrent = nn.Linear(self.size, self.cell.gates * self.size)
        self.out = nn.Linear(self.size, architecture.attention_size, bias=False)

    def start(self, bias: Tensor) -> Carried:
        """Return the state (B, S, M) of each tensor before the first step."""
        nothing = bias.new_zeros(*bias.shape, self.size)
        return self.update((nothing,) * self.cell.num_states, torch.zeros_like(bias))

    def forward(self, carried: Carried, step: Tensor, word: Tensor) -> Tensor:
        """Return the bias (B, S, A)."""
        added: Tensor = self.out(carried[0])
        return added

    def update(self, carried: Carried, row: Tensor) -> Carried:
        """Run the cell for one step at all positions."""
        flat = tuple(tensor.flatten(0, 1) for tensor in carried)  # (B·S, M) each
        entering = self.window(windows(row, self.radius)).flatten(0, 1)  # (B·S, gates·M)
        after = self.cell.step(entering, self.recurrent(flat[0]), flat)
        return tuple(tensor.view(*row.shape, -1) for tensor in after)  # (B, S, M) each


def windows(rows: Tensor, radius: int) -> Tensor:
    """Return rows[i-k … i+k] for every i, (B, S, 2k+1), with 0 outside the sentence."""
    return functional.pad(rows, (radius, radius)).unfold(1, 2 * radius + 1, 1)  # (B, S, 2k+1)
