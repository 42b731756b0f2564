"""A lexicon in the softmax: what the words that a step attends to are known to be translated as."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from features.models.network.source import Source
from features.models.vocabulary import BEGIN, END, PADDING, UNKNOWN

ENTRIES = 20
"""Most probable translations of a word that are kept."""
SMALLEST = -60.0
"""Log-probability below which a slope grows no more: a row of attention may be 0 at the only word that says a word."""
LEAST = 0.005
"""Probability of a translation that is kept, at least."""
LARGEST_SHARE = 0.9999
"""Of a mixture that the lexicon may have: the softmax has to say what the lexicon does not."""
EPSILON = 0.001
"""Added to the probability of every word, so that those which the lexicon lacks can be said (Arthur et al. 2016)."""


class Lexical(NamedTuple):
    """What a lexicon says of the U words that each of N steps may say by it; all other words have the value 0.

    No word has a value twice in a row; `PADDING` fills rows up, with the value 0. What `mixes` is a share of the
    probability of the word, and the softmax has what these leave; else values are added to logits.
    """

    values: Tensor  # (N, U)
    words: Tensor  # (N, U) their numbers
    mixes: bool

    def rows(self, rows: Tensor) -> "Lexical":
        """Return some of the steps, by their numbers."""
        return Lexical(values=self.values[rows], words=self.words[rows], mixes=self.mixes)

    def columns(self, block: slice) -> "Lexical":
        """(U, N) each: some of the steps, as columns."""
        return Lexical(values=self.values[block].t(), words=self.words[block].t(), mixes=self.mixes)


class Mixed(NamedTuple):
    """What a lexicon changes of a loss over N steps."""

    at_words: Tensor  # () sum of what it adds to log p of the wanted words
    mean: Tensor  # () sum of what it adds to the mean of log p of all words, if there is smoothing
    left: Tensor  # (1, N) probability that a word which is wanted came from the softmax
    taken: Tensor  # (U, N) the share of each word in what is wanted, as far as it came from the lexicon
    slope: Tensor  # (U, N) of the loss by the lexicon's shares


class Lexicon(nn.Module):
    """p_lex(w | step j) = sum_i alpha[j, i] lex(w | s_i), in the softmax (Arthur et al. 2016, section 3).

    As a `bias`, the logit of w gets log(p_lex(w) + epsilon) - log(epsilon): that second part, the same for all words,
    is not theirs and changes no probability, but leaves the words that the lexicon lacks as they are. As a `mixture`
    (their linear interpolation), p(w) = lambda p_lex(w) + (1 - lambda m) p_softmax(w) with one learned number lambda,
    the sigmoid of `gate`; they have m = 1, here it is the sum of p_lex, which is less where the table was cut off or a
    word is unknown, and the softmax has the rest. alpha[j] is the row that made
    the context of the prediction, in every wiring; where fine, its mean over the dimensions. `<s>` of the source stands
    for no word and predicts what was linked to none, `</s>` predicts `</s>` with probability 1, an unknown word says
    nothing.

    The table is no weight that is learned. It is stored with the model: for each source word its `ENTRIES` most
    probable translations with at least `LEAST`.
    """

    words: Tensor  # (V of the source, ENTRIES) numbers of target words; `PADDING` where there are fewer
    probabilities: Tensor  # (V of the source, ENTRIES), 0 where there are fewer

    def __init__(self, source_size: int, mixes: bool) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(())) if mixes else None
        self.register_buffer("words", torch.zeros(source_size, ENTRIES, dtype=torch.int32))
        self.register_buffer("probabilities", torch.zeros(source_size, ENTRIES))

    def fill(self, table: Mapping[int, Mapping[int, float]]) -> None:
        """Take lex(target word|source word), by their numbers; `BEGIN` stands for no word."""
        words, probabilities = (torch.zeros_like(each, device="cpu") for each in (self.words, self.probabilities))
        for source, row in {**table, END: {END: 1.0}}.items():
            if source not in (PADDING, UNKNOWN):
                said = [(p, word) for word, p in row.items() if p >= LEAST and word not in (PADDING, BEGIN)]
                kept = sorted(said, key=lambda entry: (-entry[0], entry[1]))[:ENTRIES]
                probabilities[source, : len(kept)] = torch.tensor([probability for probability, _ in kept])
                words[source, : len(kept)] = torch.tensor([word for _, word in kept])
        self.words.copy_(words)
        self.probabilities.copy_(probabilities)

    def look_up(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, U) lex(w | s_i) of sources (B, S), and (B, U) the words w that some s_i has in the table."""
        entries = self.words[source].long().flatten(1)  # (B, S·ENTRIES)
        ascending, order = entries.sort(dim=1)  # (B, S·ENTRIES) both
        is_new = functional.pad(ascending[:, 1:] != ascending[:, :-1], (1, 0))  # (B, S·ENTRIES)
        places = torch.empty_like(order).scatter_(1, order, is_new.cumsum(dim=1))  # (B, S·ENTRIES) of each entry in U
        size = int(places.max()) + 1
        words = entries.new_zeros(len(entries), size).scatter_(1, places, entries)  # (B, U)
        probabilities = self.probabilities[source]  # (B, S, ENTRIES)
        table = probabilities.new_zeros(*source.shape, size)  # (B, S, U)
        return table.scatter_add_(2, places.view_as(probabilities), probabilities), words

    def forward(self, source: Source, rows: Tensor) -> Lexical:
        """Return what is known of the next word at steps that attend by rows (B, S), or (J, B, S) for J · B steps."""
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
            share = torch.sigmoid(self.gate).clamp(max=LARGEST_SHARE)  # ()
            return Lexical(values=share * known, words=words, mixes=True)


