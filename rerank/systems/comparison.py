"""Comparison of models' translations with Moses', to decide whether they are added to the lists."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from features.feature import Resources, Sentence
from features.progress import log
from moses_io.files.errors import counted
from moses_io.files.json_files import write_json
from moses_io.files.text import tokens
from moses_io.filters import Filters
from moses_io.nbest import read_moses_output, read_nbest
from rerank.lists.scoring import WholeSources
from rerank.metrics.metric import Metric
from rerank.systems.translations import CandidateMerger, CandidateRequest

COMPARISON = "comparison.json"
"""File in the folder of results with the `Comparison`."""

SENTENCES = 200
"""Maximum number of sentences that are translated for a comparison."""

MIN_RATIO = 0.9
"""Minimum BLEU of the translations of a model for adding them to the lists, relative to the BLEU of Moses."""


@dataclass(frozen=True)
class Comparison:
    """BLEU of Moses and of models on some sentences of dev.

    Attributes:
        sentences: number of sentences.
        moses: BLEU of Moses' translations, 0 … 100.
        models: BLEU of the best translations of each list that models add, by the name of the list.
    """

    sentences: int
    moses: float
    models: dict[str, float]

    @property
    def added(self) -> bool:
        """Whether translations are added to the lists, because a model is nearly as good as Moses."""
        best = max(self.models.values(), default=0.0)
        return best > 0 and best >= MIN_RATIO * self.moses

    def __str__(self) -> str:
        scores = ", ".join(f"{name} {value:.1f}" for name, value in {"Moses": self.moses, **self.models}.items())
        return (
            f"translations of models are {'' if self.added else 'not '}added to the lists: BLEU of "
            f"{counted(self.sentences, 'sentence')} of dev: {scores}"
        )


def compare_translations(
    nbest: str,
    source: str,
    references: Sequence[str],
    moses_output: str,
    requests: Sequence[CandidateRequest],
    output: str,
    filters: Filters,
    resources: Resources,
) -> None:
    """Compare the best translations of models with those of Moses, and write the `Comparison` as JSON.

    The sentences are at equal distances in the list. Translations of models that are much worse than Moses make the
    reranker worse (`docs/lab/choices.md`).

    Args:
        nbest: path of the list of dev.
        source: path of its source.
        references: paths of its references.
        moses_output: path of Moses' own output, or empty for the candidates with the highest totals.
        requests: the models.
        output: path to write.
        filters: filters for translations and references.
        resources: device and precision.

    Raises:
        InputError: a file cannot be read, or a folder is no forward model.
    """
    lists = read_nbest(nbest)
    sources, all_references = WholeSources(source), filters.references(references)
    if moses_output:
        printed = read_moses_output(moses_output, marks=filters.marks)
        printed.check(sources.total, source)
        lists = printed.add_to(lists)
    texts, sentences = list[str](), list[Sentence]()
    for each in lists:
        texts.append(each.moses_text)
        sentences.append(Sentence(each.sentence, tuple(tokens(sources.line(each))), hypotheses=()))
    chosen = np.linspace(0, len(texts) - 1, min(SENTENCES, len(texts)), dtype=np.int64).tolist()
    compared = [sentences[index] for index in chosen]
    known = [[lines[each.sentence] for lines in all_references] for each in compared]

    def bleu(translations: Sequence[str]) -> float:
        return bleu_of([filters(text) for text in translations], known)

    translated = CandidateMerger(requests, resources).translate(compared)
    models = {
        name: bleu([" ".join(each[0].tokens) for each in translations]) for name, translations in translated.items()
    }
    comparison = Comparison(len(chosen), bleu([texts[index] for index in chosen]), models)
    log.info(comparison)
    write_json(output, asdict(comparison), indent=1)


def bleu_of(texts: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return BLEU without smoothing, 0 … 100. `references` has the references of each text."""
    metric = Metric("bleu")
    rows = [metric.counter(known)(text) for text, known in zip(texts, references, strict=True)]
    return 100 * float(metric.formula.score(np.sum(rows, axis=0, dtype=np.float64)))
