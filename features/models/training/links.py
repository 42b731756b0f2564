"""Word alignment of a corpus as a network sees it: links between its own tokens, and the lexicon that they give."""

from collections.abc import Sequence

from features.models.batches import EncodedPair
from features.models.vocabulary import BEGIN
from features.translation_table import Table, count, estimate
from moses_io.alignment import Alignment


def spread(links: Alignment, source_sizes: Sequence[int], target_sizes: Sequence[int], mirrored: bool) -> Alignment:
    """Return links between all pieces of linked words, of which `sizes` says how many each has.

    `mirrored` says that the target is read from its last piece to its first.
    """
    sources, targets = _pieces(source_sizes), _pieces(target_sizes)
    last = sum(target_sizes) - 1
    return frozenset(
        (source, last - target if mirrored else target)
        for i, j in links
        for source in sources[i]
        for target in targets[j]
    )


def _pieces(sizes: Sequence[int]) -> list[range]:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(range(start, start + size))
        start += size
    return pieces


def lexicon_of(pairs: Sequence[EncodedPair], links: Sequence[Alignment]) -> Table[int]:
    """Return p(target token|source token) by the links, or without them by IBM model 1; `BEGIN` is no word."""
    return count(pairs, links, BEGIN) if links else estimate(pairs, BEGIN)
