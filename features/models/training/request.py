"""Training requests for files of parallel text."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from features.links import NO_LINKS, encoded_links, swapped
from features.models.config import ModelConfig
from features.models.presets import find_preset, resolve
from features.models.settings import VOCABULARY, Architecture, Training
from features.ragged import Ragged
from features.sentences import TokenPairs
from moses_io.alignment import read_alignments
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles, parallel_lines, tokens

PAIR = {"forward": "../backward", "backward": "../forward"}
"""Folders of two models that train together, each with its relative path to the other."""


@dataclass(frozen=True)
class TrainingRequest:
    """A model to train: its preset, direction and settings."""

    preset: str  # name of the system
    backward: bool = False  # train p(source|target)
    right_to_left: bool = False  # read the target from its last word to its first
    paper_sizes: bool = False  # use the settings of the paper instead of the small ones
    settings: Mapping[str, Any] = field(default_factory=dict)  # settings that differ from the preset

    def resolve(self) -> tuple[Architecture, Training]:
        """Return all settings.

        Raises:
            InputError: an unknown name, a value out of range, or incompatible settings.
        """
        return self._resolved

    @cached_property  # a plan needs the settings of each model hundreds of times
    def _resolved(self) -> tuple[Architecture, Training]:
        preset = find_preset(self.preset)
        if self.symmetric and (self.backward or self.right_to_left):
            raise InputError(f"preset {self.preset!r} trains both directions, from left to right")
        return resolve(preset, self.paper_sizes, self.settings)

    def check(self, start: str) -> None:
        """Raise `InputError` if the model cannot be trained. `start` is the folder to start from, or empty."""
        architecture, training = self.resolve()
        if training.guided_alignment and not architecture.attends:
            raise InputError("setting 'guided_alignment' needs a decoder with attention to the source")
        if architecture.language_model and (self.backward or self.symmetric):
            raise InputError("a language model predicts the target language only. Train it without --backward")
        if self.symmetric and architecture.decoder != "attend-first":
            raise InputError(
                "the trace of both directions needs decoder 'attend-first', whose rows belong to the words"
            )
        if find_preset(self.preset).pretrained and not start:
            raise InputError(
                f"preset {self.preset!r} starts from a trained model: --pretrained-model DIR, or pretrained_model in "
                "an experiment file"
            )

    def check_synthetic(self, synthetic: ParallelFiles | None) -> None:
        """Raise `InputError` if the training cannot use synthetic pairs, or if it needs them and there are none."""
        if synthetic and (self.backward or self.symmetric):
            raise InputError(
                f"{synthetic.source}: synthetic pairs are for forward models. A model of p(source|target) would learn "
                "to predict machine translations"
            )
        if self.resolve()[1].upsample > 1 and (self.backward or self.symmetric):
            raise InputError("setting 'upsample' is for forward models, which can train on synthetic pairs")
        if not synthetic and self.resolve()[1].upsample > 1:
            raise InputError(
                "setting 'upsample' is for training on synthetic pairs: --synthetic-source FILE, or "
                "train.monolingual with back-translation in an experiment file"
            )

    def check_corpus(self, corpus: ParallelFiles) -> None:
        """Raise `InputError` if a setting needs the word alignment and it is missing, or if no setting uses it."""
        _, training = self.resolve()
        if self.reads(corpus) != corpus:
            raise InputError(
                f"{corpus.alignment}: a word alignment is for the settings lexicon and guided_alignment. Set one"
            )
        if training.guided_alignment and not corpus.alignment:
            raise InputError(
                "setting 'guided_alignment' needs the word alignment of the corpus: --alignment FILE, or "
                "train.alignment in an experiment file"
            )

    def reads(self, corpus: ParallelFiles) -> "ParallelFiles":
        """Return the files of a corpus that this training reads: without the alignment if no setting uses links."""
        architecture, training = self.resolve()
        learns_from_links = training.guided_alignment > 0 or architecture.lexicon != "none"
        return corpus if learns_from_links else replace(corpus, alignment="")

    def check_start(self, other: "TrainingRequest") -> None:
        """Raise `InputError` if the training cannot start from a model of `other`.

        Both must have the same direction, word order, vocabulary settings and architecture, except for objectives.
        `other` must not be fine-tuned on dev.
        """
        (their_parts, theirs), (our_parts, ours) = other.resolve(), self.resolve()
        expected = self._direction | asdict(our_parts)
        for name, value in (other._direction | asdict(their_parts)).items():
            if name != "objectives" and value != expected[name]:
                raise InputError(f"that model has {name} {value!r}, this one {expected[name]!r}")
        if theirs.fine_tuning_epochs:
            raise InputError("that model is fine-tuned on dev (fine_tuning_epochs), on which this one is evaluated")
        if any(getattr(theirs, name) != getattr(ours, name) for name in VOCABULARY):
            raise InputError(f"that model has another vocabulary: {', '.join(VOCABULARY)} must be the same")

    @property
    def _direction(self) -> dict[str, bool]:
        return {"symmetric": self.symmetric, "backward": self.backward, "right_to_left": self.right_to_left}

    @property
    def symmetric(self) -> bool:
        """Whether both directions train together."""
        return find_preset(self.preset).symmetric

    @property
    def language_model(self) -> bool:
        """Whether the model reads no source."""
        return self.resolve()[0].language_model

    @property
    def folders(self) -> tuple[str, ...]:
        """Subfolders of the models in the training's folder: two, or one empty name for a single model."""
        return tuple(PAIR) if self.symmetric else ("",)

    @property
    def first_folder(self) -> str:
        """Subfolder of the first model: the forward model of a pair, or the only model."""
        return self.folders[0]


