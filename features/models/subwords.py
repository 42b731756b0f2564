"""Pieces of words, learned and cut by sentencepiece (byte pair encoding) on the tokens of Moses.

A token is cut by itself, so that pieces map back to tokens. Text is taken as it is, without normalization.
"""

import io
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import sentencepiece

from features.progress import note
from moses_io.errors import InputError

MOST_KNOWN = 100_000
"""Tokens whose pieces are remembered."""

_START = "▁"
"""Sentencepiece's mark of where a token begins."""


@dataclass(frozen=True)
class Dropout:
    """Merges that are left out by chance.

    Attributes:
        share: how likely each of them is left out, 0 … 1.
        rng: what decides.
    """

    share: float
    rng: random.Random


class Subwords:
    """A trained sentencepiece model; `model` is its file's content."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise InputError("damaged, or not a sentencepiece model") from None
        self._known: dict[str, list[str]] = {}

    def cut(self, token: str) -> list[str]:
        """Return the pieces of a token, at least one."""
        if token not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[token] = self._processor.encode(_text(token), out_type=str) or [token]
        return self._known[token]

    def cut_at_random(self, token: str, dropout: Dropout) -> list[str]:
        """Return pieces of a token, at least one: at each step each merge is left out by chance, the first one is done.

        BPE-dropout (Provilkov et al. 2020, algorithm 1); with a share of 0 the pieces of `cut`. Sentencepiece's own
        cuts by chance differ from process to process (0.2.3), whatever the seed.
        """
        text = _text(token).rstrip(_START)
        if not text:
            return self.cut(token)
        ranks, share, chance = self._ranks, dropout.share, dropout.rng.random
        parts = [_START, *text]
        while True:
            best, at = len(ranks), -1
            for place in range(len(parts) - 1):
                rank = ranks.get(parts[place] + parts[place + 1], best)
                if rank < best and chance() >= share:
                    best, at = rank, place
            if at < 0:
                return list(self._runs(parts))
            parts[at : at + 2] = [parts[at] + parts[at + 1]]

    @property
    def pieces(self) -> list[str]:
        """All pieces that were learned, and sentencepiece's three marks."""
        return [self._processor.id_to_piece(number) for number in range(len(self._processor))]

    def gives(self, piece: str) -> bool:
        """Tell whether cutting may give this piece: one that was learned, or a run of letters that were not."""
        return self._learned(piece) or not any(map(self._learned, piece.replace(_START, "")))

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """When each piece was learned, the first one first."""
        return {piece: number for number, piece in enumerate(self.pieces)}

    def _runs(self, parts: Sequence[str]) -> Iterator[str]:
        """Join letters beside each other that were not learned, as sentencepiece does."""
        for learned, run in groupby(parts, self._ranks.__contains__):
            letters = list(run)
            yield from letters if learned else ["".join(letters)]

    def _learned(self, piece: str) -> bool:
        return self._processor.piece_to_id(_text(piece)) != self._processor.unk_id()


def joined(pieces: Sequence[str]) -> list[str]:
    """Return the tokens that pieces are of: each begins with sentencepiece's mark."""
    return [token for token in "".join(pieces).split(_START) if token]


def learn(sentences: Sequence[Sequence[str]], pieces: int) -> Subwords:
    """Learn `pieces` pieces, the single letters and sentencepiece's three marks among them, or all that there are."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(_text(" ".join(tokens)) for tokens in sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=pieces,
            character_coverage=1.0,
            normalization_rule_name="identity",
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = re.sub(r"^\w+: .*\] ", "", str(error))
        most = re.search(r"too high .*<= (\d+)", reason)
        if not most:
            raise InputError(f"setting 'bpe': sentencepiece cannot learn {pieces} pieces here: {reason}") from None
        note(f"bpe: the text has {most[1]} pieces, not {pieces}")
        return learn(sentences, int(most[1]))
    return Subwords(model.getvalue())


def _text(token: str) -> str:
    """Put a mark for bytes that are no UTF-8, which sentencepiece does not take."""
    return token.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
