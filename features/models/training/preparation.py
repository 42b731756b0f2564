"""Preparation of a training before its first update: vocabularies, networks, folders, and checks."""

import dataclasses
import hashlib
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from features.links import NO_LINKS, WIDTH, encoded_links, swapped
from features.models.config import RECORD, WEIGHTS, ModelConfig, read_config
from features.models.device import memory_of
from features.models.folder import Model, check_free, create_folder, load_model, load_vocabularies, outline
from features.models.network.model import EncoderDecoder
from features.models.settings import VOCABULARY, Architecture, Training
from features.models.tables import find
from features.models.training.checkpoint import Run, restore
from features.models.training.encoding import encode, planned_updates
from features.models.training.epoch import warn_of_long_warmup
from features.models.training.learner import Learner
from features.models.training.lexicon import counted_lexicon, estimated_lexicon
from features.models.training.ranks import ALONE, Ranks
from features.models.vocabulary import PADDING, UNKNOWN, EmptyVocabulary, Vocabulary, build_vocabulary
from features.progress import log
from features.ragged import Ragged
from features.sentences import Sentences, TokenPair, TokenPairs, line_of
from features.translation_table import Translations
from moses_io.alignment import Alignment
from moses_io.files.errors import InputError, counted
from moses_io.files.streams import sha256

_PARTS = tuple(part.name for part in dataclasses.fields(Architecture) if part.name != "objectives")
_SHARED_WITH_START = ("direction", "right_to_left", *VOCABULARY, *_PARTS)
"""Settings that a model must share with the model that it starts from."""
TAG = "<BT>"
"""First word of the sources of synthetic pairs."""
LARGE = "hidden_size, embedding_size, attention_size, decoder_layers or vocabulary_size"
"""Settings that make a network large, for messages."""


@dataclass(frozen=True)
class Task:
    """A training as requested."""

    models: Sequence[ModelConfig]  # one, or a forward and a backward model that train together
    corpus: Sequence[TokenPair]  # token pairs in the direction of the first model
    dev: Sequence[TokenPair]  # token pairs for early stopping, and optionally for fine-tuning
    folder: Path  # of the model, or the parent of a pair's folders `forward` and `backward`
    device: torch.device
    links: Sequence[Alignment] | Ragged = NO_LINKS  # links of each pair, also encoded, empty without word alignment
    synthetic: Sequence[TokenPair] = ()  # pairs whose source is a translation of the target, without links
    ranks: Ranks = ALONE  # the processes that train together
    start: Path | None = None  # folder of the model or pair whose weights and vocabularies the training starts from

    @cached_property
    def configs(self) -> list[ModelConfig]:
        """Configurations of the models, with a digest of the text and of the weights that they start from."""
        digest = _digest(
            [TokenPairs.of(pairs) for pairs in (self.corpus, self.synthetic) if pairs],
            self.dev,
            encoded_links(self.links),
            [folder / WEIGHTS for folder in self.starts],
        )
        return [dataclasses.replace(model, corpus=digest) for model in self.models]

    @property
    def settings(self) -> Training:
        """Settings of the training."""
        return self.models[0].training

    @property
    def tags(self) -> list[str]:
        """The word before synthetic sources, or no word."""
        return [TAG] if len(self.synthetic) and self.settings.tag and not self.language_model else []

    @property
    def language_model(self) -> bool:
        """Whether the model reads no source."""
        return self.models[0].architecture.language_model

    @property
    def folders(self) -> list[Path]:
        """Folder of each model."""
        return self._of_models(self.folder)

    @property
    def starts(self) -> list[Path]:
        """Folder of the model that each model starts from, empty if none."""
        return self._of_models(self.start) if self.start else []

    def _of_models(self, folder: Path) -> list[Path]:
        return [folder / model.direction for model in self.models] if len(self.models) > 1 else [folder]


@dataclass(frozen=True)
class _Corpus:
    """The pairs that a training uses.

    Attributes:
        pairs: all usable pairs of an epoch: the real ones, each `upsample` times, and then the synthetic ones.
        links: encoded links of the pairs, no rows if they are not known. Synthetic pairs have none.
        real: the usable real pairs, once.
        real_links: their encoded links, no rows if they are not known.
    """

    pairs: TokenPairs
    links: Ragged
    real: TokenPairs
    real_links: Ragged


