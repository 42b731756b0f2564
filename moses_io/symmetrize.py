"""The links of two directions made one alignment, as Moses' symal does it.

`forward` are links that target words were given, `backward` those that source words were given, all (source word,
target word) from 0.
"""

import operator
from bisect import bisect
from collections.abc import Callable, Iterable

from moses_io.alignment import Alignment

_NEIGHBOURS = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
"""Steps to neighbouring links in symal's order, as (source, target): those beside, then those across."""


def grow_diag_final_and(forward: Alignment, backward: Alignment) -> Alignment:
    """Return the intersection, grown (Koehn et al. 2003, 2005).

    Grow-diag: as long as there are any, links of the union that are neighbours of a link, also across, and have a word
    that is not linked yet, are added. Final-and: then links of which neither word is linked, first those of `forward`.
    symal goes through links in the order of target words, then of source words, and sees what it adds on its way.
    """
    grown = _Grown(forward & backward)
    while _grow_once(grown, forward | backward):
        pass
    for side in (forward, backward):
        for i, j in sorted(side, key=_target_first):
            if i not in grown.sources and j not in grown.targets:
                grown.add((i, j))
    return frozenset(grown.links)


SYMMETRIZATIONS: dict[str, Callable[[Alignment, Alignment], Alignment]] = {
    "intersection": operator.and_,
    "union": operator.or_,
    "grow-diag-final-and": grow_diag_final_and,
}
"""How two directions are joined, by the names that users say."""


class _Grown:
    """Links in symal's order, and the words that they link."""

    def __init__(self, links: Iterable[tuple[int, int]]) -> None:
        self.links = sorted(links, key=_target_first)
        self.sources = {i for i, _ in self.links}
        self.targets = {j for _, j in self.links}

    def add(self, link: tuple[int, int]) -> int:
        """Put a link in its place, and return that."""
        place = bisect(self.links, _target_first(link), key=_target_first)
        self.links.insert(place, link)
        self.sources.add(link[0])
        self.targets.add(link[1])
        return place


def _grow_once(grown: _Grown, union: Alignment) -> bool:
    """Go through the links once, with those that are added ahead of where we are; tell whether any were."""
    before, place = len(grown.links), 0
    while place < len(grown.links):
        i, j = grown.links[place]
        for across, down in _NEIGHBOURS:
            link = (i + across, j + down)
            if link in union and not (link[0] in grown.sources and link[1] in grown.targets):
                place += grown.add(link) <= place
        place += 1
    return len(grown.links) > before


def _target_first(link: tuple[int, int]) -> tuple[int, int]:
    return link[1], link[0]
