"""Pieces of words, learned and cut by sentencepiece (byte pair encoding) on the tokens of Moses.

A token is cut by itself, so that pieces map back to tokens. Text is taken as it is, without normalization.
"""

import io
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import sentencepiece

from features.progress import note
from moses_io.errors import InputError

Result = TypeVar("Result")

_START = "▁"
"""Sentencepiece's mark of where a token begins."""


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
            self._known[token] = self._processor.encode(_text(token), out_type=str) or [token]
        return self._known[token]

    def cut_at_random(self, token: str, dropout: float) -> list[str]:
        """Return pieces of a token, at least one, of which each merge was left out with probability `dropout`.

        BPE-dropout (Provilkov et al. 2020); see `seeded`.
        """
        return self._processor.encode(
            _text(token), out_type=str, enable_sampling=True, alpha=dropout, nbest_size=-1
        ) or [token]

    @property
    def pieces(self) -> list[str]:
        """All pieces that were learned, and sentencepiece's three marks."""
        return [self._processor.id_to_piece(number) for number in range(len(self._processor))]

    def gives(self, piece: str) -> bool:
        """Tell whether cutting may give this piece: one that was learned, or a run of letters that were not."""
        return self._learned(piece) or not any(map(self._learned, piece.replace(_START, "")))

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


def seeded(function: Callable[[], Result], seed: int) -> Result:
    """Call a function whose random cuts follow from `seed` (31 bits) alone.

    Sentencepiece has one generator a thread, and up to version 0.2.1 reads the seed only when a thread first draws: so
    the function has a thread of its own.
    """
    sentencepiece.set_random_generator_seed(seed)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def _text(token: str) -> str:
    """Put a mark for bytes that are no UTF-8, which sentencepiece does not take."""
    return token.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