def begin_run(task: Task, resume: bool) -> Run:
    """Create a run at its beginning, and its folders. Arguments and errors are as in `train`."""
    corpus = _corpus_of(task)
    check_free(task.folder, resume)
    starts = _start_models(task)
    if starts:
        vocabularies = [starts[0].source, starts[0].target]
        if task.tags and not task.settings.bpe and TAG not in starts[0].source.words:
            raise InputError(f"{task.start}: a model without {TAG}, the tag of synthetic sources. Set tag=false")
    else:
        # A vocabulary of words has those of the real pairs, because more words would enlarge the softmax. Subwords are
        # learned from all pairs.
        pairs = corpus.pairs if task.settings.bpe else corpus.real
        source = EmptyVocabulary() if task.language_model else vocabulary_of(pairs.source, task.settings, task.tags)
        vocabularies = [source, vocabulary_of(pairs.target, task.settings)]
    learners = _learners(task, vocabularies, starts)
    for learner in learners:
        create_folder(learner.folder, learner.config, learner.source, learner.target)
    run = _run(task, corpus, learners)
    for number, learner in enumerate(learners):
        if learner.network.lexicon and not starts:
            learner.network.lexicon.fill(_lexicon(corpus, run, number))
    return run


def _lexicon(corpus: _Corpus, run: Run, number: int) -> Translations:
    """Return the lexicon of a learner, estimated from the real pairs."""
    pairs, links = corpus.real, corpus.real_links
    if not links:
        return estimated_lexicon(run.corpus[number], len(pairs))
    given = (pairs.swapped(), swapped(links)) if number else (pairs, links)
    return counted_lexicon(*given, run.learners[number])


def vocabulary_of(sentences: Sentences, settings: Training, extra: Sequence[str] = ()) -> Vocabulary:
    """Build a vocabulary, and log a message if the text gives fewer subwords than requested."""
    vocabulary = build_vocabulary(sentences, settings, extra)
    if vocabulary.subwords and len(vocabulary.subwords.all_subwords) < settings.bpe:
        log.info(f"bpe: the text has {len(vocabulary.subwords.all_subwords)} subwords, not {settings.bpe}")
    return vocabulary


def resume_run(task: Task, checkpoint: Path) -> Run:
    """Restore a run from its checkpoint, which has all weights.

    Raises:
        InputError: the settings differ from the task's, or the checkpoint or a file of the folder is missing or
            damaged.
    """
    corpus = _corpus_of(task)
    _check_same(task)
    vocabularies = load_vocabularies(task.folders[0], task.models[0])
    run = _run(task, corpus, _learners(task, vocabularies, []))
    restore(run, checkpoint)
    for folder in task.folders:
        if run.progress.epoch and not (folder / WEIGHTS).exists():
            epochs = counted(run.progress.epoch, "epoch")
            raise InputError(f"{folder}: no {WEIGHTS}, expected after {epochs} of training")
    return run


def is_finished(task: Task) -> bool:
    """Return whether this training has ended in its folder.

    Raises:
        InputError: the folder has a model with other settings, or of other text.
    """
    if not all((folder / WEIGHTS).exists() for folder in task.folders):
        return False
    _check_same(task)
    return True


def _digest(corpora: Sequence[TokenPairs], dev: Sequence[TokenPair], links: Ragged, starts: Sequence[Path]) -> str:
    total, *synthetic = (
        corpus.digest.copy() if corpus.digest else hashlib.sha256(b"".join(line_of(*pair) for pair in corpus))
        for corpus in corpora
    )
    for digest in synthetic:
        total.update(digest.digest())
    total.update(b"\n" + b"".join(line_of(*pair) for pair in dev) + b"\n")
    texts = {int(link): f"{divmod(int(link), WIDTH)}" for link in np.unique(links.values)}
    for row in links:
        total.update(f"[{', '.join([texts[link] for link in sorted(row)])}]\n".encode())
    for weights in starts:
        total.update(sha256(weights).encode())
    return total.hexdigest()[:12]


