"""Tuning sets: candidates as arrays with their statistics, from n-best lists or from files of Moses' extractor."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby, zip_longest

import numpy as np

from features.arrays import Array
from features.progress import progress_bar
from moses_io.extractor import read_blocks
from moses_io.files.errors import InputError, counted
from moses_io.files.streams import name_of
from moses_io.filters import Filters, Forms, advice
from moses_io.hypothesis import UNLABELLED
from moses_io.nbest import check_id, pool
from moses_io.weights import WeightFile, Weights
from rerank.linear.candidates import Candidates
from rerank.linear.collecting import Collector
from rerank.linear.weights import limits, load_weight_file, match_initial_weights
from rerank.metrics.metric import BLEU_SIZE, Metric
from rerank.tuners.problem import Problem
from rerank.tuners.table import Tuning


@dataclass(frozen=True)
class TuningSet:
    """Candidates with their statistics.

    Attributes:
        candidates: candidates of the list.
        statistics: (N, formula.size) statistics of each candidate.
        advice: warnings that list and references differ in form, each with the filter that corrects it.
    """

    candidates: Candidates
    statistics: Array
    advice: tuple[str, ...] = ()

    def chosen(self, weights: Weights) -> Array:
        """Return the (n, formula.size) statistics of the highest-scoring candidates under weights by feature name."""
        scores = self.candidates.scores(self.candidates.space.vector(weights))  # (N,)
        return self.statistics[self.candidates.best(scores)]  # (n, formula.size)


@dataclass(frozen=True)
class Lists:
    """Scored lists and references of a data set.

    Attributes:
        nbest: paths of the lists, which are pooled.
        references: paths of the references.
        filters: filters for the texts of lists and references.
    """

    nbest: Sequence[str]
    references: Sequence[str]
    filters: Filters

    @property
    def files(self) -> list[str]:
        """Paths of all lists and references."""
        return [*self.nbest, *self.references]

    @property
    def signature(self) -> str:
        """Number of references and names of the filters, for the header of the weights."""
        return f"references:{len(self.references)}{self.filters.signature}"

    def read(self, metric: Metric) -> TuningSet:
        """Read the lists and compute the statistics of each candidate. A sentence id is a line index of the references.

        Raises:
            InputError: a sentence id is beyond the references, the references differ in length, or a candidate has
                segmentation marks that no filter removes.
        """
        references = self.filters.references(self.references)
        collector, statistics, forms = Collector(), [], Forms()
        with progress_bar("read list", len(references[0])) as bar:
            for sentence_list in pool(self.nbest, marks=self.filters.marks):
                check_id(sentence_list, len(references[0]), "reference")
                collector.add(sentence_list)
                count = metric.counter([lines[sentence_list.sentence] for lines in references])
                texts = [hypothesis.text for hypothesis in sentence_list.hypotheses]
                filtered = {text: self.filters(text) for text in dict.fromkeys(texts)}
                forms.add_all(filtered.values())
                statistics_by_text = {text: count(filtered_text) for text, filtered_text in filtered.items()}
                statistics += [statistics_by_text[text] for text in texts]
                bar.advance(1, "")
        candidates = collector.candidates()
        order = np.argsort(candidates.sentences)  # (n,) by id, so that the order of the list makes no difference
        rows = np.array(statistics, dtype=np.float64)[candidates.rows_of(order)]  # (N, formula.size)
        messages = advice({"the list": forms}, Forms(chain(*references)))
        return TuningSet(candidates.subset(order), rows, tuple(messages))


@dataclass(frozen=True)
class Extracted:
    """Files of Moses' extractor.

    Attributes:
        features: path of features.dat.
        statistics: path of scores.dat, with statistics of BLEU.
        signature: part of the header of the weights.
    """

    features: str
    statistics: str
    signature = "references:extracted"

    def read(self, metric: Metric) -> TuningSet:
        """Read both files.

        Raises:
            InputError: the files do not match, a file is malformed, or the metric or the statistics are not BLEU.
        """
        if len(metric.formula.parts.layout) != 1 or metric.formula.size != BLEU_SIZE:
            fault = f"{name_of(self.statistics)} has statistics of BLEU only"
            raise InputError(f"{fault}. Tune for {metric.formula.name} on the n-best list")
        collector = Collector()
        rows: list[tuple[float, ...]] = []
        names: tuple[str, ...] | None = None
        dense: tuple[tuple[str, int], ...] = ()
        sentences: set[int] = set()
        blocks = zip_longest(read_blocks(self.features, "FEATURES"), read_blocks(self.statistics, "SCORES"))
        for block, scores in blocks:
            if block is None or scores is None:
                raise InputError(f"{self.features} and {self.statistics} do not have the same number of sentences")
            if (block.sentence, len(block.rows)) != (scores.sentence, len(scores.rows)):
                expected = f"sentence {block.sentence} with {counted(len(block.rows), 'candidate')} as in {block.place}"
                found = f"sentence {scores.sentence} with {counted(len(scores.rows), 'candidate')}"
                raise InputError(f"{scores.place}: {found}, expected {expected}")
            if names is None:
                names = block.names
                dense = tuple((label, len(list(group))) for label, group in groupby(map(_label_of, names)))
                if len(dict(dense)) < len(dense):
                    raise InputError(f"{block.place}: values of a feature are not adjacent: {' '.join(names)}")
            elif block.names != names:
                raise InputError(f"{block.place}: names or order of features differ from the first sentence")
            if block.sentence in sentences:
                raise InputError(f"{block.place}: duplicate sentence {block.sentence}")
            sentences.add(block.sentence)
            if scores.names != ("BLEU",):
                raise InputError(f"{scores.place}: expected statistics of BLEU, found {' '.join(scores.names)}")
            if any(len(row) != BLEU_SIZE or min(row) < 0 for row in scores.rows):
                raise InputError(f"{scores.place}: expected {BLEU_SIZE} statistics of BLEU per candidate")
            collector.add_rows(block.sentence, dense, block.rows, block.sparse)
            rows += scores.rows
        if not rows:
            raise InputError(f"{self.features}: the file is empty")
        return TuningSet(collector.candidates(), np.array(rows, dtype=np.float64))


def _label_of(name: str) -> str:
    """Return the label of a feature, whose values the extractor names LABEL_0, LABEL_1, …, or _0, _1, … without one."""
    label, bar, index = name.rpartition("_")
    return label or (UNLABELLED if bar else index)


def read_problem(files: Lists | Extracted, initial_weights: str, tuning: Tuning) -> tuple[Problem, Weights]:
    """Read the tuning set and the initial weights. Returns the tuning problem and the initial weights by name."""
    return make_problem(files.read(Metric(tuning.metric)), load_weight_file(initial_weights), tuning)


def make_problem(tuning_set: TuningSet, initial: WeightFile, tuning: Tuning) -> tuple[Problem, Weights]:
    """Return the tuning problem for a tuning set and the initial weights by name.

    The statistics of the tuning set must have been computed for the metric of `tuning`.
    """
    space = tuning_set.candidates.space
    weights = match_initial_weights(initial, space)
    vector = space.vector(weights)
    lower, upper = limits(space, vector, tuning.sign, tuning.freeze)
    formula = Metric(tuning.metric).formula
    problem = Problem(tuning_set.candidates, tuning_set.statistics, formula, vector, lower=lower, upper=upper)
    return problem, weights
