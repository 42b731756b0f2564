"""Word alignments of a large corpus: encoded links (source index · 2^32 + target index) as rows of one array."""

from collections.abc import Sequence

import numpy as np

from features.arrays import Integers
from features.ragged import Ragged
from moses_io.alignment import Alignment, Alignments

WIDTH = 2**32
"""Factor of the source index in an encoded link. Indices are smaller than 2^31."""


def encoded_links(links: Sequence[Alignment] | Ragged) -> Ragged:
    """Return the encoded links of each pair as one row for each pair: source index · `WIDTH` + target index."""
    if isinstance(links, Ragged):
        return links
    known = links if isinstance(links, Alignments) else Alignments(links)
    distinct = np.array(known.distinct, np.int64).reshape(-1, 2) @ (WIDTH, 1)  # (D,)
    return Ragged(distinct[np.asarray(known.numbers)], np.asarray(known.ends, np.int64))


NO_LINKS = encoded_links(())
"""Links of a corpus without word alignment: no rows."""


def swapped(links: Ragged) -> Ragged:
    """Return encoded links with source and target swapped."""
    return Ragged(links.values % WIDTH * WIDTH + links.values // WIDTH, links.ends)


def word_indices(links: Ragged, source_ends: Integers, target_ends: Integers) -> tuple[Integers, Integers]:
    """Return the indices (L,) of both words of each link among the running words of the corpus.

    Args:
        links: encoded links of B pairs, L in all.
        source_ends: (B + 1,) ends of the source sentences, as in `Ragged`.
        target_ends: (B + 1,) ends of the target sentences.
    """
    source, target = np.divmod(links.values, WIDTH)  # (L,) both
    return source + np.repeat(source_ends[:-1], links.lengths), target + np.repeat(target_ends[:-1], links.lengths)
