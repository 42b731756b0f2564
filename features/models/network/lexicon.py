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
LEAST = 0.005
"""Probability of a translation that is kept, at least."""
EPSILON = 0.001
"""Added to the probability of every word, so that those which the lexicon lacks can be said (Arthur et al. 2016)."""


class Lexical(NamedTuple):
    """What a lexicon says of the U words that each of N steps may say by it; all other words have the value 0.

    No word has a value twice in a row; `PADDING` fills rows up, with the value 0.
    """

    values: Tensor  # (N, U)
    words: Tensor  # (N, U) their numbers


class Lexicon(nn.Module):
    """p_lex(w | step j) = sum_i alpha[j, i] lex(w | s_i), as a bias of the softmax (Arthur et al. 2016, eq. 9-10).

    The logit of w gets log(p_lex(w) + epsilon) - log(epsilon): that second part, the same for all words, is not theirs
    and changes no probability, but leaves the words that the lexicon lacks as they are. alpha[j] is the row that made
    the context of the prediction, in every wiring; where fine, its mean over the dimensions. `<s>` of the source stands
    for no word and predicts what was linked to none, `</s>` predicts `</s>` with probability 1, an unknown word says
    nothing.

    The table is no weight that is learned. It is stored with the model: for each source word its `ENTRIES` most
    probable translations with at least `LEAST`.
    """

    words: Tensor  # (V of the source, ENTRIES) numbers of target words; `PADDING` where there are fewer
    probabilities: Tensor  # (V of the source, ENTRIES), 0 where there are fewer

    def __init__(self, source_size: int) -> None:
        super().__init__()
        self.register_buffer("words", torch.zeros(source_size, ENTRIES, dtype=torch.int32))
        self.register_buffer("probabilities", torch.zeros(source_size, ENTRIES))

    def fill(self, table: Mapping[int, Mapping[int, float]]) -> None:
        """Take lex(target word|source word), by their numbers; `BEGIN` stands for no word."""
        self.words.zero_()
        self.probabilities.zero_()
        for source, row in {**table, END: {END: 1.0}}.items():
            if source not in (PADDING, UNKNOWN):
                said = [(p, word) for word, p in row.items() if p >= LEAST and word not in (PADDING, BEGIN)]
                kept = sorted(said, key=lambda entry: (-entry[0], entry[1]))[:ENTRIES]
                self.probabilities[source, : len(kept)] = torch.tensor([probability for probability, _ in kept])
                self.words[source, : len(kept)] = torch.tensor([word for _, word in kept])

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
            return Lexical(values=torch.log1p(known / EPSILON), words=words)
