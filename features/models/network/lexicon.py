"""A lexicon in the softmax: translation probabilities of the source words that a step attends to."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from features.models.network.source import Source
from features.models.vocabulary import BEGIN, END, PADDING, UNKNOWN
from features.translation_table import Translations

ENTRIES = 20
"""Maximum number of translations per source word. The most probable ones are kept."""
MIN_LOG_PROB = -60.0
"""Lower bound of log-probabilities in the gradient of a mixture, which keeps the gradient finite.

Without the bound it could overflow: attention may be 0 at the only source word with the right translation.
"""
MIN_PROBABILITY = 0.005
"""Minimum probability of a translation that is kept."""
MAX_WEIGHT = 0.9999
"""Maximum weight of the lexicon in a mixture: the softmax must still predict words that the lexicon lacks."""
EPSILON = 0.001
"""Added to the probability of every word, so that words missing in the lexicon remain possible (Arthur et al. 2016)."""


class Lexical(NamedTuple):
    """Lexicon values for the next word at N steps, with U words for each step. All other words have the value 0.

    If `mixes`, a value is the lexicon's part of the word's probability, and the softmax gets the rest of the
    probability mass. Otherwise values are added to the logits. The words of a step are distinct, except that `PADDING`
    fills up shorter rows, with the value 0.
    """

    values: Tensor  # (N, U)
    words: Tensor  # (N, U) indices in the target vocabulary
    mixes: bool

    def rows(self, rows: Tensor) -> "Lexical":
        """Return the values of some steps, given by their indices."""
        return Lexical(values=self.values[rows], words=self.words[rows], mixes=self.mixes)

    def columns(self, block: slice) -> "Lexical":
        """Return the values of a block of steps as columns, (U, N) each."""
        return Lexical(values=self.values[block].t(), words=self.words[block].t(), mixes=self.mixes)


class Mixed(NamedTuple):
    """Effect of a lexicon mixture on the loss over N steps."""

    at_words: Tensor  # () sum of the changes to log p of the target words
    mean: Tensor  # () sum of the changes to the mean of log p over all words, for label smoothing
    softmax_fraction: Tensor  # (1, N) fraction of the target probability that comes from the softmax (r in `mix`)
    lexicon_fractions: Tensor  # (U, N) fractions that come from the lexicon, by word (y(w) (1 - a(w)) in `mix`)
    slope: Tensor  # (U, N) gradient of the loss with respect to the lexicon values


class Lexicon(nn.Module):
    """A lexicon in the softmax: p_lex(w | step j) = sum_i alpha[j, i] lex(w | s_i) (Arthur et al. 2016, section 3).

    * `bias`: log(p_lex(w) + epsilon) - log(epsilon) is added to the logit of w. The second term is not in the paper. It
      is the same for all words and changes no probability, but it leaves the logits of words without an entry
      unchanged.
    * `mixture` (linear interpolation in the paper): p(w) = lambda p_lex(w) + (1 - lambda m) p_softmax(w), with one
      learned value lambda, the sigmoid of `gate`. In the paper m = 1. Here m is the sum of p_lex, which is less than 1
      if the table was truncated or a word is unknown, and the softmax gets the rest.

    alpha[j] is the attention row from which the context of the prediction was made, in every decoder. With granularity
    `fine` it is the mean over the dimensions. `<s>` of the source acts as the empty word, which predicts target words
    without links. `</s>` predicts `</s>` with probability 1. Unknown words predict nothing.

    The table is not trained. It is stored with the model and has, for each source word, its `ENTRIES` most probable
    translations with a probability of at least `MIN_PROBABILITY`.
    """

    words: Tensor  # (source vocabulary size, ENTRIES) indices of target words, filled up with `PADDING`
    probabilities: Tensor  # (source vocabulary size, ENTRIES), filled up with 0

    def __init__(self, source_size: int, mixes: bool) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(())) if mixes else None
        self.register_buffer("words", torch.zeros(source_size, ENTRIES, dtype=torch.int32))
        self.register_buffer("probabilities", torch.zeros(source_size, ENTRIES))

    def fill(self, table: Translations) -> None:
        """Fill the table with lex(target word|source word), given by vocabulary indices. `BEGIN` is the empty word."""
        possible = ~np.isin(table.conditions, (PADDING, UNKNOWN, END)) & ~np.isin(table.words, (PADDING, BEGIN))
        selected = np.flatnonzero(possible & (table.probabilities >= MIN_PROBABILITY))  # (E,)
        sources, targets, values = (each[selected] for each in table)  # (E,) each
        order = np.lexsort((targets, -values, sources))
        sources, targets, values = sources[order], targets[order], values[order]  # (E,) each
        ranks = np.arange(len(sources)) - np.searchsorted(sources, sources)  # (E,) rank among the entries of the source
        best = ranks < ENTRIES
        # (source vocabulary size, ENTRIES) both
        words, probabilities = np.zeros(self.words.shape, np.int32), np.zeros(self.words.shape)
        words[sources[best], ranks[best]], probabilities[sources[best], ranks[best]] = targets[best], values[best]
        words[END, 0], probabilities[END, 0] = END, 1.0
        self.words.copy_(torch.from_numpy(words))
        self.probabilities.copy_(torch.from_numpy(probabilities))

    def entries(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return the lexicon entries of source sentences (B, S).

        Returns:
            (B, S, U) lex(w | s_i), and (B, U) the words w: every translation of some s_i, filled up with `PADDING`.
        """
        entries = self.words[source].long().flatten(1)  # (B, S·ENTRIES)
        # Number the distinct words of each sentence: sort them, then count the positions where a new word begins.
        ascending, order = entries.sort(dim=1)  # (B, S·ENTRIES) both
        is_new = functional.pad(ascending[:, 1:] != ascending[:, :-1], (1, 0))  # (B, S·ENTRIES)
        columns = torch.empty_like(order).scatter_(1, order, is_new.cumsum(dim=1))  # (B, S·ENTRIES) index of each in U
        size = int(columns.max()) + 1
        words = entries.new_zeros(len(entries), size).scatter_(1, columns, entries)  # (B, U)
        probabilities = self.probabilities[source]  # (B, S, ENTRIES)
        table = probabilities.new_zeros(*source.shape, size)  # (B, S, U)
        return table.scatter_add_(2, columns.view_as(probabilities), probabilities), words  # (B, S, U), (B, U)

    def forward(self, source: Source, rows: Tensor) -> Lexical:
        """Return lexicon values at steps with attention rows (B, S), or (J, B, S) for J · B steps."""
        table, words = source.lexicon
        with torch.autocast(rows.device.type, enabled=False):
            attended = rows.to(table.dtype)
            if rows.dim() == 2:
                known = source.summed(attended, table)  # (B, U)
            else:
                known = torch.bmm(attended.transpose(0, 1), table).transpose(0, 1).flatten(0, 1)  # (J·B, U)
                words = words.repeat(len(rows), 1)  # (J·B, U)
            if self.gate is None:
                return Lexical(values=torch.log1p(known / EPSILON), words=words, mixes=False)
            weight = torch.sigmoid(self.gate).clamp(max=MAX_WEIGHT)  # ()
            return Lexical(values=weight * known, words=words, mixes=True)


