"""Selection of the best candidate of each sentence. Each source sentence gets exactly one line."""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from features.progress import log, with_bar
from moses_io.files.errors import counted
from moses_io.files.streams import STANDARD, is_live, name_of, open_output
from moses_io.files.text import encode
from moses_io.hypothesis import with_total
from moses_io.list_end import ListEnd
from moses_io.nbest import MosesOutput, SentenceList, read_nbest
from moses_io.weights import WeightFile
from rerank import __version__
from rerank.linear.mbr import expected_chrf
from rerank.linear.missing import Replacements, complete
from rerank.linear.ranking import Estimator, LinearModel, Ranking, rankings
from rerank.linear.weights import fingerprint


@dataclass(frozen=True)
class Outputs:
    """Output paths of a selection.

    Attributes:
        text: the best translations, one line per source sentence.
        nbest: the n-best list sorted by the new score.
        limit: maximum number of candidates per sentence in `nbest` (0: all).
        confidence: one `Estimate` line per source sentence, a line with only a tab for a sentence without candidates.
    """

    text: str
    nbest: str | None = None
    limit: int = 0
    confidence: str | None = None


def choose_by_weights(
    nbest: str,
    content: WeightFile,
    name: str,
    replacements: Replacements,
    outputs: Outputs,
    estimator: Estimator | None = None,
    moses_output: MosesOutput | None = None,
    mbr_scale: float | None = None,
) -> None:
    """Write the best candidate of each sentence under the weights.

    Args:
        nbest: path of the list.
        content: the weights.
        name: path of their file, for messages.
        replacements: lines for sentences without candidates.
        outputs: output paths.
        estimator: estimates the quality of each choice.
        moses_output: the decoder's own output, with which estimates compare the choice.
        mbr_scale: choose by expected chrF, see `expected_chrf`.
    """
    model = LinearModel(content, name)
    mbr = "" if mbr_scale is None else f"|mbr:chrf|scale:{mbr_scale:g}"
    log.info(f"signature: linear|weights:{fingerprint(content.weights)}{mbr}|version:{__version__}")
    lists = _read(nbest, replacements, outputs.text)
    if moses_output:
        lists = moses_output.add_to(lists)
    completed = complete(lists, replace(replacements, live=is_live(nbest)))
    ranked = rankings(completed, model)
    if mbr_scale is not None:
        ranked = (item if isinstance(item, bytes) else expected_chrf(item, mbr_scale) for item in ranked)
    write_choices(ranked, outputs, estimator)


def write_choices(ranked: Iterable[Ranking | bytes], outputs: Outputs, estimator: Estimator | None = None) -> None:
    """Write the best candidate of each sentence and, if requested, the sorted list and the estimates."""
    unlisted = ranked_lists = 0
    with contextlib.ExitStack() as stack:
        best = stack.enter_context(open_output(outputs.text))
        sorted_list = stack.enter_context(open_output(outputs.nbest)) if outputs.nbest else None
        estimates = stack.enter_context(open_output(outputs.confidence)) if outputs.confidence else None
        for item in ranked:
            estimate = estimator(item) if estimator and not isinstance(item, bytes) else None
            if isinstance(item, bytes):
                best.write(item)
            else:
                ranked_lists += 1
                unlisted += item.candidates.moses_output is not None and item.candidates.moses_choice is None
                best.write(encode(item.best.text) + b"\n")
                if sorted_list:
                    _write_list(sorted_list, item, outputs.limit)
            if estimates:
                estimates.write(estimate.line if estimate else b"\t\n")
            if outputs.text == STANDARD:
                best.flush()  # a program that reads stdout gets each line at once
    if unlisted:
        log.info(f"Moses' output is not among the candidates in {unlisted} of {counted(ranked_lists, 'sentence')}")


def choose_by_total(nbest: str, replacements: Replacements, output: str) -> None:
    """Write the candidate with the highest total of each sentence, the decoder's default choice. Ties go to the first.

    Args:
        nbest: path of the list.
        replacements: lines for sentences without candidates.
        output: path of the translations.
    """
    with open_output(output) as best:
        for item in complete(_read(nbest, replacements, output), replacements):
            best.write(item if isinstance(item, bytes) else encode(item.hypotheses[item.highest_total].text) + b"\n")


def _read(nbest: str, replacements: Replacements, output: str) -> Iterator[SentenceList]:
    """Read a list and warn if its last line was cut off. A progress bar is shown unless the output is a terminal."""
    end = ListEnd()
    lists = end.follow(read_nbest(nbest))
    if output == STANDARD and sys.stdout and sys.stdout.isatty():
        yield from lists
    else:
        yield from with_bar(
            "choose", lists, replacements.sentences if isinstance(replacements.sentences, int) else None
        )
    if cut := end.cut():
        log.warning(f"{name_of(nbest)}:{cut}")


def _write_list(stream: BinaryIO, ranking: Ranking, limit: int) -> None:
    """Write the `limit` best lines of a ranking (0: all), best first, with the total replaced by the new score."""
    for index in ranking.order[: limit or None]:
        line = with_total(ranking.candidates.hypotheses[index], f"{ranking.scores[index]:.9g}")
        stream.write(line if line.endswith(b"\n") else line + b"\n")
