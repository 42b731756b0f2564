"""Words for what a model says without knowing it: `<unk>` becomes a translation of what it attended to, or a copy."""

from collections.abc import Sequence
from pathlib import Path

from features.arrays import AttentionRows
from features.feature import Sentence
from features.models.alignment.rows import word_rows
from features.models.folder import Model
from features.models.scoring.tree import score_tree
from features.models.vocabulary import SPECIAL, UNKNOWN
from features.translation_table import NULL, read_table
from moses_io.errors import InputError
from moses_io.streams import check_plain, digest

KEEP, COPY = "keep", "copy"


class Replacement:
    """What `<unk>` becomes (Luong et al. 2015, section 4; Yang et al. 2017, 5.2, after Jean et al. 2015).

    The source word with most attention at that step, sentinels left out, the first of equals; or what this word is
    most often translated as, by a table. The row of a token is that of
    `word_rows`; of several models it is the first one's.

    Args:
        how: `keep` for `<unk>` itself, `copy` for the source word, or Moses' `lex.f2e`, in which the most probable
            translation is taken, and the source word where the table lacks it or has it translated as no word.

    Raises:
        InputError: the table cannot be read, or is a `lex.e2f`, which predicts source words.
    """

    def __init__(self, how: str) -> None:
        self._keeps, self._translations = how == KEEP, dict[str, str]()
        self.signature = how
        if how in (KEEP, COPY):
            return
        if not how:
            raise InputError("unknown words: expected copy, keep or a file")
        if "e2f" in Path(how).name:
            raise InputError(f"{how}: predicts source words; expected lex.f2e, which predicts their translations")
        check_plain(how)
        for word, row in read_table(how).items():
            best = max(row, key=lambda translation: row[translation])
            if best != NULL:
                self._translations[word] = best
        self.signature = f"lex|sha256:{digest(Path(how))}"

    def replace(
        self, models: Sequence[Model], sources: Sequence[tuple[str, ...]], said: Sequence[Sequence[Sequence[str]]]
    ) -> list[list[tuple[str, ...]]]:
        """Return what models said of each source, with words for `<unk>`."""
        texts = [[tuple(text) for text in of_source] for of_source in said]
        if self._keeps:
            return texts
        places = [(number, place) for number, each in enumerate(texts) for place in range(len(each))]
        unknown = [(number, place) for number, place in places if SPECIAL[UNKNOWN] in texts[number][place]]
        if unknown:
            sentences = [
                Sentence(each, sources[number], (texts[number][place],)) for each, (number, place) in enumerate(unknown)
            ]
            attention = score_tree(models, sentences, [], attention=True).attention
            for (number, place), rows in zip(unknown, attention, strict=True):
                source, text = sources[number], texts[number][place]
                texts[number][place] = self._replaced(source, text, word_rows(models[0], source, text, rows))
        return texts

    def _replaced(self, source: tuple[str, ...], text: tuple[str, ...], rows: AttentionRows) -> tuple[str, ...]:
        """Return a text with words for `<unk>`, by (J, I) attention."""
        best = [source[place] for place in rows.argmax(axis=1)]
        unknown = SPECIAL[UNKNOWN]
        return tuple(
            self._translations.get(attended, attended) if token == unknown else token
            for token, attended in zip(text, best, strict=True)
        )
