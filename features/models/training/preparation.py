"""What happens before the first update: vocabularies, networks, folders, and the checks of all of them."""

import dataclasses
import hashlib
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from features.models.batches import bucketed
from features.models.folder import WEIGHTS, Model, ModelConfig, check_free, create_folder, load_model, read_config
from features.models.network.model import EncoderDecoder
from features.models.tables import find
from features.models.training.checkpoint import Run
from features.models.training.learner import Learner, TokenPair, encode
from features.models.vocabulary import PADDING, UNKNOWN, Vocabulary, build_vocabulary, load_vocabulary
from features.progress import note
from moses_io.errors import InputError
from moses_io.text import encode as encode_text

_STARTED = ("direction", "right_to_left", "bpe", "words", "frequency")
"""What a model shares with the one that it starts from, beside the architecture."""


def prepare(
    configs: Sequence[ModelConfig],
    corpus: Sequence[TokenPair],
    dev: Sequence[TokenPair],
    folder: Path,
    device: torch.device,
    start: Path | None,
    resume: bool,
    known: bool,
) -> Run:
    """Make a run at its beginning, and its folders; where they are `known`, take their vocabularies.

    Other arguments and errors are those of `train`.
    """
    configs = [dataclasses.replace(config, corpus=_digest(corpus, dev)) for config in configs]
    settings = configs[0].training
    if settings.bfloat16 and device.type != "cuda":
        raise InputError("setting 'bfloat16' needs a GPU")
    kept = [pair for pair in corpus if min(map(len, pair)) > 0 and max(map(len, pair)) <= settings.length]
    if not kept:
        raise InputError(f"no sentence pair to train on: each has an empty side or more than {settings.length} words")
    folders = _folders(configs, folder)
    if known:
        _check_same(configs, folders)
    else:
        check_free(folder, resume)
    started = _start_models(configs, start, device)
    if known:
        sides = tuple(load_vocabulary(folders[0], side, settings.bpe > 0) for side in ("source", "target"))
    elif started:
        sides = started[0].source, started[0].target
    else:
        sides = tuple(build_vocabulary([pair[side] for pair in kept], settings) for side in (0, 1))
    torch.manual_seed(settings.seed)
    learners = []
    for number, (config, place) in enumerate(zip(configs, folders, strict=True)):
        source, target = sides if number == 0 else sides[::-1]
        network = _network(config, len(source), len(target), started[number] if started else None).to(device)
        learners.append(Learner(config, place, network, source, target))
        if not known:
            create_folder(place, config, source, target)
    _tell(learners, kept, corpus, dev, device)
    return _run(learners, kept, dev, device)


def is_finished(
    configs: Sequence[ModelConfig], corpus: Sequence[TokenPair], dev: Sequence[TokenPair], folder: Path
) -> bool:
    """Say whether this training ended in `folder`; one of other settings or text there is an `InputError`."""
    folders = _folders(configs, folder)
    if not all((place / WEIGHTS).exists() for place in folders):
        return False
    _check_same([dataclasses.replace(config, corpus=_digest(corpus, dev)) for config in configs], folders)
    return True


def _folders(configs: Sequence[ModelConfig], folder: Path) -> list[Path]:
    return [folder / config.direction for config in configs] if len(configs) > 1 else [folder]


def _digest(corpus: Sequence[TokenPair], dev: Sequence[TokenPair]) -> str:
    total = hashlib.sha256()
    for pairs in (corpus, dev):
        for source, target in pairs:
            total.update(encode_text("\t".join((" ".join(source), " ".join(target))) + "\n"))
        total.update(b"\n")
    return total.hexdigest()[:12]


