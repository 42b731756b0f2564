"""Expected work of the stages of an experiment, from the sizes of its texts, lists and models.

The constants are seconds of one core of an AMD EPYC. Measured time factors adapt them to this machine. As stages end,
their true times correct the estimate (`rerank.experiment.clock`).
"""

import contextlib
import functools
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from features.models.config import read_config
from features.models.cost import CorpusSize, Products, TextSize, TimeFactors, products_of, training_seconds
from features.models.settings import Architecture, Training
from features.models.training.metrics import read_epochs
from features.models.training.request import TrainingRequest
from features.monolingual import COMPARED_PER_SENTENCE
from features.request import FeatureRequest, group_by_models, is_pretrained, parts_of, split_values
from moses_io.files.compression import is_compressed
from moses_io.files.errors import InputError
from moses_io.files.streams import open_input, read_start_of, version_of
from rerank.experiment.clock import Work
from rerank.experiment.corpus import MAX_MONOLINGUAL, count_monolingual
from rerank.experiment.experiment import Experiment
from rerank.experiment.recipe import SHORTLIST
from rerank.experiment.stages import trainings_of
from rerank.experiment.workers import cores, uses_gpu
from rerank.systems.translations import CandidateRequest
from rerank.tuners.mean import MEAN
from rerank.tuners.table import AUTO
from rerank.tuning.folds import FOLDS

PROCESS_START = 3.0
"""Seconds to start a process with torch and to load a model."""

GPU = TimeFactors(training=1 / 20, forward=1 / 20)
"""Assumed time factors of a machine with a GPU if they were not measured."""

SHARED = 0.45
"""Fraction of the steps of a forward model that is computed, as candidates share their prefixes."""

SEARCH = 2.6
"""Time of a step of beam search relative to a step of scoring."""

BYTE = 1.1e-11
"""Seconds per byte of weights and decoder step of a pretrained model, measured with 6 + 6 layers of 512 in float32."""

NEW_FRACTION = 0.7
"""Assumed fraction of the models' translations that are not among the candidates of Moses."""

READ, METRIC, EVALUATE = 6e-5, 6e-5, 2.5e-4
"""Seconds per candidate to read and write a list, to compute a metric, and to inspect all choices for a report."""

TEXT = 7e-6
"""Seconds per word of a list to compute a feature of its texts."""

TUNE = {"kbmira": 7e-7, "mert": 6e-7, "pro": 8e-7, "expected": 7e-7, MEAN: 3.5e-6, AUTO: 1.5e-5}
"""Seconds of a run of a tuner per candidate and dense value."""

TWO_CORES = 1.5
"""Factor on the speed of tuners on two cores, as they have two threads, relative to one core."""

SELECT, COMPARE = 6e-8, 2.5e-6
"""Seconds per byte of monolingual text to read it twice, and per word that is compared with the corpus."""

WORD, COMPRESSED = 6, 3
"""Assumed bytes of a word, and assumed compression factor of texts."""

SHORT_WORK = Work("short", 1.0)
"""Work of a stage that takes a second or so, whatever the sizes."""


@dataclass(frozen=True)
class ListSize:
    """Size of an n-best list and its source.

    Attributes:
        sentences: number of sentences.
        source: number of source words.
        candidates: number of candidates.
        words: number of words of all candidates.
        values: number of dense values of a candidate.
    """

    sentences: float
    source: float
    candidates: float
    words: float
    values: int


def text_size(path: str) -> TextSize:
    """Return the size of a text, 0 if it does not exist. Each version of a file is read once."""
    return _text_size(path, *version_of(path)) if os.path.isfile(path) else TextSize(0, 0, 0)


@functools.lru_cache(1000)
def _text_size(path: str, _changed: int, _bytes: int) -> TextSize:
    counts: Counter[bytes] = Counter()
    lines = 0
    with open_input(path) as stream:
        for line in stream:
            lines += 1
            counts.update(line.split())
    return TextSize(lines, counts.total(), sum(count > 1 for count in counts.values()))


def list_size(nbest: str, source: str) -> ListSize:
    """Return the size of a list and its source, 0 if it does not exist. Each version of a file is read once."""
    known = os.path.isfile(nbest)
    sentences, candidates, words, values = _list_size(nbest, *version_of(nbest)) if known else (0, 0, 0, 0)
    return ListSize(sentences, text_size(source).words, candidates, words, values)


