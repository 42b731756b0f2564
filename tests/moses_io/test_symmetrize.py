import random

import pytest

from moses_io.alignment import Alignment
from moses_io.symmetrize import SYMMETRIZATIONS, grow_diag_final_and

FORWARD, BACKWARD = frozenset({(0, 0), (1, 1), (1, 2)}), frozenset({(0, 0), (1, 1), (2, 1)})
ADJACENT = [(0, -1), (-1, 0), (0, 1), (1, 0)]
DIAGONAL = [(-1, -1), (1, -1), (-1, 1), (1, 1)]


def test_intersection_and_union() -> None:
    assert SYMMETRIZATIONS["intersection"](FORWARD, BACKWARD) == {(0, 0), (1, 1)}
    assert SYMMETRIZATIONS["union"](FORWARD, BACKWARD) == {(0, 0), (1, 1), (1, 2), (2, 1)}


@pytest.mark.parametrize(
    ("forward", "backward", "joined"),
    [
        (set(), set(), set()),
        ({(0, 0), (1, 1), (1, 2)}, {(0, 0), (1, 1), (2, 1)}, {(0, 0), (1, 1), (1, 2), (2, 1)}),  # adjacent: both added
        ({(0, 0), (1, 1)}, {(0, 0)}, {(0, 0), (1, 1)}),  # diagonal
        ({(0, 0), (2, 2)}, {(0, 0)}, {(0, 0), (2, 2)}),  # no neighbour, added by final: neither word is linked
        ({(0, 0), (0, 2)}, {(0, 0)}, {(0, 0)}),  # not added by final-and: one word is linked
        ({(0, 0), (0, 2), (1, 1)}, {(0, 0)}, {(0, 0), (1, 1), (0, 2)}),  # an added link can have neighbours
        ({(0, 3)}, {(0, 5), (3, 3)}, {(0, 3)}),  # final processes forward links first
        ({(1, 1)}, {(0, 0)}, {(1, 1), (0, 0)}),  # empty intersection
        ({(0, 0), (0, 1), (1, 1)}, {(0, 0), (1, 0)}, {(0, 0), (0, 1), (1, 0)}),  # after that, 1-1 adds no unlinked word
    ],
)
def test_grow_diag_final_and(
    forward: set[tuple[int, int]], backward: set[tuple[int, int]], joined: set[tuple[int, int]]
) -> None:
    assert grow_diag_final_and(frozenset(forward), frozenset(backward)) == joined


def symmetrize_by_cells(forward: Alignment, backward: Alignment, size: int) -> set[tuple[int, int]]:
    """Symmetrize by visiting each cell of the matrix, in the order of target words and then of source words."""
    cells = [(i, j) for j in range(size) for i in range(size)]
    links = {cell for cell in cells if cell in forward and cell in backward}

    def new(i: int, j: int) -> tuple[bool, bool]:
        return all(link[0] != i for link in links), all(link[1] != j for link in links)

    before = -1
    while len(links) > before:
        before = len(links)
        for i, j in cells:
            for across, down in ADJACENT + DIAGONAL if (i, j) in links else ():
                cell = (i + across, j + down)
                if (cell in forward or cell in backward) and any(new(*cell)):
                    links.add(cell)
    for side in (forward, backward):
        for cell in cells:
            if cell in side and all(new(*cell)):
                links.add(cell)
    return links


def test_grow_diag_final_and_equals_a_simple_implementation() -> None:
    rng = random.Random(1)
    for size in [2, 3, 4, 5, 6] * 40:
        forward = frozenset((rng.randrange(size), j) for j in range(size) if rng.random() < 0.9)
        backward = frozenset((i, rng.randrange(size)) for i in range(size) if rng.random() < 0.9)
        assert grow_diag_final_and(forward, backward) == symmetrize_by_cells(forward, backward, size)
