"""Charts of BLEU, and of F1 of words, of both systems, on some of the sentences and of the candidates."""

from collections.abc import Sequence

from moses_io.errors import counted
from rerank.analysis.gains import Frequency
from rerank.analysis.lengths import Bin
from rerank.analysis.margins import QUARTERS, Depth, Quarter
from rerank.report.charts.drawing import KINDS, curves


def lengths(bins: Sequence[Bin]) -> str:
    """Draw BLEU by the length of the source; there is one bin at least."""
    sentences = counted(sum(each.sentences for each in bins), "sentence")
    return curves(
        "BLEU by length of the source",
        f"BLEU of both systems by the words of the source sentence, on {sentences}; below the lengths, sentences.",
        [(each.span, str(each.sentences)) for each in bins],
        {name: [each.scores[name] for each in bins] for name in bins[0].scores},
        ("BLEU", "words of the source"),
    )


def margins(quarters: Sequence[Quarter]) -> str:
    """Draw BLEU by how sure Moses was; there is one quarter at least."""
    sentences = counted(sum(each.sentences for each in quarters), "sentence")
    return curves(
        "BLEU by Moses' own margin",
        "BLEU of both systems where Moses' total put its choice little or far above its next candidate with another "
        f"text, in quarters of the {sentences} that have one.",
        [(name, str(each.sentences)) for name, each in zip(QUARTERS, quarters, strict=False)],
        {name: [each.scores[name] for each in quarters] for name in quarters[0].scores},
        ("BLEU", "margin of Moses' choice; sentences"),
    )


def depth(depths: Sequence[Depth], sentences: int, lists: Sequence[str]) -> str:
    """Draw what is chosen among the first candidates, and the best of them; without references what lies deeper.

    The list was merged of some lists, or of none.
    """
    columns = [(str(each.candidates), "") for each in depths]
    below, of = "first candidates of each sentence", counted(sentences, "sentence")
    joined = f"; candidates that {lists[0]} does not have stand behind its own" if lists else ""
    choices = [each.choice for each in depths if each.choice is not None]
    if not choices:
        return curves(
            "Choices that lie deeper in the list",
            f"How many of the choices for {of} of the list lie deeper than its first 1, 2, 5, … candidates{joined}.",
            columns,
            {"choices that lie deeper": [100 * each.deeper for each in depths]},
            ("% of sentences", below),
        )
    return curves(
        "BLEU by depth of the list",
        f"BLEU of what the weights choose among the first candidates of {of}, and of the best of these{joined}.",
        columns,
        {"chosen": choices, "best": [each.best for each in depths if each.best is not None]},
        ("BLEU", below),
        KINDS[1:],
    )


def frequency(bins: Sequence[Frequency]) -> str:
    """Draw F1 of words by how often the training text has them; there is one bin at least."""
    words = counted(sum(each.words for each in bins), "word")
    return curves(
        "F1 of words by frequency",
        f"How well both systems get words right, by their counts in the training text, on {words} of the references.",
        [(each.name, str(each.words)) for each in bins],
        {name: [each.scores[name] for each in bins] for name in bins[0].scores},
        ("F1 of words", "times in the training text; words of the references"),
    )