@functools.lru_cache(1000)
def _list_size(nbest: str, _changed: int, _bytes: int) -> tuple[int, int, int, int]:
    sentences = 0
    candidates = 0
    words = 0
    values = 0
    last = b""
    with open_input(nbest) as stream:
        for line in stream:
            sentence, text, features, *_ = [*line.split(b"|||", 3), b"", b""]
            if not text:  # an empty line, which all commands skip, or a line that they report
                continue
            sentences += sentence != last
            last = sentence
            candidates += 1
            words += len(text.split())
            values = values or sum(not each.endswith(b"=") for each in features.split())
    return sentences, candidates, words, values


class Costs:
    """Expected work of the stages of an experiment.

    Args:
        experiment: the experiment.
        device: `auto`, `cpu` or `cuda`.
        corpus: sizes of both sides of the corpus. None: they are counted.
        factors: time factors of the machine. None: they are assumed.
    """

    def __init__(
        self, experiment: Experiment, device: str, corpus: CorpusSize | None = None, factors: TimeFactors | None = None
    ) -> None:
        self._experiment, self._corpus = experiment, corpus
        self._factors = factors or (GPU if uses_gpu(device) else TimeFactors())

    @functools.cached_property
    def corpus(self) -> CorpusSize:
        """Sizes of both sides of the corpus."""
        train = self._experiment.train
        return self._corpus or (text_size(train.source), text_size(train.target))

    def training(self, name: str) -> Work:
        """Return the work of training a model, and the fraction that a killed run has done."""
        request, folder = self._experiment.models[name].request, self._experiment.model(name)
        files = self._experiment.dev.texts
        dev = text_size(files.source), text_size(files.target)
        synthetic = self.synthetic if self._experiment.synthetic(name) else None
        seconds = training_seconds(request, self.corpus, dev, self._experiment.train.alignment != "", synthetic)
        return Work("train", PROCESS_START + seconds * self._factors.training, _trained(request, folder))

    @property
    def max_monolingual(self) -> int:
        """Maximum number of sentences of the monolingual text that are used."""
        return int(MAX_MONOLINGUAL * self.corpus[1].lines)

    @functools.cached_property
    def synthetic(self) -> CorpusSize:
        """Expected sizes of both sides of the synthetic pairs, from the first lines of the monolingual text.

        The whole text may be much longer.
        """
        lines, words = count_monolingual(self._experiment.monolingual, self.corpus[1].lines)
        source, target = self.corpus
        return source.like(lines, words * source.words / max(1, target.words)), target.like(lines, words)

    def selection(self) -> Work:
        """Return the work of selecting sentences of the monolingual text, also if it is too short for a selection."""
        path = self._experiment.monolingual
        size = os.path.getsize(path) * (COMPRESSED if is_compressed(read_start_of(path, 10)) else 1)
        compared = min(COMPARED_PER_SENTENCE * self.synthetic[1].words, size / WORD)
        return Work("select", 1 + self._factors.lists * (SELECT * size + COMPARE * compared))

    def back_translation(self) -> Work:
        """Return the work of translating the monolingual text."""
        model, (source, target) = self._model(self._experiment.model(self._experiment.back_translator)), self.synthetic
        # The model is a backward one: its source is the monolingual text.
        seconds = self._factors.forward * model.seconds(target.words, SEARCH * source.words)
        return Work("back-translate", PROCESS_START + seconds)

    def translation(self, name: str) -> Work:
        """Return the work of adding candidates of models to a list."""
        size = self._listed(name)
        seconds = self._translating(self._experiment.candidates, size.source)
        return Work("translate", PROCESS_START + seconds + self._per_candidate(size, READ))

    def comparison(self, requests: Sequence[CandidateRequest], sentences: int) -> Work:
        """Return the work of comparing translations of `sentences` sentences of dev with those of Moses."""
        size = self._listed("dev")
        source = size.source * min(1.0, sentences / max(1, size.sentences))
        return Work("translate", PROCESS_START + self._translating(requests, source) + self._per_candidate(size, READ))

    def _translating(self, requests: Sequence[CandidateRequest], words: float) -> float:
        """Return the core seconds for translating `words` source words."""
        seconds = 0.0
        for request in requests:
            steps = SEARCH * request.size * words
            for folder in request.folders:
                if is_pretrained(folder):
                    seconds += self._pretrained(parts_of(folder)[0], words + steps)
                else:
                    seconds += self._model(folder).seconds(words, steps)
        return self._factors.forward * seconds

    def _pretrained(self, folder: str, steps: float) -> float:
        """Return the core seconds for `steps` decoder steps of a pretrained model."""
        return BYTE * _weight_bytes(Path(folder)) * steps

    def _per_candidate(self, size: ListSize, seconds: float) -> float:
        """Return the seconds of work on a list, given the `seconds` per candidate."""
        return self._factors.lists * seconds * size.candidates

    @property
    def shortlist(self) -> int:
        """Expected number of candidates of a sentence in the scored lists if there is a shortlist, otherwise 0."""
        entry = self._experiment.shortlist
        return (entry.size or SHORTLIST) if entry else 0

    def scoring(self, name: str, requests: Sequence[FeatureRequest], shortlist: int = 0) -> Work:
        """Return the work of computing features that read the same models, of a list or its shortlist."""
        size = self._merged(name, shortlist)
        folders = {folder for request in requests for reader in request.readers for folder in reader}
        pretrained = [request for request in requests if request.row.takes == "folder"]
        if pretrained:
            seconds = 0.0
            for request in pretrained:
                # COMET's models share no prefixes, and read the source with each candidate.
                repeated = size.source * size.candidates / max(1, size.sentences)
                steps = SHARED * size.words + size.source if request.row.translates else size.words + repeated
                seconds += self._pretrained(request.parts[0], steps)
            return Work("score", PROCESS_START + self._factors.forward * seconds + self._per_candidate(size, READ))
        if not folders:
            texts = self._factors.lists * TEXT * size.words * len(requests)
            return Work("features", self._per_candidate(size, READ) + texts)
        seconds = sum(self._model_seconds(folder, size) for folder in folders)
        return Work("score", PROCESS_START + seconds + self._per_candidate(size, READ))

    def attention(self, name: str, folders: Sequence[str]) -> Work:
        """Return the work of storing the attention on the translations of Moses and of the reranker."""
        size = self._listed(name)
        seconds = sum(self._model(folder).seconds(size.source, 2 * size.source) for folder in folders)
        return Work("attend", PROCESS_START + self._factors.forward * seconds)

    def reading(self, name: str, shortlist: int = 0) -> Work:
        """Return the work of reading a list or its shortlist."""
        return Work("read", self._per_candidate(self._merged(name, shortlist), READ))

    def choosing(self, name: str) -> Work:
        """Return the work of reading a list with all features."""
        return self.reading(name, self.shortlist)

    def measuring(self, name: str) -> Work:
        """Return the work of reading a list and computing the metric of each candidate."""
        return Work("read", self._per_candidate(self._merged(name, self.shortlist), READ + METRIC))

    def evaluation(self, name: str) -> Work:
        """Return the work of the reports of a test set."""
        return Work("evaluate", self._per_candidate(self._merged(name, self.shortlist), EVALUATE))

    def tuning(self) -> Work:
        """Return the work of tuning on dev with cross-validation, with and without the new features."""
        entry = self._experiment.tuning
        tuning, folds = entry.tuning, entry.fold_settings.folds
        if tuning.tuner == AUTO:
            pairs = 0 if self._experiment.selection else self.folds * (self.folds - 1) // 2
            return self._tunings(2 * (1 + self.folds + pairs), AUTO)
        times = 1 + 2 * folds + (folds * (1 + self._values()) if entry.fold_settings.ablate else 0)
        return self._tunings(times * tuning.runs, tuning.tuner)

    def confidence(self) -> Work:
        """Return the work of fitting confidence estimation, with a tuning for each fold of dev."""
        work = self._tunings(self.folds, self._experiment.tuning.tuning.once.tuner)
        return replace(work, seconds=work.seconds + self.evaluation("dev").seconds)

    def ablation(self) -> Work:
        """Return the work of an ablation on dev, which tunes each set of features on all folds and on dev."""
        new = len(self._experiment.features)
        sets = 2 + (2 * new if new > 1 else new)
        return self._tunings(sets * (self.folds + 1), self._experiment.tuning.tuning.once.tuner)

    def tuning_shortlist(self) -> Work:
        """Return the work of tuning the weights that select the candidates of shortlists."""
        return self._tunings(1, MEAN, 0)

    def choosing_shortlist(self, sizes: Sequence[int]) -> Work:
        """Return the work of comparing sizes of the shortlist in cross-validation."""
        times = self.folds if len(sizes) > 1 else 0
        works = [self._tunings(times, "kbmira", size) for size in (0, *sizes)]
        return Work("tune", sum(work.seconds for work in works))

    def _tunings(self, times: float, tuner: str, shortlist: int | None = None) -> Work:
        """Return the work of reading the list of dev and running a tuner on it `times` times.

        `shortlist` is the number of candidates of a sentence, 0 for all (default: those of the scored list).
        """
        size = self._merged("dev", self.shortlist if shortlist is None else shortlist)
        once = TUNE[tuner] * self._values() / (TWO_CORES if cores() > 1 else 1)
        return Work("tune", self._per_candidate(size, READ + METRIC + times * once))

    def _values(self) -> int:
        """Return the number of dense values of a candidate of dev, including the new features."""
        new = [max(1, len(split_values(each.argument)[1])) for each in self._experiment.features.values()]
        return self._merged("dev").values + sum(new)

    def apply_seconds(self) -> float:
        """Return the expected seconds in which the reranker processes 1,000 sentences like those of dev."""
        first, late = self._experiment.split_requests("dev")
        works = [self.scoring("dev", group) for group in group_by_models(first)]
        works += [self.scoring("dev", group, self.shortlist) for group in group_by_models(late)]
        works += [self.translation("dev")] if self._experiment.candidates else []
        started = PROCESS_START * sum(work.kind in ("score", "translate") for work in works)
        seconds = sum(work.seconds for work in (*works, self.reading("dev"))) - started
        return started + 1000 * seconds / max(1, self._listed("dev").sentences)

    @property
    def folds(self) -> int:
        """Number of folds of a cross-validation."""
        return self._experiment.tuning.fold_settings.folds or FOLDS

    def _listed(self, name: str) -> ListSize:
        files = self._experiment.sets[name]
        return list_size(files.nbest, files.source)

    def _merged(self, name: str, shortlist: int = 0) -> ListSize:
        """Return the size of a list with the candidates of models. Moses already has some of them.

        `shortlist` is the number of candidates of a sentence, 0 for all.
        """
        size, requests = self._listed(name), self._experiment.candidates
        candidates = size.candidates + NEW_FRACTION * size.sentences * sum(request.size for request in requests)
        if shortlist:
            candidates = min(candidates, shortlist * size.sentences)
        return ListSize(
            sentences=size.sentences,
            source=size.source,
            candidates=candidates,
            words=size.words * candidates / max(1, size.candidates),
            values=size.values + (len(requests) + 1 if requests else 0),
        )

    def _model_seconds(self, folder: str, size: ListSize) -> float:
        """Return the core seconds for scoring a list with a model."""
        model = self._model(folder)
        if model.backward:
            seconds = model.seconds(size.words, size.candidates * size.source / max(1, size.sentences))
        else:
            seconds = model.seconds(size.source, SHARED * size.words)
        return self._factors.forward * seconds

    def _model(self, folder: str) -> Products:
        """Return the multiplications of a model of the experiment, or of an existing model folder."""
        experiment = self._experiment
        for name, entry in experiment.models.items():
            for part in entry.request.folders:
                if os.path.normpath(folder) == os.path.normpath(experiment.model(f"{name}/{part}")):
                    return self._products(*entry.request.resolve(), entry.request.backward or part == "backward")
        config = read_config(Path(folder))
        return self._products(config.architecture, config.training, config.direction == "backward")

    def _products(self, architecture: Architecture, training: Training, backward: bool) -> Products:
        corpus = self.corpus[::-1] if backward else self.corpus
        return products_of(architecture, training, corpus, backward)


def _trained(request: TrainingRequest, folder: str) -> float:
    """Return the fraction of a killed training with these settings, or 0."""
    _, training = settings = request.resolve()
    for training_folder in trainings_of(Path(folder)):
        model = training_folder / Path(folder).name / request.first_folder
        with contextlib.suppress(InputError):
            config, rows = read_config(model), read_epochs(model, ["epoch", "updates"])
            if (config.architecture, config.training) == settings and rows:
                epoch, updates = rows[-1]
                return min(1.0, max(epoch / training.epochs, updates / (training.updates or math.inf)))
    return 0.0


def _weight_bytes(folder: Path) -> int:
    """Return the size of the weights in a folder, which may have them in several formats."""
    for pattern in ("*.safetensors", "*.bin", "checkpoints/model.ckpt"):
        files = list(folder.glob(pattern))
        if files:
            return sum(path.stat().st_size for path in files)
    return 0