def mix(lexical: Lexical, log_probs: Tensor, wanted: Tensor, smoothing: float, size: int) -> Mixed:
    """Mix lexicon values into a softmax over `size` words.

    The loss is -sum_w y(w) log p(w), with weights y of all words. Let a(w) be the fraction of p(w) that comes from the
    softmax, and r = sum_w y(w) a(w). The gradient with respect to the logits is r p_softmax(w) - y(w) a(w). The
    gradient with respect to a lexicon value is r / (1 - sum of values) - y(w) / p(w).

    Args:
        lexical: (U, N) lexicon values.
        log_probs: (U, N) log p of the same words by the softmax.
        wanted: (1, N) target words.
        smoothing: probability that label smoothing spreads evenly over all words. The target word has the rest.
        size: V.
    """
    log_rest = torch.log1p(-lexical.values.sum(dim=0, keepdim=True))  # (1, N)
    by_softmax = log_probs + log_rest  # (U, N)
    mixed = torch.logaddexp(lexical.values.log(), by_softmax)  # (U, N)
    is_wanted, gain = lexical.words == wanted, mixed - by_softmax  # (U, N) both
    weights = (1 - smoothing) * is_wanted + smoothing / size  # (U, N)
    by_lexicon = weights * -torch.expm1(-gain)  # (U, N)
    softmax_fraction = 1 - by_lexicon.sum(dim=0, keepdim=True)  # (1, N)
    return Mixed(
        at_words=log_rest.sum() + (gain * is_wanted).sum(),
        mean=log_rest.sum() + gain.sum() / size,
        softmax_fraction=softmax_fraction,
        lexicon_fractions=by_lexicon,
        slope=softmax_fraction / log_rest.exp() - weights * torch.exp(-mixed.clamp(min=MIN_LOG_PROB)),
    )


def mixed_log_probs(lexical: Lexical, steps: Tensor, words: Tensor, log_probs: Tensor) -> Tensor:
    """Return log p(words[m]) of the mixture at step steps[m], (M,).

    `lexical` is (U, N). `log_probs` (M,) are the softmax's values for the same words.
    """
    at_words = (lexical.values[:, steps] * (lexical.words[:, steps] == words)).sum(dim=0)  # (M,)
    rest = torch.log1p(-lexical.values.sum(dim=0))  # (N,)
    return torch.logaddexp(at_words.log(), log_probs + rest[steps])  # (M,)


def mixed_with_all(lexical: Lexical, log_probs: Tensor) -> Tensor:
    """Return log p of all words, (N, V), from lexicon values (N, U) and the softmax's `log_probs` (N, V).

    `log_probs` is changed in place and returned.
    """
    log_rest = torch.log1p(-lexical.values.sum(dim=1, keepdim=True))  # (N, 1)
    mixed = log_probs.add_(log_rest)  # (N, V)
    known = torch.logaddexp(lexical.values.log(), mixed.gather(1, lexical.words))  # (N, U)
    # `PADDING` may occur several times in a row. Its value is 0, so all its entries write the same log p.
    return mixed.scatter_(1, lexical.words, known)  # (N, V)
