"""Terms of the additive score: structural biases from positions, the previous word, and the attention so far.

A term is added to the hidden layer of size A, before the tanh (Cohn et al. 2016, section 3), with weights of its own.
It defines what it carries from one decoder step to the next. Only the additive score has terms.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

from features.models.network.cells import Cell
from features.models.settings import Architecture
from features.models.tables import find

Carried = tuple[Tensor, ...]
"""What a term hands to the next step; every tensor has B rows."""


class Term(nn.Module, ABC):
    """A term. By default it carries nothing and has no constant part.

    `forward` gets the previous word, `update` only the attention row. A term that remembers words needs a wider
    `update`, which `Attention.forward` calls.
    """

    def constant(self, source_length: Tensor, positions: Tensor) -> Tensor | None:
        """(B, S, A) what does not change from step to step, from I (B, 1) and position numbers (S,)."""
        return None

    def start(self, mask: Tensor) -> Carried:
        """Return what is carried into the first step, for B sentences of S positions, the shape of `mask`."""
        return ()

    @abstractmethod
    def forward(self, carried: Carried, step: Tensor, word: Tensor) -> Tensor:
        """(B, S or 1, A) what is added at step j (B, 1) with the vector of the word before (B, E)."""

    def update(self, carried: Carried, row: Tensor) -> Carried:
        """Return what is carried on after a step that attended by `row` (B, S)."""
        return carried


class Position(Term):
    """log(1+j), log(1+i), log(1+I) of target step, source position, source length (Cohn eq. 6)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.target = nn.Linear(1, architecture.attention, bias=False)
        self.source = nn.Linear(2, architecture.attention, bias=False)

    def constant(self, source_length: Tensor, positions: Tensor) -> Tensor:
        """(B, S, A) the part of i and I."""
        shape = (len(source_length), len(positions))
        values = torch.stack([positions.expand(shape), source_length.expand(shape)], dim=-1)  # (B, S, 2)
        added: Tensor = self.source(torch.log1p(values))
        return added

    def forward(self, carried: Carried, step: Tensor, word: Tensor) -> Tensor:
        """(B, 1, A)."""
        added: Tensor = self.target(torch.log1p(step)).unsqueeze(1)  # (B, 1, A)
        return added


class Markov(Term):
    """The attention of the step before, around each position (Cohn eq. 7)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.neighbours = architecture.neighbours
        self.window = nn.Linear(2 * self.neighbours + 1, architecture.attention, bias=False)

    def start(self, mask: Tensor) -> Carried:
        """(B, S) no attention yet."""
        return (torch.zeros_like(mask),)

    def forward(self, carried: Carried, step: Tensor, word: Tensor) -> Tensor:
        """(B, S, A)."""
        added: Tensor = self.window(windows(carried[0], self.neighbours))
        return added

    def update(self, carried: Carried, row: Tensor) -> Carried:
        """Keep the last row."""
        return (row,)


class Fertility(Markov):
    """Local fertility: the sum of the attention of all steps before, around each position (Cohn 3.3)."""

    def update(self, carried: Carried, row: Tensor) -> Carried:
        """Add the row."""
        return (carried[0] + row,)


class PreviousWord(Term):
    """The vector of y_{j-1} (Choi eq. 6, AttY)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.word = nn.Linear(architecture.embedding, architecture.attention, bias=False)

    def forward(self, carried: Carried, step: Tensor, word: Tensor) -> Tensor:
        """(B, 1, A)."""
        added: Tensor = self.word(word).unsqueeze(1)  # (B, 1, A)
        return added


class Memory(Term):
    """A memory for every source position: a recurrent cell that reads the attention around it (Yang eq. 10-13).

    One cell serves all positions. It reads the row of step j-1 before step j; before the first step that row is 0.
    The memory addresses only, it is not read into the context.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.cell: Cell = find("cell", architecture.cell)
        self.neighbours, self.size = architecture.neighbours, architecture.memory
        self.window = nn.Linear(2 * self.neighbours + 1, self.cell.gates * self.size)
        self.recurrent = nn.Linear(self.size, self.cell.gates * self.size)
        self.out = nn.Linear(self.size, architecture.attention, bias=False)

    def start(self, mask: Tensor) -> Carried:
        """(B, S, M) each: the memory before the first step."""
        nothing = mask.new_zeros(*mask.shape, self.size)
        return self.update((nothing,) * self.cell.kept, torch.zeros_like(mask))

    def forward(self, carried: Carried, step: Tensor, word: Tensor) -> Tensor:
        """(B, S, A)."""
        added: Tensor = self.out(carried[0])
        return added

    def update(self, carried: Carried, row: Tensor) -> Carried:
        """Run the cell on."""
        flat = tuple(tensor.flatten(0, 1) for tensor in carried)  # (B·S, M) each
        entering = self.window(windows(row, self.neighbours)).flatten(0, 1)  # (B·S, gates·M)
        after = self.cell.step(entering, self.recurrent(flat[0]), flat)
        return tuple(tensor.view(*row.shape, -1) for tensor in after)  # (B, S, M) each


def windows(rows: Tensor, neighbours: int) -> Tensor:
    """(B, S, 2k+1) of rows[i-k … i+k] for every i, 0 outside the sentence."""
    return functional.pad(rows, (neighbours, neighbours)).unfold(1, 2 * neighbours + 1, 1)  # (B, S, 2k+1)
