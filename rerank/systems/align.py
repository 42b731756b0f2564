"""Forced alignment: a file of links, and of matrices if wanted, from files of parallel text."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from features.models.alignment import Aligner
from features.models.scoring.alone import SentencePair
from features.progress import note, progress_bar, show
from moses_io.alignment import format_links
from moses_io.gold import Gold, LinkCounts
from moses_io.streams import STANDARD, open_output
from moses_io.text import check_markup, encode, parallel_lines, tokens
from rerank import __version__
from rerank.systems.soft import open_soft

STRETCH = 4096
"""Sentence pairs that are held at a time, at most."""
CELLS = 2**25
"""Numbers of their matrices, at most, unless a single pair has more."""


@dataclass(frozen=True)
class AlignmentFiles:
    """What is aligned, one tokenized sentence a line, and where it goes."""

    source: str
    target: str
    output: str  # links, a line a pair
    soft: str | None = None  # matrices; see `open_soft`


def align(aligner: Aligner, files: AlignmentFiles, gold: Gold | None) -> None:
    """Write the links of each pair, and measure them if there is a gold alignment.

    What is told of them goes to stdout if the links go to a file, else to stderr.

    Raises:
        InputError: files of different lengths, or that do not fit the gold alignment; see `Aligner.align`.
    """
    total, number = LinkCounts(), 0
    with ExitStack() as stack:
        output = stack.enter_context(open_output(files.output))
        write = stack.enter_context(open_soft(files.soft)) if files.soft else None
        bar = stack.enter_context(progress_bar("align", None))
        for pairs in stretches(_pairs(files)):
            for pair, aligned in zip(pairs, aligner.align(pairs), strict=True):
                output.write(encode(format_links(aligned.links) + "\n"))
                if write:
                    write(pair, aligned.attention)
                if gold:
                    total = total.plus(gold.counts(number, aligned.links, *map(len, pair)))
                number += 1
            bar.advance(len(pairs), "sentence pairs")
        if gold:
            gold.check_end(number)
    signature = f"signature: {aligner.signature}|version:{__version__}"
    if gold and files.output != STANDARD:
        show([*table(total), signature])
        return
    for line in [*(table(total) if gold else []), signature]:
        note(line)


def stretches(pairs: Iterable[SentencePair]) -> Iterator[list[SentencePair]]:
    """Cut pairs into lists that the memory holds together with their matrices."""
    stretch: list[SentencePair] = []
    cells = 0
    for pair in pairs:
        cells += (len(pair[0]) + 2) * len(pair[1])
        if stretch and (len(stretch) == STRETCH or cells > CELLS):
            yield stretch
            stretch, cells = [], (len(pair[0]) + 2) * len(pair[1])
        stretch.append(pair)
    if stretch:
        yield stretch


def table(counts: LinkCounts) -> list[str]:
    """Return the lines of a table of alignment error rate and what it is made of."""
    rates = {"AER": counts.error_rate, "precision": counts.precision, "recall": counts.recall}
    numbers = {"sentences": counts.sentences, "links": counts.links, "sure": counts.sure, "possible": counts.possible}
    cells = {name: f"{rate:.4f}" for name, rate in rates.items()}
    cells |= {name: str(count) for name, count in numbers.items()}
    widths = [max(len(name), len(cell)) for name, cell in cells.items()]
    return [_line(list(cells), widths), _line(list(cells.values()), widths)]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def _pairs(files: AlignmentFiles) -> Iterator[SentencePair]:
    for number, (source, target) in enumerate(parallel_lines(files.source, files.target), start=1):
        check_markup(files.source, [source], number)
        yield tuple(tokens(source)), tuple(tokens(target))
