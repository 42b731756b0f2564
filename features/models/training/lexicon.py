"""Lexicons p(target token|source token) of a training corpus, over the tokens of a network."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from features.models.training.learner import EncodedCorpus, Learner
from features.models.vocabulary import BEGIN, Vocabulary
from features.ragged import Ragged
from features.sentences import TokenPairs
from features.translation_table import Translations, count, estimate, relative

MAX_LINKS = 2**26
"""Maximum possible links between tokens for IBM model 1, which needs about 30 bytes of memory for each."""


def counted_lexicon(pairs: TokenPairs, links: Ragged, learner: Learner) -> Translations:
    """Return p(target token|source token) by relative frequency of links between words.

    The links of a word are links of all its subwords. The token `BEGIN` is used as the empty word.

    Args:
        pairs: token pairs in the direction of the network.
        links: encoded links of each pair.
        learner: the network's vocabularies.
    """
    words, target_words = pairs.source.words, pairs.target.words
    counts = count(pairs.source.numbers, pairs.target.numbers, links, (len(words), len(target_words)))
    left, right = _subwords(learner.source, words), _subwords(learner.target, target_words)
    # (V_s, words + 1) @ (words + 1, target words + 1) @ (target words + 1, V_t)
    return relative(left.T.tocsr() @ counts @ right)


def _subwords(vocabulary: Vocabulary, words: Sequence[str]) -> csr_array:
    """Return how often each word has each token (words + 1, V). The last row is the empty word."""
    rows = Ragged.of([*vocabulary.encode_each(words), [BEGIN]])
    return csr_array((np.ones_like(rows.values, np.int64), rows.values, rows.ends), (len(rows), len(vocabulary)))


def estimated_lexicon(corpus: EncodedCorpus, count: int) -> Translations:
    """Return p(target token|source token) of IBM model 1, with the token `BEGIN` as the empty word.

    It is estimated from the first `count` pairs or, if they have more than `MAX_LINKS` possible links, from evenly
    spaced ones.
    """
    possible = (corpus.source.lengths[:count] + 1) * corpus.target.lengths[:count]  # (count,)
    rows = np.arange(0, count, math.ceil(int(possible.sum()) / MAX_LINKS))
    return estimate(corpus.source.take(rows), corpus.target.take(rows), BEGIN)
