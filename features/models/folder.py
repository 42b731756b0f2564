"""Model folders: `config.json`, `source.vocabulary`, `target.vocabulary`, `model.safetensors`.

Models on subwords also have `source.bpe` and `target.bpe`, which are sentencepiece models. Nothing is pickled. Scoring
needs no other files, except `dev.folds` and `fold-N.safetensors` for sentences of dev (`DevFolds`). During training the
weights in the folder are the best so far, and `training.safetensors` has the state for `--resume`.
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
from features.models.vocabulary import EmptyVocabulary, Vocabulary, load_vocabulary
from features.progress import log
from moses_io.files.errors import InputError
from moses_io.files.folders import LOCK, locked, make_folder
from moses_io.files.json_files import write_json
from moses_io.files.streams import check_plain, open_output, remove_temporaries, sha256

_BEGUN = {CONFIG, *(f"{side}.{kind}" for side in SIDES for kind in ("vocabulary", "bpe"))}
"""Files of a model that are written before training starts."""


@dataclass(frozen=True)
class Model:
    """A model ready to score: configuration, network and vocabularies.

    `source` and `target` are the sides of the network. The source of a backward model is the translation.
    """

    config: ModelConfig
    network: EncoderDecoder
    source: Vocabulary
    target: Vocabulary
    device: torch.device
    digest: str

    @property
    def signature(self) -> str:
        """Signature of the model's scores."""
        return signature_of(self.config, self.digest)


def signature_of(config: ModelConfig, digest: str) -> str:
    """Return the signature of scores of a model with this digest."""
    order = "|order:right-to-left" if config.right_to_left else ""
    return f"preset:{config.preset}|direction:{config.direction}{order}|sha256:{digest}"


def create_folder(folder: Path, config: ModelConfig, source: Vocabulary, target: Vocabulary) -> None:
    """Create the folder of a model before training, and write its configuration and vocabularies.

    Call `check_free` first.
    """
    make_folder(folder)
    source.save(folder, "source")
    target.save(folder, "target")
    write_json(str(folder / CONFIG), asdict(config), indent=2)


@contextlib.contextmanager
def locked_for_training(folder: Path) -> Iterator[None]:
    """Lock a folder for one training while the block runs, and create it if necessary.

    A folder that was created here and is still empty at the end is removed.

    Raises:
        InputError: the folder cannot be created, or another training has locked it.
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
    """Raise `InputError` if a folder contains files.

    With `resume`, hidden files and the initial files of a killed training are accepted.
    """
    try:
        files = [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK] if folder.exists() else []
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    hidden = [path for path in files if any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if [path for path in files if not (resume and (path.name in _BEGUN or path in hidden))]:
        hint = (
            "Remove it or use another folder" if resume else "Remove it, use another folder, or continue with --resume"
        )
        raise InputError(f"{folder}: the folder is not empty. {hint}")


def remove_leftovers(folders: Iterable[Path]) -> None:
    """Remove our temporary files that a killed training left, and no other files."""
    for folder in folders:
        for name in (WEIGHTS, BASE, CHECKPOINT, METRICS, RECORD, *FOLD_WEIGHTS, *_BEGUN):
            remove_temporaries(folder / name)


def save_weights(folder: Path, network: EncoderDecoder, weights_name: str = WEIGHTS) -> None:
    """Write the weights of a network to a file of the folder, replacing the previous file."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    with open_output(str(folder / weights_name)) as stream:
        stream.write(safetensors.torch.save(tensors))


def digest_of(folder: Path, names: Iterable[str]) -> str:
    """Return a digest of the content of files: the first 12 digits of `sha256sum NAMES | sha256sum`, with names sorted.

    Raises:
        InputError: a file is missing or not a plain file.
    """
    total = hashlib.sha256()
    for name in sorted(names):
        check_plain(folder / name)
        total.update(f"{sha256(folder / name)}  {name}\n".encode())
    return total.hexdigest()[:12]