def mix(lexical: Lexical, log_probs: Tensor, wanted: Tensor, smoothing: float, size: int) -> Mixed:
    """Mix a lexicon's shares into a softmax over `size` words.

    With the weights y of all words in the loss, -sum_w y(w) log p(w), a(w) = p_softmax's part of p(w) and
    r = sum_w y(w) a(w), its slope by the logits is r p_softmax(w) - y(w) a(w), and by a share r / (1 - sum of shares) -
    y(w) / p(w).

    Args:
        lexical: (U, N) shares.
        log_probs: (U, N) log p of the same words by the softmax.
        wanted: (1, N) words.
        smoothing: share of all words alike in the weights; the rest is of the wanted word.
        size: V.
    """
    log_rest = torch.log1p(-lexical.values.sum(dim=0, keepdim=True))  # (1, N)
    by_softmax = log_probs + log_rest  # (U, N)
    mixed = torch.logaddexp(lexical.values.log(), by_softmax)  # (U, N)
    is_wanted, gained = lexical.words == wanted, mixed - by_softmax  # (U, N) both
    weights = (1 - smoothing) * is_wanted + smoothing / size  # (U, N)
    taken = weights * -torch.expm1(-gained)  # (U, N)
    left = 1 - taken.sum(dim=0, keepdim=True)  # (1, N)
    return Mixed(
        at_words=log_rest.sum() + (gained * is_wanted).sum(),
        mean=log_rest.sum() + gained.sum() / size,
        left=left,
        taken=taken,
        slope=left / log_rest.exp() - weights * torch.exp(-mixed.clamp(min=SMALLEST)),
    )


def mixed_log_probs(lexical: Lexical, places: Tensor, words: Tensor, log_probs: Tensor) -> Tensor:
    """(M,) log p(words[m]) at step places[m] of shares (U, N), from the same by the softmax."""
    at_words = (lexical.values[:, places] * (lexical.words[:, places] == words)).sum(dim=0)  # (M,)
    rest = torch.log1p(-lexical.values.sum(dim=0))  # (N,)
    return torch.logaddexp(at_words.log(), log_probs + rest[places])  # (M,)


def mixed_with_all(lexical: Lexical, log_probs: Tensor) -> Tensor:
    """(N, V) log p of all words, from shares (N, U) and the same by the softmax (N, V), which is changed into it."""
    log_rest = torch.log1p(-lexical.values.sum(dim=1, keepdim=True))  # (N, 1)
    left = log_probs.add_(log_rest)  # (N, V)
    known = torch.logaddexp(lexical.values.log(), left.gather(1, lexical.words))  # (N, U)
    # Rows are filled up with `PADDING`, whose share is 0: each of its entries writes what stands there.
    return left.scatter_(1, lexical.words, known)  # (N, V)