def usable(pair: TokenPair, task: Task) -> bool:
    """Return whether a pair can be trained on: no side that the model reads or predicts is empty or too long."""
    lengths = [len(side) for side in (pair[1:] if task.language_model else pair)]
    return min(lengths) > 0 and max(lengths) <= task.settings.max_length


def _corpus_of(task: Task) -> _Corpus:
    """Return the pairs that a training uses. Raise `InputError` if no real pair is usable."""
    settings = task.settings
    pairs = TokenPairs.of(task.corpus)
    links = encoded_links(task.links)
    mask = _usable_pairs(pairs, task)
    if not mask.any():
        raise InputError(
            f"no sentence pair to train on: each has an empty side or more than {settings.max_length} words"
        )
    real, real_links = pairs.select(mask), links.select(mask) if links else links
    synthetic = TokenPairs.of(task.synthetic)
    if not len(synthetic):
        return _Corpus(real, real_links, real, real_links)
    synthetic = synthetic.select(_usable_pairs(synthetic, task))
    for tag in task.tags:
        synthetic = TokenPairs(synthetic.source.with_first_word(tag), synthetic.target)
    no_links = Ragged(real_links.values[:0], np.zeros(len(synthetic) + 1, np.int64))
    all_links = Ragged.joined([*[real_links] * settings.upsample, no_links]) if links else links
    return _Corpus(real.repeated(settings.upsample).joined(synthetic), all_links, real, real_links)


def _usable_pairs(pairs: TokenPairs, task: Task) -> NDArray[np.bool_]:
    """Return for each pair (P,) whether it is `usable`."""
    sides = [pairs.target] if task.language_model else [pairs.source, pairs.target]
    lengths = np.stack([side.numbers.lengths for side in sides])  # (1 or 2, P)
    mask: NDArray[np.bool_] = (lengths.min(axis=0) > 0) & (lengths.max(axis=0) <= task.settings.max_length)  # (P,)
    return mask


def _learners(task: Task, vocabularies: Sequence[Vocabulary], starts: Sequence[Model]) -> list[Learner]:
    """Create the networks. `vocabularies` are the source and target vocabularies of the first one."""
    _check_memory(task, [len(vocabulary) for vocabulary in vocabularies])
    torch.manual_seed(task.settings.seed)
    learners = []
    for number, (config, folder) in enumerate(zip(task.configs, task.folders, strict=True)):
        source, target = vocabularies[::-1] if number else vocabularies
        network = _network(config, len(source), len(target), starts[number] if starts else None).to(task.device)
        learners.append(Learner(config=config, folder=folder, network=network, source=source, target=target))
    return learners


def _check_memory(task: Task, sizes: list[int]) -> None:
    """Raise `InputError` if weights and gradients alone exceed the memory.

    `sizes` are the sizes of the first model's source and target vocabularies.
    """
    outlines = [
        outline(config.architecture, *(sizes[::-1] if number else sizes)) for number, config in enumerate(task.configs)
    ]
    weights = sum(tensor.numel() for tensors in outlines for tensor in tensors.values())
    needed, present = 2 * 4 * weights, memory_of(task.device)
    if needed > present:
        amounts = f"{weights:,} weights and their gradients take {needed / 2**30:,.0f} of {present / 2**30:.0f} GB"
        raise InputError(f"out of memory: {amounts}. Lower {LARGE}")


def _run(task: Task, used: _Corpus, learners: list[Learner]) -> Run:
    _announce(task, used, learners)
    settings, pairs = task.settings, used.pairs
    links = used.links if settings.guided_alignment else NO_LINKS
    corpus, dev = (encode(text, learners, known) for text, known in ((pairs, links), (task.dev, NO_LINKS)))
    weights = [weight for learner in learners for weight in learner.network.parameters()]
    planned = planned_updates(settings, corpus[0], pairs, learners)
    warn_of_long_warmup(settings.warmup_updates, planned)
    return Run(
        settings=settings,
        learners=learners,
        pairs=pairs if settings.bpe_dropout else (),
        links=links,
        corpus=corpus,
        dev=dev,
        optimizer=find("optimizer", settings.optimizer)(weights, lr=settings.learning_rate),
        planned=planned,
        device=task.device,
        rng=random.Random(settings.seed),
        ranks=task.ranks,
    )


