"""Log-probabilities of local sequence-to-sequence models of Hugging Face's transformers, such as opus-mt or NLLB."""

import difflib
import hashlib
import importlib
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from features.arrays import Array
from features.feature import Resources, Sentence
from features.models.device import check_process, find_device, within_memory
from features.request import split_values
from moses_io.files.errors import InputError, counted, nearest, shown
from moses_io.files.streams import digest

BATCH = 64
IGNORED = -100
"""Label of padding in transformers."""

_ALONE = {"local_files_only": True, "trust_remote_code": False}
"""Arguments for opening a folder: no downloads, and no code from the folder."""

_TOKENIZING = threading.Lock()
"""Lock for tokenizers. A multilingual tokenizer has a state: it is switched between source and target."""

os.register_at_fork(  # a fork while another thread tokenizes would leave the lock locked forever in the child
    before=_TOKENIZING.acquire, after_in_parent=_TOKENIZING.release, after_in_child=_TOKENIZING.release
)


@runtime_checkable
class Multilingual(Protocol):
    """A tokenizer of many languages. It also has `tgt_lang`."""

    src_lang: str


@runtime_checkable
class WithLanguageTokens(Protocol):
    """A tokenizer whose tokens of languages differ from their codes, such as M2M100's `__de__`."""

    lang_code_to_token: Mapping[str, str]


@runtime_checkable
class WithTargetTokens(Protocol):
    """A tokenizer whose sources begin with a token of the target language, such as Marian's `>>deu<<`."""

    supported_language_codes: Sequence[str]


