"""Comparison of models' translations with Moses', to decide whether they are added to the lists."""

from collections.abc import Iterable, Sequence

import numpy as np

from features.feature import Resources, Sentence
from features.progress import log
from moses_io.files.errors import counted
from moses_io.files.text import tokens
from moses_io.nbest import SentenceList, read_nbest
from rerank.lists.scoring import WholeSources
from rerank.metrics.filters import Filters
from rerank.metrics.metric import Metric
from rerank.systems.translations import CandidateMerger, CandidateRequest

SENTENCES = 200
"""Maximum number of sentences that are translated for the comparison."""

LEAST = 0.9
"""Minimum BLEU of the translations of a model for adding them to the lists, relative to Moses' BLEU."""


def translate_well(
    requests: Sequence[CandidateRequest],
    nbest: str,
    source: str,
    references: Sequence[str],
    filters: Filters,
    resources: Resources,
) -> bool:
    """Return whether the best model, or group of models, translates nearly as well as Moses.

    Translations of models that are much worse than Moses' make the reranker worse (`docs/lab/choices.md`). The compared
    sentences are at equal distances in the list.

    Args:
        requests: the models.
        nbest: path of the list of dev.
        source: path of its source.
        references: paths of its references.
        filters: filters for translations and references.
        resources: device and precision.

    Raises:
        InputError: a file cannot be read, or a folder is no forward model.
    """
    sources, answers, metric = WholeSources(source), filters.references(references), Metric("bleu")
    lists = _sample(nbest, sources.total)
    sentences = [Sentence(each.sentence, tuple(tokens(sources.line(each))), ()) for each in lists]
    counters = [metric.counter([lines[each.sentence] for lines in answers]) for each in lists]

    def bleu(texts: Iterable[str]) -> float:
        rows = [count(filters(text)) for count, text in zip(counters, texts, strict=True)]
        return 100 * float(metric.formula.score(np.sum(rows, axis=0, dtype=np.float64)))

    moses = bleu(each.moses_text for each in lists)
    own = {
        name: bleu(" ".join(each[0].tokens) if each else "" for each in translations)
        for name, translations in CandidateMerger(requests, resources).translate(sentences).items()
    }
    well = max(own.values()) >= LEAST * moses
    scores = ", ".join(f"{name} {value:.1f}" for name, value in {"Moses": moses, **own}.items())
    log.info(
        f"BLEU of translations of {counted(len(lists), 'sentence')} of dev: {scores}. Translations of models are "
        f"{'' if well else 'not '}added to the lists"
    )
    return well


def _sample(nbest: str, total: int) -> list[SentenceList]:
    """Return the lists of `SENTENCES` of `total` sentences at equal distances, or of all if there are fewer."""
    chosen = set(np.linspace(0, total - 1, min(SENTENCES, total), dtype=np.int64).tolist())
    return [each for each in read_nbest(nbest) if each.sentence in chosen]
