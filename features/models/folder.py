"""A model as a folder: `config.json`, `source.vocabulary`, `target.vocabulary`, `model.safetensors`.

Models on pieces of words also have `source.bpe` and `target.bpe`, of sentencepiece. Nothing is pickled, and scoring
needs nothing else; `dev.folds` and `fold-N.safetensors` are for the sentences of dev (`DevFolds`). While a model
trains, the weights in its folder are those of the best epoch so far, and `training.safetensors` holds what `--resume`
needs.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from features.models.config import (
    BASE,
    CHECKPOINT,
    CONFIG,
    FOLD_WEIGHTS,
    METRICS,
    RECORD,
    SIDES,
    WEIGHTS,
    ModelConfig,
    read_config,
)
from features.models.device import within_memory
from features.models.network.model import EncoderDecoder
from features.models.settings import Architecture
from features.models.vocabulary import Vocabulary, load_vocabulary
from features.progress import log
from moses_io.files.errors import InputError
from moses_io.files.folders import LOCK, locked, make_folder
from moses_io.files.json_files import write_json
from moses_io.files.streams import check_plain, open_output, remove_temporaries, sha256

_BEGUN = {CONFIG, *(f"{side}.{kind}" for side in SIDES for kind in ("vocabulary", "bpe"))}
"""Files of a model that are there before it trains."""


@dataclass(frozen=True)
class Model:
    """A model ready to score: the network, its two vocabularies, and what it is.

    `source` and `target` are those of the network: for a backward model the network's source is the translation.
    """

    config: ModelConfig
    network: EncoderDecoder
    source: Vocabulary
    target: Vocabulary
    device: torch.device
    digest: str

    @property
    def signature(self) -> str:
        """What made the scores of this model."""
        return signature_of(self.config, self.digest)


def signature_of(config: ModelConfig, digest: str) -> str:
    """Return what made the scores of a model of this digest."""
    order = "|order:right-to-left" if config.right_to_left else ""
    return f"preset:{config.preset}|direction:{config.direction}{order}|sha256:{digest}"


def create_folder(folder: Path, config: ModelConfig, source: Vocabulary, target: Vocabulary) -> None:
    """Make the folder of a model that is about to train; see `check_free`."""
    make_folder(folder)
    source.save(folder, "source")
    target.save(folder, "target")
    write_json(str(folder / CONFIG), asdict(config), indent=2)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Have a folder, made if need be, for one training alone; if it was made and nothing put into it, it goes again.

    Raises:
        InputError: the folder cannot be made, or another training is at work there.
    """
    was_there = folder.exists()
    make_folder(folder)
    try:
        with locked(folder):
            yield
    finally:
        if not was_there:
            with contextlib.suppress(OSError):
                folder.rmdir()