def _network(config: ModelConfig, source: int, target: int, start: Model | None) -> EncoderDecoder:
    """Create a network, and copy all weights that `start` also has."""
    training = config.training
    network = EncoderDecoder(config.architecture, source, target, training.dropout, training.word_dropout)
    if training.init_range:
        for weight in network.parameters():
            torch.nn.init.uniform_(weight, -training.init_range, training.init_range)
        with torch.no_grad():
            for embedding in (network.source_embedding, network.target_embedding):
                embedding.weight[PADDING].zero_()
    if start:
        own, started = network.state_dict(), start.network.state_dict()
        network.load_state_dict(own | {name: tensor for name, tensor in started.items() if name in own})
    return network


def _start_models(task: Task) -> list[Model]:
    """Load the models that the training starts from, and check that vocabulary settings and architecture match.

    Only the objectives may differ, and the models must not be fine-tuned on dev.
    """
    models = [load_model(folder, task.device) for folder in task.starts]
    for config, folder in zip(task.configs, task.starts, strict=False):
        _check_settings(folder, config, _SHARED_WITH_START)
        if os.path.lexists(folder / RECORD):
            raise InputError(
                f"{folder}: this model was fine-tuned on dev (fine_tuning_epochs). Start from one that was not"
            )
    if len(models) > 1 and (models[0].source, models[0].target) != (models[1].target, models[1].source):
        raise InputError(f"{task.start}: the two models have different vocabularies")
    return models


def _check_same(task: Task) -> None:
    """Raise `InputError` if the folders have models with other settings."""
    for config, folder in zip(task.configs, task.folders, strict=True):
        _check_settings(folder, config, list(_flat(config)))


def _check_settings(folder: Path, config: ModelConfig, names: Sequence[str]) -> None:
    actual, expected = _flat(read_config(folder)), _flat(config)
    for name in names:
        if name == "corpus" and actual[name] != expected[name]:
            raise InputError(f"{folder}: this model was trained on other text, or started from another model")
        if actual[name] != expected[name]:
            raise InputError(f"{folder}: this model has {name} {actual[name]!r}, expected {expected[name]!r}")


def _flat(config: ModelConfig) -> dict[str, Any]:
    """Return all settings by name."""
    values = dataclasses.asdict(config)
    parts: dict[str, Any] = values.pop("architecture") | values.pop("training")
    return parts | values


def _announce(task: Task, used: _Corpus, learners: Sequence[Learner]) -> None:
    """Log the models to be trained, and the percentage of unknown tokens in dev."""
    first = learners[0]
    weights = sum(weight.numel() for learner in learners for weight in learner.network.parameters())
    directions = " and ".join(learner.config.direction for learner in learners)
    hardware = "the GPU" if task.device.type == "cuda" else counted(torch.get_num_threads(), "thread")
    hardware = f"{task.ranks.size} processes, each on {hardware}" if task.ranks.size > 1 else f"on {hardware}"
    pairs = f"{len(used.real)} of {len(task.corpus)} pairs"
    if len(task.synthetic):
        times = task.settings.upsample
        count = len(used.pairs) - times * len(used.real)
        pairs += f"{f' (each {times} times)' if times > 1 else ''}, {count} of {len(task.synthetic)} synthetic pairs"
    sizes = f"vocabularies of {len(first.source)} and {len(first.target)}"
    if task.language_model:
        directions, sizes = "language model", f"vocabulary of {len(first.target)}"
    log.info(f"{first.config.preset}, {directions}: {pairs}, {sizes}, {weights:,} parameters, {hardware}")
    source = _unknown_fraction([source for source, _ in task.dev], first.source)
    target = _unknown_fraction([target for _, target in task.dev], first.target)
    of_source = "" if task.language_model else f"source {100 * source:.1f} %, "
    log.info(f"unknown tokens of dev: {of_source}target {100 * target:.1f} %")
    if max(source, target) > 0.5:
        log.warning("most tokens of dev are unknown. Are source and target swapped in training or dev?")


def _unknown_fraction(sentences: Sequence[Sequence[str]], vocabulary: Vocabulary) -> float:
    numbers = [number for tokens in sentences for number in vocabulary.encode(tokens)]
    return numbers.count(UNKNOWN) / max(1, len(numbers))