class HuggingFace:
    """One value: log p(candidate|source), summed over the subwords of the model's tokenizer, with end of sentence.

    The folder contains a model and its tokenizer, and nothing is downloaded. Tokens of the list are joined with spaces.
    Multilingual models such as NLLB need the languages of source and target: `hf:DIR[deu_Latn,eng_Latn]`.

    Raises:
        InputError: transformers is not installed, or the folder has no such model.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        folder, languages = split_values(argument)
        try:
            transformers = importlib.import_module("transformers")
        except ImportError:
            raise InputError("feature 'hf' needs transformers: pip install moses-rerank[hf]") from None
        self._device, self._process = find_device(resources.device), os.getpid()
        try:
            self._load(transformers, folder, languages)
        except InputError:
            raise
        except Exception as error:  # for damaged files, the libraries raise many types
            raise InputError(f"{folder}: not a model that transformers can read ({shown(str(error))})") from None
        content = [digest(path) for path in sorted(Path(folder).iterdir()) if path.is_file()]
        self.signature = f"hf|{','.join(languages)}|sha256:{hashlib.sha256(''.join(content).encode()).hexdigest()[:12]}"

    def _load(self, transformers: Any, folder: str, languages: Sequence[str]) -> None:
        config, _ = transformers.PretrainedConfig.get_config_dict(folder, local_files_only=True)
        if "model_type" not in config:  # old versions of transformers infer it from the folder name
            raise ValueError("config.json without model_type")
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **_ALONE)
        self._start = _set_languages(self._tokenizer, folder, languages)
        if self._tokenizer.pad_token_id is None:
            raise ValueError("its tokenizer has no token for padding")
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, **_ALONE)
        self._model = model.to(self._device).eval()
        self._check_vocabulary(folder, languages)
        self._longest: int | None = model.config.to_dict().get("max_position_embeddings")  # None if relative

    def _check_vocabulary(self, folder: str, languages: Sequence[str]) -> None:
        """Raise `InputError` if the token of a language has no embedding in the model."""
        if self._start:  # sources begin with a token of the target language
            empty = [(languages[-1], self._tokenizer(self._start))]
        else:
            texts = (self._tokenizer(""), self._tokenizer(text_target=""))
            empty = list(zip(languages, texts, strict=False))
        for language, encoded in empty:
            if max(encoded["input_ids"], default=0) >= self._model.get_input_embeddings().num_embeddings:
                raise InputError(f"{folder}: the tokenizer supports language {shown(language)}, the model does not")

    def __call__(self, sentences: Sequence[Sentence]) -> Array:
        """Return the values, (N, 1).

        Raises:
            InputError: a text is longer than the model's maximum, there is not enough memory, or the model is on a GPU
                and this process was forked after it was opened.
        """
        check_process(self._device, self._process)
        pairs = [(_clean(each.source), _clean(text)) for each in sentences for text in each.hypotheses]
        distinct = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
        # Batches of similar length need little padding.
        order = sorted(distinct, key=lambda pair: (len(pair[1]), len(pair[0])))
        values = np.empty(len(distinct))
        with within_memory("a sentence pair is too long for this model"):
            for start in range(0, len(order), BATCH):
                part = order[start : start + BATCH]
                values[[distinct[pair] for pair in part]] = self._log_probs(part)
        return values[[distinct[pair] for pair in pairs], None]

    @torch.inference_mode()
    def _log_probs(self, pairs: Sequence[tuple[str, str]]) -> Array:
        """Return log p of the second text of each pair, given the first, (B,)."""
        sources, targets = [self._start + source for source, _ in pairs], [target for _, target in pairs]
        with _TOKENIZING:
            source = self._tokenizer(sources, padding=True, return_tensors="pt").to(self._device)
            target = self._tokenizer(text_target=targets, padding=True, return_tensors="pt").to(self._device)
        for texts, encoded in ((sources, source), (targets, target)):
            sizes = encoded["attention_mask"].sum(dim=1)  # (B,)
            if self._longest and int(sizes.max()) > self._longest:
                pieces = f"{int(sizes.max()):,} subwords, more than the model's maximum of {self._longest:,}"
                raise InputError(f"feature 'hf': {pieces}: {shown(texts[int(sizes.argmax())])}")
        labels = target["input_ids"].masked_fill(target["attention_mask"] == 0, IGNORED)
        logits = self._model(
            input_ids=source["input_ids"], attention_mask=source["attention_mask"], labels=labels
        ).logits
        words = labels.clamp(min=0).unsqueeze(-1)  # (B, T, 1)
        chosen = logits.log_softmax(dim=-1).gather(-1, words).squeeze(-1)  # (B, T)
        scores: Array = (chosen.double() * (labels != IGNORED)).sum(dim=1).cpu().numpy()  # (B,)
        return scores


def _set_languages(tokenizer: Any, folder: str, languages: Sequence[str]) -> str:
    """Set source and target language of a tokenizer, and return the prefix that each source text needs.

    Raises:
        InputError: an unknown language, a wrong number of languages, or no languages for a tokenizer that needs them.
    """
    if len(languages) not in (0, 2):
        raise InputError(f"{folder}: expected hf:DIR[SOURCE,TARGET], found {counted(len(languages), 'language')}")
    pair = tokenizer.init_kwargs.get("langs")
    if pair:  # FSMT: the tokenizer is for one pair and has no tokens of languages
        if languages and list(languages) != list(pair):
            expected = f"expected hf:DIR or hf:DIR[{','.join(pair)}]"
            raise InputError(f"{folder}: a tokenizer of {pair[0]} and {pair[1]}, {expected}")
        return ""
    known = _known_languages(tokenizer)
    names = sorted(known)
    if languages and not known:
        raise InputError(f"{folder}: a tokenizer without languages, expected hf:DIR without [{','.join(languages)}]")
    if not languages:
        if len(known) > 1:
            expected = f"expected hf:DIR[SOURCE,TARGET]. Known: {shown(', '.join(names))}"
            raise InputError(f"{folder}: a tokenizer of several languages, {expected}")
        return ""
    by_target = not isinstance(tokenizer, Multilingual)
    for language in languages[1:] if by_target else languages:
        if language not in known:
            raise InputError(f"{folder}: unknown language {shown(language)}{_nearest_language(language, names)}")
    if by_target:  # the model has one source language, without a token
        return f">>{languages[1]}<< "
    tokenizer.src_lang, tokenizer.tgt_lang = languages
    return ""


def _known_languages(tokenizer: Any) -> set[str]:
    """Return the language codes of a tokenizer, or an empty set if it has none."""
    if isinstance(tokenizer, WithLanguageTokens):
        return set(tokenizer.lang_code_to_token)
    if isinstance(tokenizer, WithTargetTokens):
        return {code.removeprefix(">>").removesuffix("<<") for code in tokenizer.supported_language_codes}
    return _special_tokens(tokenizer) if isinstance(tokenizer, Multilingual) else set()


def _special_tokens(tokenizer: Any) -> set[str]:
    """Return the special tokens without a role, which are languages, or all tokens if there are none."""
    roles = {str(token) for token in tokenizer.special_tokens_map.values()}
    known = {token.strip("_") for token in map(str, tokenizer.all_special_tokens) if token not in roles}
    return known or set(tokenizer.get_vocab())


def _nearest_language(code: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" with the code most similar to an unknown one, for example `deu_Latn` for `de`."""
    start = code.strip("_<> ")[:2].lower()
    alike = [each for each in known if each[:2].lower() == start]
    close = difflib.get_close_matches(code, alike, n=1, cutoff=0)
    return f". Did you mean {shown(close[0])}?" if close else nearest(code, list(known))


def _clean(tokens: Sequence[str]) -> str:
    """Join tokens, with U+FFFD for bytes that are not UTF-8."""
    return " ".join(tokens).encode(errors="surrogateescape").decode(errors="replace")
