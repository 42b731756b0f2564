"""What can be seen of a parallel corpus at once: how large it is, and how many words of dev it does not know."""

from collections import Counter
from dataclasses import dataclass

from features.models.settings import Training
from features.models.training.request import ParallelFiles
from moses_io.streams import check_plain
from moses_io.text import read_parallel, tokens


@dataclass(frozen=True)
class Side:
    """One language of a corpus.

    Attributes:
        words: of the training text.
        vocabulary: different words that are frequent enough for a model of whole words.
        letters: different ones of all words.
        unknown: share of the words of dev that are not in it, 0 … 1.
    """

    words: int
    vocabulary: int
    letters: int
    unknown: float


@dataclass(frozen=True)
class Corpus:
    """A training corpus, beside a dev set; both are counted in sentence pairs."""

    pairs: int
    dev: int
    source: Side
    target: Side


def look_at(train: ParallelFiles, dev: ParallelFiles) -> Corpus:
    """Count the words of both; errors are those of `read_parallel`, and files that cannot be read twice."""
    for path in (train.source, train.target, dev.source, dev.target):
        check_plain(path)
    training, held = (read_parallel(files.source, files.target) for files in (train, dev))
    source, target = (_side([pair[side] for pair in training], [pair[side] for pair in held]) for side in (0, 1))
    return Corpus(pairs=len(training), dev=len(held), source=source, target=target)


def _side(training: list[str], dev: list[str]) -> Side:
    counts = Counter(word for line in training for word in tokens(line))
    known = {word for word, count in counts.items() if count >= Training().frequency}
    words = [word for line in dev for word in tokens(line)]
    unknown = sum(word not in known for word in words) / max(1, len(words))
    letters = len({letter for word in counts for letter in word})
    return Side(words=counts.total(), vocabulary=len(known), letters=letters, unknown=unknown)
