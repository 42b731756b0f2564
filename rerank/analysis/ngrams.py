"""N-grams that a system gets right more often than another one, and less often (compare-mt: Neubig et al. 2019)."""

from collections.abc import Sequence
from dataclasses import dataclass

from features.ngrams import Ngram, Ngrams, count_ngrams
from moses_io.text import tokens, without_missing

MOST = 10


@dataclass(frozen=True)
class Matched:
    """An n-gram, how often it stands where a reference has it, before and after, and the id of an example."""

    ngram: str
    before: int
    after: int
    sentence: int


@dataclass(frozen=True)
class NgramChanges:
    """N-grams whose matches in some sentences rose most, and those whose matches fell most."""

    sentences: int
    won: tuple[Matched, ...]
    lost: tuple[Matched, ...]


def ngram_changes(references: Sequence[Sequence[str]], before: Sequence[str], after: Sequence[str]) -> NgramChanges:
    """Return the n-grams, of 1 to 4 words, with the largest differences in clipped matches, `MOST` of each kind.

    Of equal differences the longer n-gram comes first. An example is the first sentence that has more, or fewer,
    matches after than before.

    Args:
        references: of each set of references n lines.
        before: n lines.
        after: the same, reranked.
    """
    old, new = Ngrams(), Ngrams()
    rises: dict[Ngram, int] = {}
    falls: dict[Ngram, int] = {}
    for sentence, (one, other, *answers) in enumerate(zip(before, after, *references, strict=True)):
        most = Ngrams()
        for answer in without_missing(answers):
            most |= count_ngrams(tokens(answer))
        own, others = (count_ngrams(tokens(line)) & most for line in (one, other))
        old.update(own)
        new.update(others)
        for examples, gained in ((rises, others - own), (falls, own - others)) if own != others else ():
            for ngram in gained:
                examples.setdefault(ngram, sentence)
    return NgramChanges(len(before), won=_first(old, new, rises, 1), lost=_first(old, new, falls, -1))


def _first(old: Ngrams, new: Ngrams, examples: dict[Ngram, int], sign: int) -> tuple[Matched, ...]:
    """Return those whose matches rose most or, with the other sign, fell most."""
    changed = [ngram for ngram in examples if sign * (new[ngram] - old[ngram]) > 0]
    changed.sort(key=lambda ngram: (-abs(new[ngram] - old[ngram]), -len(ngram), ngram))
    return tuple(Matched(" ".join(ngram), old[ngram], new[ngram], examples[ngram]) for ngram in changed[:MOST])
