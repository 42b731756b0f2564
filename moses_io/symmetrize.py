"""Symmetrization of word alignments of two directions, as in Moses' symal.

In the `forward` alignment each target word has at most one link, in the `backward` alignment each source word has at
most one link. Links are pairs (source index, target index), counted from 0.
"""

import operator
from collections.abc import Callable

from moses_io.alignment import Alignment

_NEIGHBOURS = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
"""Offsets (source, target) of neighbouring links in symal's order: horizontal and vertical, then diagonal."""


def grow_diag_final_and(forward: Alignment, backward: Alignment) -> Alignment:
    """Return the symmetrized links by the heuristic grow-diag-final-and (Koehn et al. 2003, 2005).

    It starts with the intersection of both directions.

    * Grow-diag adds links of the union that are neighbours of a link, also diagonally, and have at least one word
      without a link. It is repeated until no link is added.
    * Final-and adds links whose words both have no link, first from `forward`, then from `backward`.

    The links are visited in the order of symal: by target index, then by source index. A link that was added has an
    immediate effect on the links that are visited after it.
    """
    links = set(forward & backward)
    sources = {i for i, _ in links}
    targets = {j for _, j in links}

    def add(i: int, j: int) -> None:
        links.add((i, j))
        sources.add(i)
        targets.add(j)

    union = sorted(forward | backward, key=_target_first)
    before = -1
    while len(links) > before:
        before = len(links)
        for i, j in union:
            for across, down in _NEIGHBOURS if (i, j) in links else ():
                link = (i + across, j + down)
                if (link in forward or link in backward) and not (link[0] in sources and link[1] in targets):
                    add(*link)
    for side in (forward, backward):
        for i, j in sorted(side, key=_target_first):
            if i not in sources and j not in targets:
                add(i, j)
    return frozenset(links)


def _target_first(link: tuple[int, int]) -> tuple[int, int]:
    return link[1], link[0]


SYMMETRIZATIONS: dict[str, Callable[[Alignment, Alignment], Alignment]] = {
    "intersection": operator.and_,
    "union": operator.or_,
    "grow-diag-final-and": grow_diag_final_and,
}
"""Function for each symmetrization heuristic, by its name on the command line."""
