"""Word alignment of a corpus as a network sees it: links between its own tokens, and the lexicon that they give."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from features.models.batches import EncodedPair
from features.models.device import on_device
from features.models.settings import Architecture, rows_ahead
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


class RowLinks(NamedTuple):
    """Links of a batch, as `guidance` takes them."""

    places: Tensor  # (3, L) row of attention, sentence of the batch, and source position of each
    shares: Tensor  # (L,) one by the number of links of the same target token


def row_links(links: Sequence[Alignment], architecture: Architecture, device: torch.device) -> RowLinks:
    """Return the links of the sentences of a batch at the rows of their target tokens; see `rows_ahead`."""
    ahead = rows_ahead(architecture)
    each = [(j, number, i) for number, alignment in enumerate(links) for i, j in sorted(alignment)]
    counts = Counter((j, number) for j, number, _ in each)
    places = on_device([(j + ahead, number, i + 1) for j, number, i in each], device, torch.long)
    shares = on_device([1 / counts[j, number] for j, number, _ in each], device)
    return RowLinks(places=places.view(-1, 3).t(), shares=shares)


def lexicon_of(pairs: Sequence[EncodedPair], links: Sequence[Alignment]) -> Table[int]:
    """Return p(target token|source token) by the links, or without them by IBM model 1; `BEGIN` is no word."""
    return count(pairs, links, BEGIN) if links else estimate(pairs, BEGIN)
