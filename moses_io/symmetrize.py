"""The links of two directions made one alignment, as Moses' symal does it.

`forward` are links that target words were given, `backward` those that source words were given, all (source word,
target word) from 0.
"""

import operator
from collections.abc import Callable

from moses_io.alignment import Alignment

_NEIGHBOURS = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
"""Steps to neighbouring links in symal's order, as (source, target): those beside, then those across."""


def grow_diag_final_and(forward: Alignment, backward: Alignment) -> Alignment:
    """Return the intersection, grown (Koehn et al. 2003, 2005).

    Grow-diag: as long as there are any, links of the union that are neighbours of a link, also across, and have a word
    that is not linked yet, are added. Final-and: then links of which neither word is linked, first those of `forward`.
    symal goes through links in the order of target words, then of source words, and sees what it adds on its way.
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
"""How two directions are joined, by the names that users say."""
