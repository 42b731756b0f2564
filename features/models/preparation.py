"""What happens before the first update: vocabularies, networks, folders, and the checks of all of them."""

import dataclasses
import math
import random
from collections.abc import Sequence
from pathlib import Path

import torch

from features.models.batches import bucketed
from features.models.folder import Model, ModelConfig, check_free, create_folder, load_model, read_config
from features.models.learner import Learner, TokenPair, encode
from features.models.model import EncoderDecoder
from features.models.run import Run
from features.models.tables import find
from features.models.vocabulary import PADDING, UNKNOWN, Vocabulary, build_vocabulary, load_vocabulary
from features.progress import note
from moses_io.errors import InputError


def prepare(
    configs: Sequence[ModelConfig],
    corpus: Sequence[TokenPair],
    dev: Sequence[TokenPair],
    folder: Path,
    device: torch.device,
    start: Path | None,
    resume: bool,
) -> Run:
    """Make a run at its beginning, or, where `resume` finds the folder of one, with its vocabularies and metrics.

    Arguments and errors are those of `train`.
    """
    settings = configs[0].training
    if settings.bfloat16 and device.type != "cuda":
        raise InputError("setting 'bfloat16' needs a GPU")
    kept = [pair for pair in corpus if min(map(len, pair)) > 0 and max(map(len, pair)) <= settings.length]
    if not kept:
        raise InputError(f"no sentence pair to train on: each has an empty side or more than {settings.length} words")
    folders = [folder / config.direction for config in configs] if len(configs) > 1 else [folder]
    known = resume and all((place / "config.json").exists() for place in folders)
    if known:
        _check_same(configs, folders)
    else:
        check_free(folder)
    started = _start_models(configs, start, device)
    if known:
        sides = load_vocabulary(folders[0], "source"), load_vocabulary(folders[0], "target")
    elif started:
        sides = started[0].source, started[0].target
    else:
        source, target = ([pair[side] for pair in kept] for side in (0, 1))
        sides = build_vocabulary(source, settings), build_vocabulary(target, settings)
    torch.manual_seed(settings.seed)
    learners = []
    for number, (config, place) in enumerate(zip(configs, folders, strict=True)):
        source_side, target_side = sides if number == 0 else sides[::-1]
        network = _network(config, len(source_side), len(target_side), started[number] if started else None).to(device)
        learners.append(Learner(config, place, network, source_side, target_side))
        if known:
            learners[-1].read_rows()
        else:
            create_folder(place, config, source_side, target_side)
    _tell(learners, kept, corpus, dev, device)
    return _run(learners, kept, dev, device)


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
    places = [start / config.direction for config in configs] if len(configs) > 1 else [start]
    models = [load_model(place, device) for place in places]
    for config, model, place in zip(configs, models, places, strict=True):
        for name in ("direction", "right_to_left"):
            _check_equal(place, name, getattr(model.config, name), getattr(config, name))
        for field in dataclasses.fields(config.architecture):
            if field.name != "objectives":
                found, wanted = (getattr(which.architecture, field.name) for which in (model.config, config))
                _check_equal(place, field.name, found, wanted)
    return models


def _check_same(configs: Sequence[ModelConfig], folders: Sequence[Path]) -> None:
    """Refuse to go on with a training of other settings."""
    for config, place in zip(configs, folders, strict=True):
        found = dataclasses.asdict(read_config(place))
        wanted = dataclasses.asdict(config)
        for part in ("architecture", "training"):
            found |= found.pop(part)
            wanted |= wanted.pop(part)
        for name, value in wanted.items():
            _check_equal(place, name, found[name], value)


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
