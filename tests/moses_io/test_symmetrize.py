import random

import pytest

from moses_io.alignment import Alignment
from moses_io.symmetrize import SYMMETRIZATIONS, grow_diag_final_and

FORWARD, BACKWARD = frozenset({(0, 0), (1, 1), (1, 2)}), frozenset({(0, 0), (1, 1), (2, 1)})
BESIDE = [(0, -1), (-1, 0), (0, 1), (1, 0)]
ACROSS = [(-1, -1), (1, -1), (-1, 1), (1, 1)]


def test_intersection_and_union() -> None:
    assert SYMMETRIZATIONS["intersection"](FORWARD, BACKWARD) == {(0, 0), (1, 1)}
    assert SYMMETRIZATIONS["union"](FORWARD, BACKWARD) == {(0, 0), (1, 1), (1, 2), (2, 1)}


@pytest.mark.parametrize(
    ("forward", "backward", "joined"),
    [
        (set(), set(), set()),
        ({(0, 0), (1, 1), (1, 2)}, {(0, 0), (1, 1), (2, 1)}, {(0, 0), (1, 1), (1, 2), (2, 1)}),  # beside: both grow
        ({(0, 0), (1, 1)}, {(0, 0)}, {(0, 0), (1, 1)}),  # across
        ({(0, 0), (2, 2)}, {(0, 0)}, {(0, 0), (2, 2)}),  # no neighbour, final: neither word is linked
        ({(0, 0), (0, 2)}, {(0, 0)}, {(0, 0)}),  # and: one of them is
        ({(0, 0), (0, 2), (1, 1)}, {(0, 0)}, {(0, 0), (1, 1), (0, 2)}),  # a link that grew has neighbours, too
        ({(0, 3)}, {(0, 5), (3, 3)}, {(0, 3)}),  # final takes the links of target words first
        ({(1, 1)}, {(0, 0)}, {(1, 1), (0, 0)}),  # nothing in common
        ({(0, 0), (0, 1), (1, 1)}, {(0, 0), (1, 0)}, {(0, 0), (0, 1), (1, 0)}),  # then 1-1 adds no word
    ],
)
def test_grow_diag_final_and_by_hand(
    forward: set[tuple[int, int]], backward: set[tuple[int, int]], joined: set[tuple[int, int]]
) -> None:
    assert grow_diag_final_and(frozenset(forward), frozenset(backward)) == joined


def slowly(forward: Alignment, backward: Alignment, size: int) -> set[tuple[int, int]]:
    """Look at each cell of the matrix in the order of target words, then of source words."""
    cells = [(i, j) for j in range(size) for i in range(size)]
    links = {cell for cell in cells if cell in forward and cell in backward}

    def new(i: int, j: int) -> tuple[bool, bool]:
        return all(link[0] != i for link in links), all(link[1] != j for link in links)

    before = -1
    while len(links) > before:
        before = len(links)
        for i, j in cells:
            for across, down in BESIDE + ACROSS if (i, j) in links else ():
                cell = (i + across, j + down)
                if (cell in forward or cell in backward) and any(new(*cell)):
                    links.add(cell)
    for side in (forward, backward):
        for cell in cells:
            if cell in side and all(new(*cell)):
                links.add(cell)
    return links


def test_grow_diag_final_and_is_that_of_a_slow_walk_over_the_matrix() -> None:
    rng = random.Random(1)
    for size in [2, 3, 4, 5, 6] * 40:
        forward = frozenset((rng.randrange(size), j) for j in range(size) if rng.random() < 0.9)
        backward = frozenset((i, rng.randrange(size)) for i in range(size) if rng.random() < 0.9)
        assert grow_diag_final_and(forward, backward) == slowly(forward, backward, size)