def check_free(folder: Path, resume: bool) -> None:
    """Refuse a folder that holds something, with an `InputError`; `resume` overlooks what a killed training began."""
    try:
        files = [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK] if folder.exists() else []
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    hidden = [path for path in files if any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if [path for path in files if not (resume and (path.name in _BEGUN or path in hidden))]:
        hint = "name another one, or remove it" if resume else "name another one, remove it, or go on with --resume"
        raise InputError(f"{folder}: the folder is not empty; {hint}")


def remove_leftovers(folders: Iterable[Path]) -> None:
    """Remove what a killed training left half-written of our own files; nothing else is ours to remove."""
    for folder in folders:
        for name in (WEIGHTS, BASE, CHECKPOINT, METRICS, RECORD, *FOLD_WEIGHTS, *_BEGUN):
            remove_temporaries(folder / name)


def save_weights(folder: Path, network: EncoderDecoder, weights_name: str = WEIGHTS) -> None:
    """Put the network's weights into a file of the folder, in place of those before."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    with open_output(str(folder / weights_name)) as stream:
        stream.write(safetensors.torch.save(tensors))


def digest_of(folder: Path, names: Iterable[str]) -> str:
    """Return what files hold, by name, as the first 12 digits that `sha256sum NAMES | sha256sum` prints in their order.

    Raises:
        InputError: a file is not there, or is no plain file.
    """
    total = hashlib.sha256()
    for name in sorted(names):
        check_plain(folder / name)
        total.update(f"{sha256(folder / name)}  {name}\n".encode())
    return total.hexdigest()[:12]


def digest_of_model(folder: Path, config: ModelConfig, weights: str) -> str:
    """Return the digest of a model with the weights of this name; `dev.folds` counts where it is."""
    record = [RECORD] if os.path.lexists(folder / RECORD) else []
    return digest_of(folder, [*config.parts, *record, weights])


def load_model(folder: Path, device: torch.device, weights_name: str = WEIGHTS) -> Model:
    """Read a model folder, whose parts must fit each other.

    Raises:
        InputError: the folder is not one, is damaged, is of a format that this version does not know, or does not fit
            into the memory.
    """
    config, weights = read_config(folder), folder / weights_name
    if weights_name == WEIGHTS and not os.path.lexists(weights):
        raise InputError(f"{folder}: no {WEIGHTS}; the training of this model did not get to its first epoch's end")
    check_plain(weights)
    before = weights.stat()
    digest = digest_of_model(folder, config, weights_name)
    source, target = (load_vocabulary(folder, side, config.training.bpe > 0) for side in SIDES)
    with within_memory(f"the model {folder} does not fit"):
        network = load_network(weights, config.architecture, len(source), len(target)).to(device).eval()
    if not os.path.samestat(before, weights.stat()):  # its training has found better ones meanwhile
        return load_model(folder, device, weights_name)
    if any((place / CHECKPOINT).exists() for place in (folder, folder.parent)):
        log.warning(f"{folder}: the training of this model has not ended; these are its best weights so far")
    return Model(config=config, network=network, source=source, target=target, device=device, digest=digest)


_TYPES = {torch.float32: "F32", torch.int32: "I32"}
"""Types of tensors as safetensors names them: weights, and tables of words."""


class _Unfilled(TorchFunctionMode):
    """Gives tensors no first values: for those without memory torch does it in Python, and loads its compiler.

    It is asked for attributes of tensors, too, whose slots have no `__module__`.
    """

    def __torch_function__(self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__module__", "") == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


def outline(architecture: Architecture, source_size: int, target_size: int) -> dict[str, Tensor]:
    """Return the weights of a network by name, with shapes and nothing in them, which takes no memory."""
    with torch.device("meta"), _Unfilled():
        return EncoderDecoder(architecture, source_size, target_size).state_dict()


def load_network(path: Path, architecture: Architecture, source_size: int, target_size: int) -> EncoderDecoder:
    """Return a network with the weights of a file.

    Raises:
        InputError: the file is damaged, or its tensors are not those of such a network.
    """
    tensors = load_weights(path, outline(architecture, source_size, target_size), target_size)
    network = EncoderDecoder(architecture, source_size, target_size)
    network.load_state_dict(tensors)
    return network


def load_weights(path: Path, expected: Mapping[str, Tensor], target_size: int) -> dict[str, Tensor]:
    """Return the tensors of a file, by the names, types and shapes of those that are expected.

    Raises:
        InputError: the file is damaged, or its tensors are others.
    """
    try:
        reason = _difference(path, expected)
        tensors = safetensors.torch.load_file(path) if not reason else {}
        reason = reason or no_words(tensors, target_size)
    except (safetensors.SafetensorError, OSError) as error:
        reason = str(error).splitlines()[0]
    if reason:
        raise InputError(f"{path}: damaged, or of another model ({reason})")
    return tensors


def _difference(path: Path, expected: Mapping[str, Tensor]) -> str:
    """Say what of the names, types and shapes in the head of a file is not as expected; nothing if all is."""
    with safetensors.safe_open(path, "pt") as stream:
        slices = {name: stream.get_slice(name) for name in stream.keys()}  # noqa: SIM118
        shapes = {name: f"{each.get_dtype()} {list(each.get_shape())}" for name, each in slices.items()}
    for name in sorted(shapes.keys() | expected.keys()):
        if name not in expected:
            return f"unknown tensor {name!r}"
        if name not in shapes:
            return f"no tensor {name!r}"
        shape = f"{_TYPES[expected[name].dtype]} {list(expected[name].shape)}"
        if shapes[name] != shape:
            return f"tensor {name!r} is {shapes[name]}, expected {shape}"
    return ""


def no_words(tensors: Mapping[str, Tensor], target_size: int) -> str:
    """Say which table of target words has a number that is none; nothing if all are."""
    for name, tensor in tensors.items():
        if tensor.dtype == torch.int32 and not ((tensor >= 0) & (tensor < target_size)).all():
            return f"tensor {name!r} has a number that is no word's"
    return ""
