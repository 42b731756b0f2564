"""Opening of folders of transformers: the model, its tokenizer, and the memory that they need."""

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from safetensors import safe_open
from transformers.models.auto import modeling_auto as auto

from features.models.device import is_out_of_memory, memory_of
from features.progress import log
from moses_io.files.errors import InputError, shown

LOCAL_ONLY = {"local_files_only": True, "trust_remote_code": False}
"""Arguments for opening a folder: no downloads, and no code from the folder."""

GB = 1e9


class Opened(NamedTuple):
    """A model of transformers.

    Attributes:
        model: the model, on its device.
        tokenizer: its tokenizer.
        config: content of `config.json`.
        causal: whether it is a causal language model, else it is a sequence-to-sequence model.
    """

    model: Any
    tokenizer: Any
    config: Mapping[str, Any]
    causal: bool


def open_folder(folder: str, device: torch.device, dtype: torch.dtype, copies: int = 1) -> Opened:
    """Open a folder with a model and its tokenizer.

    Args:
        folder: the folder.
        device: device of the model.
        dtype: type of its weights.
        copies: number of arrays of the size of the weights that are needed at the same time, one without training.

    Raises:
        InputError: the folder has no model or tokenizer, it is damaged, its model is for another task, or the model
            needs more memory than the device has.
    """
    if not Path(folder).is_dir():
        raise InputError(f"{folder}: no such folder")
    with readable(folder):
        config, _ = transformers.PretrainedConfig.get_config_dict(folder, local_files_only=True)
        if not config.get("model_type"):  # old versions of transformers infer it from the folder name
            raise ValueError("config.json without model_type")
        causal = _is_causal(config, folder)
        _check_memory(Path(folder), device, dtype, copies)
        tokenizer = _tokenizer(folder)
        kind: Any = transformers.AutoModelForCausalLM if causal else transformers.AutoModelForSeq2SeqLM
        with without_bars():
            model = kind.from_pretrained(folder, dtype=dtype, **LOCAL_ONLY).to(device).eval()
    return Opened(model, tokenizer, config, causal)


@contextlib.contextmanager
def readable(folder: str) -> Iterator[None]:
    """Convert any error in the block to an `InputError`: for damaged or unusual files, libraries raise many types."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise InputError(f"{folder}: out of memory") from None
        raise InputError(f"{folder}: not a model that transformers can read ({shown(str(error))})") from None


@contextlib.contextmanager
def without_bars() -> Iterator[None]:
    """Turn progress bars of transformers off while the block runs."""
    logging: Any = transformers.utils.logging
    shown_before = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown_before:
            logging.enable_progress_bar()


def _tokenizer(folder: str) -> Any:
    """Return the tokenizer of a folder."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **LOCAL_ONLY)
    if not tokenizer("a")["input_ids"]:
        raise InputError(f"{folder}: no tokenizer. Its files, such as tokenizer.json, belong in the folder")
    tokenizer.model_max_length = sys.maxsize  # `Encoding` cuts long texts, with a warning of its own
    return tokenizer


def _is_causal(config: Mapping[str, Any], folder: str) -> bool:
    """Return whether a configuration is of a causal language model, by the class of the model.

    Raises:
        InputError: the model has another task, such as classification.
    """
    seq2seq = set(auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES.values())
    causal = set(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    names = config.get("architectures") or []
    if any(name in seq2seq for name in names):
        return False
    if any(name in causal for name in names):
        return True
    kind = config["model_type"]
    if not names and kind in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
        return False
    if not names and kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return True
    found = shown(", ".join(map(str, names)) or kind)
    raise InputError(f"{folder}: expected a sequence-to-sequence or causal language model, found {found}")


def _check_memory(folder: Path, device: torch.device, dtype: torch.dtype, copies: int) -> None:
    """Log the memory that `copies` of the parameters of a model need, or raise `InputError` if the device has less."""
    count = sum(map(_parameters, _weight_files(folder)))
    if not count:
        return
    needed, present = copies * count * dtype.itemsize, memory_of(device)
    purpose = f"as {str(dtype).removeprefix('torch.')}" if copies == 1 else "for weights, gradients and optimizer"
    size = f"{count / 1e6:,.1f} million parameters, {needed / GB:,.2f} GB {purpose}"
    if needed > present:
        owner = "the GPU" if device.type == "cuda" else "this machine"
        raise InputError(f"{folder}: {size}, more than the {present / GB:,.1f} GB of {owner}")
    log.info(f"{folder}: {size}")


def visible_files(folder: Path) -> list[Path]:
    """Return the files of a folder, sorted, without subfolders and hidden files."""
    return [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]


def _weight_files(folder: Path) -> list[Path]:
    """Return the files with the weights. A folder may have more of them, in other formats."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return [folder / name for name in sorted(set(json.loads(index.read_bytes())["weight_map"].values()))]
    return list(folder.glob("model.safetensors"))


def _parameters(path: Path) -> int:
    """Return the number of parameters in a file."""
    with safe_open(path, framework="pt") as tensors:
        shapes = [tensors.get_slice(name).get_shape() for name in tensors.keys()]  # noqa: SIM118
    return int(sum(torch.Size(shape).numel() for shape in shapes))