def _run(learners: list[Learner], kept: Sequence[TokenPair], dev: Sequence[TokenPair], device: torch.device) -> Run:
    settings = learners[0].config.training
    encoded, encoded_dev = (
        [
            encode(pairs if number == 0 else [pair[::-1] for pair in pairs], one.config, one.source, one.target)
            for number, one in enumerate(learners)
        ]
        for pairs in (kept, dev)
    )
    weights = [weight for learner in learners for weight in learner.network.parameters()]
    optimizer = find("optimizer", settings.optimizer)(weights, lr=settings.rate)
    batches = len(bucketed(encoded[0].pairs, settings.batch, settings.tokens))
    planned = settings.epochs * math.ceil(batches / settings.accumulate)
    planned = min(planned, settings.updates) if settings.updates else planned
    return Run(settings, learners, encoded, encoded_dev, optimizer, planned, device, random.Random(settings.seed))


def _network(config: ModelConfig, source: int, target: int, start: Model | None) -> EncoderDecoder:
    """Make a network, with the weights of `start` where it has them."""
    network = EncoderDecoder(config.architecture, source, target, config.training.dropout)
    if config.training.init:
        for weight in network.parameters():
            torch.nn.init.uniform_(weight, -config.training.init, config.training.init)
        with torch.no_grad():
            for embedding in (network.source_embedding, network.target_embedding):
                embedding.weight[PADDING].zero_()
    if start:
        network.load_state_dict(network.state_dict() | start.network.state_dict())
    return network


def _start_models(configs: Sequence[ModelConfig], start: Path | None, device: torch.device) -> list[Model]:
    """Load what the training starts from: models that differ in what training adds to the likelihood alone."""
    if start is None:
        return []
    places = _folders(configs, start)
    models = [load_model(place, device) for place in places]
    for config, model, place in zip(configs, models, places, strict=True):
        found, wanted = _flat(model.config), _flat(config)
        for name in (*_STARTED, *(field.name for field in dataclasses.fields(config.architecture))):
            if name != "objectives":
                _check_equal(place, name, found[name], wanted[name])
    if len(models) > 1 and (models[0].source, models[0].target) != (models[1].target, models[1].source):
        raise InputError(f"{start}: the two models have different vocabularies")
    return models


def _check_same(configs: Sequence[ModelConfig], folders: Sequence[Path]) -> None:
    """Refuse to go on with a training of other settings."""
    for config, place in zip(configs, folders, strict=True):
        found = _flat(read_config(place))
        for name, value in _flat(config).items():
            _check_equal(place, name, found[name], value)


def _flat(config: ModelConfig) -> dict[str, Any]:
    """Return all settings by name."""
    values = dataclasses.asdict(config)
    parts: dict[str, Any] = values.pop("architecture") | values.pop("training")
    return parts | values


def _check_equal(place: Path, name: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise InputError(f"{place}: this model has {name} {found!r}, asked for is {wanted!r}")


def _tell(
    learners: Sequence[Learner],
    kept: Sequence[TokenPair],
    corpus: Sequence[TokenPair],
    dev: Sequence[TokenPair],
    device: torch.device,
) -> None:
    """Say what is about to be trained, and how much of dev the vocabularies do not know."""
    first = learners[0]
    sizes = sum(weight.numel() for learner in learners for weight in learner.network.parameters())
    directions = " and ".join(learner.config.direction for learner in learners)
    note(
        f"{first.config.preset}, {directions}: {len(kept)} of {len(corpus)} pairs, vocabularies of "
        f"{len(first.source)} and {len(first.target)}, {sizes:,} parameters, on {device}"
    )
    shares = [_unknown([pair[side] for pair in dev], (first.source, first.target)[side]) for side in (0, 1)]
    note(f"unknown words of dev: source {100 * shares[0]:.1f} %, target {100 * shares[1]:.1f} %")
    if max(shares) > 0.5:
        note("warning: most words of dev are unknown; are source and target the same way round in training and dev?")


def _unknown(sentences: Sequence[Sequence[str]], vocabulary: Vocabulary) -> float:
    numbers = [number for tokens in sentences for number in vocabulary.encode(tokens)]
    return numbers.count(UNKNOWN) / max(1, len(numbers))
