"""Encoding of a training corpus: words as ids of their subwords, and links between words as links between subwords."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from features.arrays import Integers
from features.links import NO_LINKS, WIDTH, swapped, word_indices
from features.models.batches import bucketed
from features.models.settings import Training
from features.models.training.learner import EncodedCorpus, Learner
from features.models.vocabulary import BpeDropout, flat
from features.ragged import Ragged, concatenated, ends_of
from features.sentences import Sentences, TokenPair, TokenPairs

BLOCK = 2**14
"""Number of pairs that are encoded together. Temporary arrays of a whole corpus would take more memory than it."""


@dataclass(frozen=True)
class Segmentation:
    """Sentences segmented into subwords.

    Attributes:
        subwords: subword ids of each running word.
        ends: (B + 1,) ends of the sentences among the running words, as in `Ragged`.
    """

    subwords: Ragged
    ends: Integers

    @property
    def sentences(self) -> Ragged:
        """Subword ids of each sentence."""
        return Ragged(self.subwords.values, self.subwords.ends[self.ends])


def planned_updates(
    settings: Training, corpus: EncodedCorpus, pairs: Sequence[TokenPair], learners: Sequence[Learner]
) -> int:
    """Return the number of updates in a training on a corpus.

    With BPE-dropout and batches measured in tokens, the number depends on the random segmentation. It is then computed
    from one random segmentation of the pairs.
    """
    if settings.bpe_dropout and settings.batch_tokens:
        corpus = encode(pairs, learners, dropout=BpeDropout(settings.bpe_dropout, random.Random(settings.seed)))[0]
    if settings.batch_tokens:
        batches = len(bucketed(corpus.lengths, settings.batch_size, settings.batch_tokens))
    else:
        batches = math.ceil(len(corpus.lengths) / settings.batch_size)
    planned = settings.epochs * math.ceil(batches / settings.gradient_accumulation)
    return min(planned, settings.updates) if settings.updates else planned


def encode(
    pairs: Sequence[TokenPair],
    learners: Sequence[Learner],
    links: Ragged = NO_LINKS,
    dropout: BpeDropout | None = None,
) -> list[EncodedCorpus]:
    """Encode token pairs, and the encoded links of each pair if they are known, for each learner.

    The second learner reads the same pairs in the opposite direction. The targets of a right-to-left model are
    reversed. With `dropout`, words are segmented at random (`Vocabulary.encode`).
    """
    corpus, vocabularies = TokenPairs.of(pairs), (learners[0].source, learners[0].target)
    sides = (corpus.source, corpus.target)
    tables = (
        ()
        if dropout
        else [Ragged.of(each.encode_each(side.words)) for each, side in zip(vocabularies, sides, strict=True)]
    )
    parts: list[list[EncodedCorpus]] = []
    for start in range(0, max(1, len(corpus)), BLOCK):
        block = slice(start, start + BLOCK)
        if dropout:
            source, target = _segment_randomly(learners[0], corpus[block], dropout)
        else:
            source, target = (_segment(side[block], table) for side, table in zip(sides, tables, strict=True))
        known = links.part(block)
        parts.append([_encoded(source, target, known, learners[0].config.right_to_left)])
        if len(learners) > 1:
            parts[-1].append(_encoded(target, source, swapped(known), learners[1].config.right_to_left))
    return [EncodedCorpus.joined(each) for each in zip(*parts, strict=True)]


def _segment(sentences: Sentences, table: Ragged) -> Segmentation:
    """Segment sentences. `table` has the subword ids of each distinct word."""
    return Segmentation(table.take(sentences.numbers.values), sentences.numbers.ends)


def _segment_randomly(learner: Learner, pairs: TokenPairs, dropout: BpeDropout) -> tuple[Segmentation, Segmentation]:
    encoded = [
        (learner.source.encode_each(left, dropout), learner.target.encode_each(right, dropout)) for left, right in pairs
    ]
    source, target = (Ragged.of(flat(each[side] for each in encoded)) for side in (0, 1))
    return Segmentation(source, pairs.source.numbers.ends), Segmentation(target, pairs.target.numbers.ends)


def _encoded(source: Segmentation, target: Segmentation, links: Ragged, right_to_left: bool) -> EncodedCorpus:
    ids = target.sentences
    return EncodedCorpus(
        source=source.sentences,
        target=ids.reversed() if right_to_left else ids,
        target_lengths=np.diff(target.ends) + 1,
        links=links_of_subwords(links, source, target, right_to_left) if links else links,
    )


def links_of_subwords(links: Ragged, source: Segmentation, target: Segmentation, right_to_left: bool) -> Ragged:
    """Return encoded links between all subwords of linked words.

    Args:
        links: encoded links between words, L in all.
        source: subwords of the source sentences.
        target: subwords of the target sentences, from left to right.
        right_to_left: whether the target is read from its last subword to its first.
    """
    left, right = word_indices(links, source.ends, target.ends)  # (L,) index of both words of a link
    width = target.subwords.lengths[right]  # (L,)
    sizes = source.subwords.lengths[left] * width  # (L,) number of links between subwords
    each, link = concatenated(np.zeros_like(sizes), sizes), np.repeat(np.arange(len(sizes)), sizes)  # (K,) both
    row, column = np.divmod(each, width[link])  # (K,) both
    pair = np.repeat(np.arange(len(links)), links.lengths)[link]  # (K,)
    i = source.subwords.ends[left][link] + row - source.sentences.ends[pair]  # (K,)
    if right_to_left:
        j = target.sentences.ends[pair + 1] - 1 - target.subwords.ends[right][link] - column  # (K,)
    else:
        j = target.subwords.ends[right][link] + column - target.sentences.ends[pair]  # (K,)
    return Ragged(i * WIDTH + j, ends_of(sizes)[links.ends])
