"""Selection of the best candidate of each sentence under given weights. Each source sentence gets exactly one line."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, NamedTuple

import numpy as np

from features.arrays import Array
from features.progress import log, with_bar
from moses_io.files.errors import Fault, InputError, counted, shown
from moses_io.files.streams import STANDARD, is_live, name_of, open_output
from moses_io.files.text import encode, read_lines
from moses_io.hypothesis import Hypothesis, is_sparse, with_total
from moses_io.list_end import ListEnd
from moses_io.nbest import MosesOutput, SentenceList, check_id, read_nbest
from moses_io.weights import Weights
from rerank import __version__
from rerank.linear.candidates import FeatureSpace
from rerank.linear.collecting import collect, dense_features
from rerank.linear.weights import fingerprint, hint_for, load_weights, unused_weights, with_rest

MOST_MISSING = 10_000_000
"""Maximum number of consecutive sentences without candidates that get blank lines."""

NAMED = 3
"""Maximum number of sparse features that a warning names."""


@dataclass(frozen=True)
class Holes:
    """Replacement lines for sentences without candidates.

    Attributes:
        sentences: number of source sentences, or a function that returns it and is called after the end of the list.
            None if unknown: then only gaps inside the list are detected.
        blank: whether to write an empty line for such a sentence.
        lines: one replacement line per source sentence, or None.
        live: whether the list comes from a pipe.
    """

    sentences: int | Callable[[], int] | None = None
    blank: bool = False
    lines: list[str] | None = None
    live: bool = False

    def line(self, sentence: int, place: str) -> bytes:
        """Return the line of a sentence without candidates.

        Raises:
            InputError: no replacement line is available.
        """
        if self.blank:
            return b"\n"
        if self.lines is None:
            fills = "--on-missing blank or FILE fills its line, `validate --regroup` puts ids in order"
            raise InputError(f"{place}: sentence {sentence} has no candidates; {fills}")
        if sentence >= len(self.lines):
            raise InputError(f"{place}: sentence {sentence} has no candidates, and no line in the file of --on-missing")
        return encode(self.lines[sentence]) + b"\n"

    def check_end(self, last: SentenceList, sentences: int) -> None:
        """Raise `InputError` if sentences after the `last` one of a list are missing and have no replacement lines."""
        if last.sentence + 1 >= sentences or self.blank or self.lines is not None:
            return
        ends = f"the list ends at sentence {last.sentence}, expected sentences up to {sentences - 1}"
        fills = "" if self.live else "; --on-missing blank or FILE fills the missing lines"
        raise InputError(f"{last.end}: {ends}; the decoder probably stopped early{fills}")


class LinearModel:
    """Linear model with fixed weights that scores the candidates of one sentence at a time."""

    def __init__(self, weights: Weights, path: str) -> None:
        self._weights, self._path, self._checked = weights, path, False

    def scores(self, sentence_list: SentenceList) -> Array:
        """Return the (candidates,) model scores. A sparse feature without a weight has weight 0.

        Raises:
            InputError: a dense feature has no weight, its number of weights differs from its number of values, or a
                dense weight has no feature.
        """
        if not self._checked:
            self.check(sentence_list)
            self._warn(sentence_list)
            self._checked = True
        candidates = collect([sentence_list])
        try:
            return candidates.scores(candidates.space.vector(self._weights))
        except Fault as fault:
            raise InputError(f"{sentence_list.place}: {fault} in {self._path}") from None

    def check(self, sentence_list: SentenceList, to_come: Sequence[str] = ()) -> None:
        """Compare the dense features of a sentence with the weights.

        Args:
            sentence_list: the sentence.
            to_come: names of features that are not in the list yet. Their weights are not reported as unused.

        Raises:
            InputError: a dense feature has no weight, or a dense weight has no feature.
        """
        space = FeatureSpace(dense_features(sentence_list))
        self._weights = with_rest(self._weights, space)
        for name, _ in space.dense:
            if name not in self._weights:
                lacking = f"feature {shown(name)} has no weight in {self._path}{hint_for([name])}"
                raise InputError(f"{sentence_list.place}: {lacking}")
        if unused := [name for name in unused_weights(space, self._weights) if name not in to_come]:
            missing = f"no feature {', '.join(unused)}, which {self._path} has a weight for"
            raise InputError(f"{sentence_list.place}: {missing}; is this list the scored one?")

    def _warn(self, sentence_list: SentenceList) -> None:
        """Warn if the list has sparse features and the weights have none. Single missing sparse weights are normal."""
        names = sorted({name for hypothesis in sentence_list.hypotheses for name in hypothesis.sparse})
        if names and not any(is_sparse(name, len(values)) for name, values in self._weights.items()):
            some = ", ".join(shown(name) for name in names[:NAMED]) + ", …" * (len(names) > NAMED)
            weightless = f"{self._path} has no weight for any sparse feature"
            log.warning(f"{weightless}; the sparse features of the list have weight 0: {some}")


class Estimate(NamedTuple):
    """Estimated quality of a chosen candidate.

    Attributes:
        expected: expected score of the sentence, 0 … 100.
        helped: probability, 0 … 1, that the chosen candidate is better than Moses' output. None if the two texts are
            equal or Moses' output is not among the candidates.
    """

    expected: float
    helped: float | None

    @property
    def line(self) -> bytes:
        """Output line with both values, separated by a tab."""
        return f"{self.expected:.2f}\t{'' if self.helped is None else f'{self.helped:.4f}'}\n".encode()


class Ranking(NamedTuple):
    """The candidates of a sentence with their model scores.

    Attributes:
        candidates: in list order.
        scores: (candidates,) scores of the linear model.
    """

    candidates: SentenceList
    scores: Array

    @property
    def best(self) -> Hypothesis:
        """The candidate with the highest score. Ties go to the first in the list."""
        return self.candidates.hypotheses[int(np.argmax(self.scores))]

    @property
    def order(self) -> list[int]:
        """Indices of the candidates in the list, best first. Ties stay in list order."""
        order: list[int] = np.argsort(-self.scores, kind="stable").tolist()  # (candidates,)
        return order


Estimator = Callable[[Ranking], Estimate]
"""Estimates the quality of the best candidate of a ranking."""


@dataclass(frozen=True)
class Outputs:
    """Output paths of a selection.

    Attributes:
        text: the best translations, one line per source sentence.
        nbest: the n-best list sorted by the new score.
        most: maximum number of candidates per sentence in `nbest` (0: all).
        confidence: one `Estimate` line per source sentence, a line with only a tab for a sentence without candidates.
    """

    text: str
    nbest: str | None = None
    most: int = 0
    confidence: str | None = None


def choose_by_weights(
    nbest: str,
    weights: str,
    holes: Holes,
    outputs: Outputs,
    estimator: Estimator | None = None,
    moses_output: MosesOutput | None = None,
) -> None:
    """Write the best candidate of each sentence under the weights in a file.

    Args:
        nbest: path of the list.
        weights: path of the weight file.
        holes: lines for sentences without candidates.
        outputs: output paths.
        estimator: estimates the quality of each choice.
        moses_output: the decoder's own output, with which estimates compare the choice.
    """
    by_name = load_weights(weights)
    model = LinearModel(by_name, weights)
    log.info(f"signature: linear|weights:{fingerprint(by_name)}|version:{__version__}")
    lists = _read(nbest, holes, outputs.text)
    if moses_output:
        lists = moses_output.add_to(lists)
    write_choices(rankings(lists, model, replace(holes, live=is_live(nbest))), outputs, estimator)


def rankings(lists: Iterator[SentenceList], model: LinearModel, holes: Holes) -> Iterator[Ranking | bytes]:
    """Yield a ranking for each source sentence, or the replacement line for a sentence without candidates.

    Sentence ids must increase, so that a sentence can be ranked as soon as it is read.
    """
    for item in _complete(lists, holes):
        yield item if isinstance(item, bytes) else Ranking(item, model.scores(item))


def write_choices(ranked: Iterable[Ranking | bytes], outputs: Outputs, estimator: Estimator | None = None) -> None:
    """Write the best candidate of each sentence and, if requested, the sorted list and the estimates."""
    unlisted = ranked_lists = 0
    with contextlib.ExitStack() as stack:
        best = stack.enter_context(open_output(outputs.text))
        again = stack.enter_context(open_output(outputs.nbest)) if outputs.nbest else None
        estimates = stack.enter_context(open_output(outputs.confidence)) if outputs.confidence else None
        for item in ranked:
            estimate = estimator(item) if estimator and not isinstance(item, bytes) else None
            if isinstance(item, bytes):
                best.write(item)
            else:
                ranked_lists += 1
                unlisted += item.candidates.moses_choice is None
                best.write(encode(item.best.text) + b"\n")
                if again:
                    _write_list(again, item, outputs.most)
            if estimates:
                estimates.write(estimate.line if estimate else b"\t\n")
            if outputs.text == STANDARD:
                best.flush()  # a program that reads stdout gets each line at once
    if unlisted:
        log.info(f"Moses' output is not among the candidates in {unlisted} of {counted(ranked_lists, 'sentence')}")


def choose_by_total(nbest: str, holes: Holes, output: str) -> None:
    """Write the candidate with the highest total of each sentence, the decoder's default choice. Ties go to the first.

    Args:
        nbest: path of the list.
        holes: lines for sentences without candidates.
        output: path of the translations.
    """
    with open_output(output) as best:
        for item in _complete(_read(nbest, holes, output), holes):
            best.write(item if isinstance(item, bytes) else encode(item.hypotheses[item.highest_total].text) + b"\n")


def _read(nbest: str, holes: Holes, output: str) -> Iterator[SentenceList]:
    """Read a list and warn if its last line was cut off. A progress bar is shown unless the output is a terminal."""
    end = ListEnd()
    lists = end.follow(read_nbest(nbest))
    if output == STANDARD and sys.stdout and sys.stdout.isatty():
        yield from lists
    else:
        yield from with_bar("choose", lists, holes.sentences if isinstance(holes.sentences, int) else None)
    if cut := end.cut():
        log.warning(f"{name_of(nbest)}:{cut}")


def read_holes(source: str | None, sentences: int | None, on_missing: str) -> Holes:
    """Return the `Holes` for command line arguments.

    Args:
        source: path of the source text, or None.
        sentences: number of source sentences, used if there is no source text.
        on_missing: `error`, `blank`, or the path of a file with replacement lines.

    Raises:
        InputError: the file of replacement lines and the source differ in length.
    """
    if source is not None:
        sentences = len(read_lines(source))
    if on_missing in ("error", "blank"):
        return Holes(sentences, blank=on_missing == "blank")
    lines = read_lines(on_missing)
    if sentences is not None and len(lines) != sentences:
        raise InputError(f"{on_missing} has {len(lines)} lines, there are {sentences} source sentences")
    return Holes(len(lines), lines=lines)


def _complete(lists: Iterator[SentenceList], holes: Holes) -> Iterator[SentenceList | bytes]:
    """Yield the list of each sentence in the order of ids, and a replacement line for each sentence without a list."""
    expected, last = 0, None
    for sentence_list in lists:
        place = sentence_list.place
        if sentence_list.sentence < expected:
            falls = f"{place}: sentence {sentence_list.sentence} comes after sentence {expected - 1}"
            raise InputError(f"{falls}; `moses-rerank validate --regroup` puts a list in order")
        if isinstance(holes.sentences, int):
            check_id(sentence_list, holes.sentences, "source")
        yield from _fill(expected, sentence_list.sentence, holes, place)
        yield sentence_list
        expected, last = sentence_list.sentence + 1, sentence_list
    sentences = (holes.sentences() if callable(holes.sentences) else holes.sentences) or 0
    if last:
        holes.check_end(last, sentences)
        yield from _fill(expected, sentences, holes, f"{name_of(last.path)}, at its end")


def _fill(start: int, end: int, holes: Holes, place: str) -> Iterator[bytes]:
    """Yield the replacement lines of sentences `start` … `end` - 1.

    Raise `InputError` for more than `MOST_MISSING` blank lines: then an id in the list must be wrong.
    """
    if end - start > MOST_MISSING and holes.blank:
        many = f"{end - start} sentences before {end} have no candidates"
        raise InputError(f"{place}: {many}, expected at most {MOST_MISSING} one after the other")
    for missing in range(start, end):
        yield holes.line(missing, place)


def _write_list(stream: BinaryIO, ranking: Ranking, most: int) -> None:
    """Write the `most` best lines of a ranking (0: all), best first, with the total replaced by the new score."""
    for place in ranking.order[: most or None]:
        line = with_total(ranking.candidates.hypotheses[place], f"{ranking.scores[place]:.9g}")
        stream.write(line if line.endswith(b"\n") else line + b"\n")
