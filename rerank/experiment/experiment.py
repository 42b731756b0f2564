"""An experiment: its corpus, lists, models and features, and the paths of its results."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from features.request import FeatureRequest
from moses_io.files.text import ParallelFiles
from moses_io.filters import Filters
from moses_io.input_filters import UNFILTERED, InputFilters
from rerank.experiment.entries import SELECTION, SET, UNNAMED, NbestFiles, ShortlistEntry
from rerank.experiment.model_entries import ModelEntry, translating
from rerank.systems.translations import CandidateRequest, list_name
from rerank.tuners.table import Tuning
from rerank.tuning.tune import FoldSettings
from rerank.tuning.tuning_set import Lists


@dataclass(frozen=True)
class TuningEntry:
    """The table `[tuning]`: settings of the tuner, and checks on folds of dev.

    Attributes:
        tuning: tuner, metric and their settings.
        fold_settings: cross-validation, fallback and ablation.
        filters: text filters that apply before the metric.
        confidence: metric that the sentence-level confidence estimates predict.
    """

    tuning: Tuning
    fold_settings: FoldSettings
    filters: Filters
    confidence: str


@dataclass(frozen=True)
class Unplanned:
    """Tables of an experiment whose models are chosen by the time of the run.

    Attributes:
        minutes: minutes of the run.
        apply_seconds: maximum expected seconds in which the reranker processes 1,000 sentences, or None.
        values: the tables, without the keys `minutes` and `apply_seconds`.
        folder: base folder of relative paths.
    """

    minutes: float
    apply_seconds: float | None
    values: dict[str, Any]
    folder: Path


@dataclass(frozen=True)
class Experiment:
    """An experiment file. All paths are absolute.

    Attributes:
        train: corpus that models are trained on.
        monolingual: text of the target language, on which language models and, with `back_translation`, forward models
            are also trained, or an empty path.
        back_translation: whether the first backward model translates the monolingual text for forward models.
        dev: set on which the weights are tuned. It also decides when the training of a model stops.
        selection: set on which the tuner `auto` compares tuners, or None if there is none.
        tests: test sets by name. They are reranked and, if they have references, evaluated.
        initial_weights: file of the initial weights, with which Moses decoded.
        output: folder of results.
        models: models by name.
        features: features by label. `neural:NAME` uses the model NAME, `neural:NAME/forward` one model of a pair.
        pretrained: pretrained models that add candidates to the lists.
        tuning: settings of the tuning.
        shortlist: features that are computed only for the candidates that all others rank best, or None.
        ablation: whether reports have an ablation, the contribution of each feature.
        trained_models: folder of models that are already trained, or empty if this experiment trains them.
        unplanned: the tables, if models and features are still to be chosen, otherwise None.
        input_filters: filters for the corpus and the files of all sets, which join subwords.
        text: content of `experiment.toml` in the folder of results, which names all models and features. It is empty if
            the experiment file itself names them.
    """

    train: ParallelFiles
    dev: NbestFiles
    selection: NbestFiles | None
    tests: dict[str, NbestFiles]
    initial_weights: str
    output: Path
    models: dict[str, ModelEntry]
    features: dict[str, FeatureRequest]
    tuning: TuningEntry
    shortlist: ShortlistEntry | None = None
    ablation: bool = True
    trained_models: str = ""
    unplanned: Unplanned | None = None
    text: str = ""
    monolingual: str = ""
    back_translation: bool = True
    pretrained: tuple[CandidateRequest, ...] = ()
    input_filters: InputFilters = UNFILTERED

    @property
    def sets(self) -> dict[str, NbestFiles]:
        """The sets by name: dev, `selection` if it exists, then the test sets."""
        return {"dev": self.dev, **({SELECTION: self.selection} if self.selection else {}), **self.tests}

    @property
    def files(self) -> list[str]:
        """Paths of the corpus, the files of all sets and the initial weights."""
        lists = [path for part in self.sets.values() for path in part.files]
        texts = [*self.train.files, *([self.monolingual] if self.monolingual else [])]
        return [*texts, *lists, self.initial_weights]

    @property
    def references(self) -> tuple[str, ...]:
        """Paths of the references of all sets."""
        return tuple(path for part in self.sets.values() for path in part.reference)

    @property
    def planned_file(self) -> str:
        """Path of the experiment file with the models that a run chooses."""
        return self.result("experiment.toml")

    @property
    def selected(self) -> str:
        """Path of the selected sentences of the monolingual text."""
        return self.result("monolingual.gz")

    @property
    def back_translations(self) -> str:
        """Path of the translations of `selected` by `back_translator`."""
        return self.result("monolingual.translations.gz")

    @property
    def back_translator(self) -> str:
        """Name of the model that translates the monolingual text."""
        return next(name for name, entry in self.models.items() if entry.request.backward)

    def synthetic(self, name: str) -> ParallelFiles | None:
        """Return the synthetic pairs on which a model is trained in addition to the corpus, or None."""
        request = self.models[name].request
        if self.monolingual and request.language_model:
            return ParallelFiles(self.selected, self.selected)
        if not self.monolingual or not self.back_translation or request.backward or request.symmetric:
            return None
        return ParallelFiles(self.back_translations, self.selected)

    @property
    def translates_text(self) -> bool:
        """Whether models are trained on translations of the monolingual text."""
        pairs = filter(None, map(self.synthetic, self.models))
        return any(files.source == self.back_translations for files in pairs)

    def result(self, name: str) -> str:
        """Return the path of a file or folder in the folder of results."""
        return str(self.output / name)

    def model(self, name: str) -> str:
        """Return the folder of a model, or of one model of a pair.

        A name that is no model of the experiment is the path of a folder, and is returned unchanged.
        """
        if name.partition("/")[0] not in self.models:
            return name
        return str(Path(self.trained_models or self.result("models")) / name)

    @property
    def candidates(self) -> tuple[CandidateRequest, ...]:
        """Requests for candidates that models add to the lists."""
        return (*self.own_candidates, *self.pretrained)

    @property
    def own_candidates(self) -> tuple[CandidateRequest, ...]:
        """Requests for candidates of the models of the experiment."""
        return tuple(
            CandidateRequest(
                list_name(name),
                tuple(self.model(f"{each}/{self.models[each].request.first_folder}") for each in models),
                self.models[models[0]].candidates,
            )
            for name, models in translating(self.models).items()
        )

    @property
    def weights(self) -> str:
        """Path of the tuned weights."""
        return self.result("weights.ini")

    def requests(self, name: str = SET) -> list[FeatureRequest]:
        """Return the features with the folders of their models. `{set}` in an argument becomes the name of a set."""
        requests = [replace(each, argument=each.argument.replace(SET, name)) for each in self.features.values()]
        return [each.with_parts([self.model(part) for part in each.parts]) for each in requests]

    def split_requests(self, name: str) -> tuple[list[FeatureRequest], list[FeatureRequest]]:
        """Return the features of a set that are computed for all candidates, and the features of its shortlist."""
        late = self.shortlist.features if self.shortlist else ()
        requests = self.requests(name)
        return [each for each in requests if each.label not in late], [each for each in requests if each.label in late]

    def lists(self, name: str) -> Lists:
        """Return the scored list of a set and its references."""
        return Lists([self.scored(name)], self.sets[name].reference, self.tuning.filters)

    def nbest(self, name: str) -> str:
        """Return the path of the list of a set, including the candidates that models add, before scoring."""
        return self.result(f"{name}.candidates.gz") if self.candidates else self.sets[name].nbest

    def translations(self, name: str) -> dict[str, str]:
        """Return the paths of the translations of a set by models that add candidates, by the names of their lists."""
        return {each.name: self.result(f"{name}.translations.{each.name}") for each in self.candidates}

    def scored(self, name: str) -> str:
        """Return the path of the list of a set with all candidates and features."""
        return self.result(f"{name}.nbest.gz") if self.features else self.nbest(name)

    def whole(self, name: str) -> str:
        """Return the path of the list of a set with all candidates and the features that are computed for all."""
        if not self.shortlist:
            return self.scored(name)
        return self.result(f"{name}.all.nbest.gz") if self.split_requests(name)[0] else self.nbest(name)

    @property
    def shortlist_weights(self) -> str:
        """Path of the weights that select the shortlist."""
        return self.result("shortlist.ini")

    def report(self, test: str, suffix: str) -> str:
        """Return the path of the report of a test set. `suffix` is `txt`, `html` or `json`."""
        return self.result(f"report.{suffix}" if test == UNNAMED else f"{test}.report.{suffix}")
