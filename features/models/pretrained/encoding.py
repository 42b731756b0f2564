"""Tokens of sources and candidates for a pretrained model."""

import itertools
import os
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from features.feature import Sentence
from features.models.pretrained.folder import Opened
from features.models.pretrained.languages import Languages, set_languages, two_letters
from features.models.pretrained.options import SOURCE, Options, Template, read_template
from features.models.pretrained.text import Restored
from moses_io.files.errors import InputError, shown

_TOKENIZING = threading.Lock()
"""Lock for tokenizers. A multilingual tokenizer has a state: it is switched between source and target."""

os.register_at_fork(  # a fork while another thread tokenizes would leave the lock locked forever in the child
    before=_TOKENIZING.acquire, after_in_parent=_TOKENIZING.release, after_in_child=_TOKENIZING.release
)


class Encoded(NamedTuple):
    """Tokens of some sentences.

    Attributes:
        sources: inputs of the encoder, or prompts of a language model, at least one token each.
        targets: tokens of the candidates of each sentence, `</s>` included.
    """

    sources: list[tuple[int, ...]]
    targets: list[list[tuple[int, ...]]]


class Encoding:
    """Function from sentences to tokens.

    Attributes:
        languages: languages of the model.
        sizes: number of tokens that the model knows in source and target.

    Raises:
        InputError: an unknown language, a damaged template, or a tokenizer that does not match the model.
    """

    def __init__(self, opened: Opened, folder: str, options: Options) -> None:
        self._folder, self._tokenizer, self._causal = folder, opened.tokenizer, opened.causal
        self.languages = (
            Languages(*options.languages)
            if opened.causal
            else set_languages(opened.tokenizer, opened.config, folder, options.languages)
        )
        template = read_template(options.template) if options.template else None
        if template and template.end and not opened.causal:
            raise InputError(f"{options.template}: text after the candidate is for language models only")
        self._template = template or Template("" if opened.causal else SOURCE)
        self._source = Restored(options, two_letters(self.languages.source))
        self._target = Restored(options, two_letters(options.language or self.languages.target), options.truecaser)
        self.sizes = _vocabulary_sizes(opened.model)
        self._longest: int | None = opened.model.config.to_dict().get("max_position_embeddings")  # None if relative
        self._check_vocabulary()

    def __call__(self, sentences: Sequence[Sentence]) -> Encoded:
        """Return the tokens of some sentences.

        Raises:
            InputError: a text is longer than the model's maximum, or has a token that the model does not know.
        """
        prompts = [self._template.before(self._source(each.source)) for each in sentences]
        texts = [[self._target(tokens) for tokens in each.hypotheses] for each in sentences]
        encoded = self._prompted(prompts, texts) if self._causal else self._pairs(prompts, texts)
        for prompt, candidates, source, targets in zip(prompts, texts, *encoded, strict=True):
            before = len(source) if self._causal else 0
            self._check(prompt, source, 0, self.sizes[0])
            for text, target in zip(candidates, targets, strict=True):
                self._check(text, target, before, self.sizes[1])
        return encoded

    def _pairs(self, prompts: Sequence[str], texts: Sequence[Sequence[str]]) -> Encoded:
        """Return inputs of the encoder and targets of the decoder."""
        distinct = list(dict.fromkeys(text for part in texts for text in part))
        with _TOKENIZING:
            sources = self._tokenizer([self.languages.prefix + prompt for prompt in prompts])["input_ids"]
            targets = self._tokenizer(text_target=distinct)["input_ids"] if distinct else []
        known = {text: tuple(target) for text, target in zip(distinct, targets, strict=True)}
        return Encoded([tuple(source) for source in sources], [[known[text] for text in part] for part in texts])

    def _prompted(self, prompts: Sequence[str], texts: Sequence[Sequence[str]]) -> Encoded:
        """Return prompts and the tokens after them.

        Prompt and candidate are tokenized together, because the tokens at their border differ from those of the parts.
        The prompt ends before the first token that differs.
        """
        encoded = Encoded([], [])
        for prompt, part in zip(prompts, texts, strict=True):
            with _TOKENIZING:
                # Without the space at its end, which belongs to the first token of the candidate.
                (start,) = self._tokenizer([prompt.rstrip()])["input_ids"]
                whole = self._tokenizer([prompt + text + self._template.end for text in part])["input_ids"]
            end = self._tokenizer.eos_token_id
            if start and start[-1] == end and len(start) > 1:
                start = start[:-1]
            if end is not None and not self._template.end:
                whole = [row if row[-1:] == [end] else [*row, end] for row in whole]
            size = min((_common(start, row) for row in whole), default=len(start))
            if not size:
                start, size, whole = [self._first()], 1, [[self._first(), *row] for row in whole]
            encoded.sources.append(tuple(start[:size]))
            encoded.targets.append([tuple(row[size:]) for row in whole])
        return encoded

    def _first(self) -> int:
        """Return the token before a text without a prompt."""
        for token in (self._tokenizer.bos_token_id, self._tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        raise InputError(f"{self._folder}: a tokenizer without a token for the start of a text. Give a template")

    def _check(self, text: str, tokens: Sequence[int], before: int, vocabulary: int) -> None:
        """Raise `InputError` if a text after `before` tokens is too long, or has a token without embedding."""
        size = before + len(tokens)
        if self._longest and size > self._longest:
            fault = f"{size:,} subwords, more than the model's maximum of {self._longest:,}"
            raise InputError(f"feature 'hf': {fault}: {shown(text)}")
        if max(tokens, default=0) >= vocabulary:
            fault = f"the tokenizer has token {max(tokens):,}, the model has {vocabulary:,} tokens only"
            raise InputError(f"{self._folder}: {fault}: {shown(text)}")

    def _check_vocabulary(self) -> None:
        """Raise `InputError` if the token of a language has no embedding in the model."""
        source, target = self.languages.source, self.languages.target
        if self._causal or not (source or target):
            return
        if self.languages.prefix:  # sources begin with the target language
            empty = [(target, self._tokenizer(self.languages.prefix), self.sizes[0])]
        else:
            empty = [
                (source, self._tokenizer(""), self.sizes[0]),
                (target, self._tokenizer(text_target=""), self.sizes[1]),
            ]
        for language, encoded, size in empty:
            if max(encoded["input_ids"], default=0) >= size:
                raise InputError(
                    f"{self._folder}: the tokenizer supports language {shown(language)}, the model does not"
                )

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Return the texts of targets without special tokens.

        Some models have more tokens than their tokenizer, for a size that suits the hardware. They are left out.
        """
        rows = [[token for token in row if token < len(self._tokenizer)] for row in rows]
        with _TOKENIZING:
            return [text.strip() for text in self._tokenizer.batch_decode(rows, skip_special_tokens=True)]

    def target_of(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a target."""
        with _TOKENIZING:
            return tuple(self._tokenizer(text_target=text)["input_ids"])


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """Return the length of the common prefix of two texts."""
    equal = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    return sum(1 for _ in equal)


def _vocabulary_sizes(model: Any) -> tuple[int, int]:
    """Return the number of tokens of source and target."""
    source = model.get_input_embeddings().num_embeddings
    target = model.get_output_embeddings()
    return source, source if target is None else target.weight.shape[0]