def digest_of_model(folder: Path, config: ModelConfig, weights: str) -> str:
    """Return the digest of a model with these weights, including `dev.folds` if it exists."""
    record = [RECORD] if os.path.lexists(folder / RECORD) else []
    return digest_of(folder, [*config.parts, *record, weights])


def load_vocabularies(folder: Path, config: ModelConfig) -> tuple[Vocabulary, Vocabulary]:
    """Load the vocabularies of source and target. Raise `InputError` as `load_vocabulary` does."""
    source, target = (load_vocabulary(folder, side, f"{side}.bpe" in config.parts) for side in SIDES)
    return EmptyVocabulary() if config.architecture.language_model else source, target


def load_model(folder: Path, device: torch.device, weights_name: str = WEIGHTS) -> Model:
    """Load a model folder and check that its parts match.

    Raises:
        InputError: the folder is not a model, is damaged, has an unsupported format, or does not fit into memory.
    """
    config, weights = read_config(folder), folder / weights_name
    if weights_name == WEIGHTS and not os.path.lexists(weights):
        raise InputError(f"{folder}: no {WEIGHTS}. The training of this model did not finish its first epoch")
    check_plain(weights)
    before = weights.stat()
    digest = digest_of_model(folder, config, weights_name)
    source, target = load_vocabularies(folder, config)
    with within_memory(f"The model {folder} does not fit"):
        network = load_network(weights, config.architecture, len(source), len(target)).to(device).eval()
    if not os.path.samestat(before, weights.stat()):  # a running training has replaced the weights
        return load_model(folder, device, weights_name)
    # The checkpoint of two models that train together is in the parent of their folders.
    if any((path / CHECKPOINT).exists() for path in ((folder, folder.parent) if config.partner else (folder,))):
        log.warning(f"{folder}: the training of this model has not ended. Its best parameters so far are used")
    return Model(config=config, network=network, source=source, target=target, device=device, digest=digest)


_TYPES = {torch.float32: "F32", torch.int32: "I32"}
"""Names of tensor types in safetensors: weights, and tables of words."""


class _Unfilled(TorchFunctionMode):
    """Mode that skips the initialization of tensors.

    torch initializes tensors without memory in Python code that imports its compiler. The mode also sees the accessors
    of tensor attributes, which have no `__module__`: hence the default of `getattr`.
    """

    def __torch_function__(self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__module__", "") == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


def outline(architecture: Architecture, source_size: int, target_size: int) -> dict[str, Tensor]:
    """Return the weights of a network by name, as tensors with shapes but without memory."""
    with torch.device("meta"), _Unfilled():
        return EncoderDecoder(architecture, source_size, target_size).state_dict()


def load_network(path: Path, architecture: Architecture, source_size: int, target_size: int) -> EncoderDecoder:
    """Return a network with the weights of a file.

    Raises:
        InputError: the file is damaged, or its tensors do not belong to such a network.
    """
    tensors = load_weights(path, outline(architecture, source_size, target_size), target_size)
    network = EncoderDecoder(architecture, source_size, target_size)
    network.load_state_dict(tensors)
    return network


def load_weights(path: Path, expected: Mapping[str, Tensor], target_size: int) -> dict[str, Tensor]:
    """Load the tensors of a file and compare names, types and shapes with the expected tensors.

    Args:
        path: file of weights.
        expected: tensors by name, whose values do not matter.
        target_size: size of the target vocabulary, which limits the ids in integer tensors.

    Raises:
        InputError: the file is damaged, or has other tensors.
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
    """Return the first difference of names, types and shapes in a file's header, or an empty string."""
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
    """Return a message on an integer tensor with an id outside the target vocabulary, or an empty string."""
    for name, tensor in tensors.items():
        if tensor.dtype == torch.int32 and not ((tensor >= 0) & (tensor < target_size)).all():
            return f"tensor {name!r} has a value that is not a word index"
    return ""
