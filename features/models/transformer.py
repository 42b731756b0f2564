"""Log-probabilities of given translations by models of the package transformers."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch

from features.feature import Resources
from features.models.device import find_device, within_memory
from moses_io.errors import InputError, shown

IGNORED = -100
"""Label of padding, as transformers has it."""

_ALONE = {"local_files_only": True, "trust_remote_code": False}
"""How a folder is opened: nothing is fetched, and no code in it runs."""


@runtime_checkable
class Multilingual(Protocol):
    """A tokenizer of many languages; `tgt_lang` stands beside."""

    src_lang: str


class TransformerScorer:
    """A model and its tokenizer on a device."""

    def __init__(self, transformers: Any, folder: str, languages: Sequence[str], resources: Resources) -> None:
        self._device = find_device(resources.device)
        config, _ = transformers.PretrainedConfig.get_config_dict(folder, local_files_only=True)
        if "model_type" not in config:  # older versions of transformers infer it from the name of the folder
            raise ValueError("config.json without model_type")
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **_ALONE)
        if isinstance(self._tokenizer, Multilingual) != bool(languages) or len(languages) not in (0, 2):
            raise ValueError("expected DIR[SOURCE,TARGET] for a tokenizer of many languages, DIR alone for another one")
        if languages:
            self._tokenizer.src_lang, self._tokenizer.tgt_lang = languages
        if self._tokenizer.pad_token_id is None:
            raise ValueError("its tokenizer has no token for padding")
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, **_ALONE)
        self._model = model.to(self._device).eval()
        self._longest: int | None = model.config.to_dict().get("max_position_embeddings")  # none of relative positions

    @torch.inference_mode()
    def __call__(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """(B,) float64 log p of the second text of each pair, given the first.

        Raises:
            InputError: a text has more pieces than the model reads, or the memory does not suffice.
        """
        with within_memory("a sentence pair is too long for this model"):
            return self._log_probs(pairs)

    def _log_probs(self, pairs: Sequence[tuple[str, str]]) -> Any:
        sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
        source = self._tokenizer(sources, padding=True, return_tensors="pt").to(self._device)
        target = self._tokenizer(text_target=targets, padding=True, return_tensors="pt").to(self._device)
        for texts, encoded in ((sources, source), (targets, target)):
            sizes = encoded["attention_mask"].sum(dim=1)  # (B,)
            if self._longest and int(sizes.max()) > self._longest:
                pieces = f"{int(sizes.max()):,} pieces, more than the {self._longest:,} that the model reads"
                raise InputError(f"feature 'hf': {pieces}: {shown(texts[int(sizes.argmax())])}")
        labels = target["input_ids"].masked_fill(target["attention_mask"] == 0, IGNORED)
        logits = self._model(
            input_ids=source["input_ids"], attention_mask=source["attention_mask"], labels=labels
        ).logits
        words = labels.clamp(min=0).unsqueeze(-1)  # (B, T, 1)
        chosen = logits.log_softmax(dim=-1).gather(-1, words).squeeze(-1)  # (B, T)
        return (chosen.double() * (labels != IGNORED)).sum(dim=1).cpu().numpy()  # (B,)