@dataclass(frozen=True)
class TrainingFiles:
    """Texts of a training.

    Attributes:
        corpus: training corpus.
        dev: dev set, for early stopping and optionally for fine-tuning.
        synthetic: more pairs for training, whose source is a machine translation of the target, or None.
    """

    corpus: ParallelFiles
    dev: ParallelFiles
    synthetic: ParallelFiles | None = None


def synthetic_files(source: str, target: str) -> ParallelFiles | None:
    """Return the files of synthetic pairs, or None if both paths are empty. Raise `InputError` if one is empty."""
    if bool(source) != bool(target):
        missing = "target" if source else "source"
        raise InputError(f"{source or target}: synthetic pairs need both sides, the {missing} is missing")
    return ParallelFiles(source, target) if source else None


def train_model(
    request: TrainingRequest,
    files: TrainingFiles,
    output: str,
    device: str,
    start: str = "",
    resume: bool = False,
    together: bool = False,
) -> None:
    """Train into the folder `output`. Settings and files are checked before torch is loaded.

    Args:
        request: the model to train.
        files: corpus and dev set.
        output: folder of the model, or of the pair of models.
        device: `auto`, `cpu` or `cuda`.
        start: folder of a trained model to start from, empty for none.
        resume: continue a training that was killed.
        together: train together with the other processes that torchrun started. Each calls this function with the same
            arguments.

    Raises:
        InputError: settings, files or folders are invalid, the memory does not suffice, or the loss diverges.
    """
    request.check(start)
    request.check_corpus(files.corpus)
    request.check_synthetic(files.synthetic)
    architecture, training = request.resolve()
    (corpus, links), (dev, _) = (read_corpus(parallel, request.backward) for parallel in (files.corpus, files.dev))
    synthetic = read_corpus(files.synthetic, request.backward)[0] if files.synthetic else ()
    from features.models.device import find_device
    from features.models.training.loop import train
    from features.models.training.preparation import Task
    from features.models.training.ranks import Ranks, join_processes

    partners = PAIR if request.symmetric else {"backward" if request.backward else "forward": ""}
    models = [
        ModelConfig(request.preset, direction, architecture, training, request.right_to_left, partner)
        for direction, partner in partners.items()
    ]
    torch_device = find_device(device)
    with join_processes(torch_device) if together else nullcontext(Ranks(torch_device)) as ranks:
        task = Task(
            models,
            corpus,
            dev,
            folder=Path(output),
            device=ranks.device,
            links=links,
            synthetic=synthetic,
            ranks=ranks,
            start=Path(start) if start else None,
        )
        train(task, resume)


def read_corpus(files: ParallelFiles, backward: bool) -> tuple[TokenPairs, Ragged]:
    """Return the pairs, and the encoded links of each pair if they are known. A backward model has exchanged sides."""
    first, second = (1, 0) if backward else (0, 1)
    lines = parallel_lines(files.source, files.target)
    pairs = TokenPairs.of((tokens(pair[first]), tokens(pair[second])) for pair in lines)
    links = NO_LINKS
    if files.alignment:
        lengths = [side.numbers.lengths.tolist() for side in (pairs.source, pairs.target)]
        links = encoded_links(read_alignments(files.alignment, lengths[first], lengths[second]))
    return pairs, swapped(links) if backward else links
