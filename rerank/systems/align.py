"""Forced alignment: write links, and optionally soft alignments, for files of parallel text."""

from collections.abc import Iterator
from contextlib import ExitStack

from features.models.alignment import Aligner
from features.models.scoring.pairs import SentencePair
from features.progress import aligned, log, progress_bar, show
from moses_io.alignment import format_links
from moses_io.files.streams import STANDARD, open_output
from moses_io.files.text import check_markup, encode, parallel_lines, tokens
from moses_io.gold import Gold, LinkCounts
from rerank import __version__
from rerank.systems.attention import batched, open_soft


def align(aligner: Aligner, source: str, target: str, output: str, soft: str | None, gold: Gold | None) -> None:
    """Write the links of each sentence pair. With a gold alignment, also report the alignment error rate.

    The report goes to stdout if the links go to a file, else to stderr.

    Args:
        aligner: one or several models.
        source: file with one tokenized sentence per line.
        target: file with the translations, line by line.
        output: file of links to write, one line per pair.
        soft: file of matrices to write, see `open_soft`.
        gold: correct links.

    Raises:
        InputError: the files have different lengths, or do not fit the gold alignment. See also `Aligner.align`.
    """
    total, number = LinkCounts(), 0
    with ExitStack() as stack:
        links = stack.enter_context(open_output(output))
        write = stack.enter_context(open_soft(soft)) if soft else None
        bar = stack.enter_context(progress_bar("align", None))
        for pairs in batched(_pairs(source, target)):
            for pair, found in zip(pairs, aligner.align(pairs), strict=True):
                links.write(encode(format_links(found.links) + "\n"))
                if write:
                    write(pair, found.attention)
                if gold:
                    total = total.plus(gold.counts(number, found.links, *map(len, pair)))
                number += 1
            bar.advance(len(pairs), "sentence pairs")
        if gold:
            gold.check_end(number)
    signature = f"signature: {aligner.signature}|version:{__version__}"
    if gold and output != STANDARD:
        show([*table(total), signature])
        return
    for line in [*(table(total) if gold else []), signature]:
        log.info(line)


def table(counts: LinkCounts) -> list[str]:
    """Return the lines of a table with alignment error rate, precision, recall and counts."""
    rates = {"AER": counts.error_rate, "precision": counts.precision, "recall": counts.recall}
    numbers = {"sentences": counts.sentences, "links": counts.links, "sure": counts.sure, "possible": counts.possible}
    cells = {name: f"{rate:.4f}" for name, rate in rates.items()}
    cells |= {name: str(count) for name, count in numbers.items()}
    return aligned([list(cells), list(cells.values())], left=())


def _pairs(source: str, target: str) -> Iterator[SentencePair]:
    for number, (one, other) in enumerate(parallel_lines(source, target), start=1):
        check_markup(source, [one], number)
        yield tuple(tokens(one)), tuple(tokens(other))
