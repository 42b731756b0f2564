"""Tokens of sources and candidates for a pretrained model."""

import itertools
import os
import threading
from collections.abc import Sequence
from typing import Any

from features.feature import Sentence
from features.models.pretrained.folder import Opened
from features.models.pretrained.languages import languages_of_text, set_languages, two_letters
from features.models.pretrained.network import Causal, Network, Seq2Seq
from features.models.pretrained.options import SOURCE, Options, Template, read_template
from features.models.pretrained.text import Restored
from features.progress import log
from moses_io.files.errors import InputError, at, shown

_TOKENIZING = threading.Lock()
"""Lock for tokenizers. A multilingual tokenizer has a state: it is switched between source and target."""

os.register_at_fork(  # a fork while another thread tokenizes would leave the lock locked forever in the child
    before=_TOKENIZING.acquire, after_in_parent=_TOKENIZING.release, after_in_child=_TOKENIZING.release
)


Pair = tuple[tuple[int, ...], tuple[int, ...]]
"""Tokens of a source, at least one, and of a candidate.

A source is the input of an encoder, or the prompt of a language model.
"""


class Encoding:
    """Function from sentences to tokens.

    Attributes:
        languages: languages of the model.
        sizes: number of tokens that the model knows in source and target.
        longest: maximum number of tokens of a text, or None if there is no maximum.

    Raises:
        InputError: an unknown language, a damaged template, or a tokenizer that does not match the model.
    """

    def __init__(self, opened: Opened, folder: str, options: Options) -> None:
        self._folder, self._tokenizer, self._causal = folder, opened.tokenizer, opened.causal
        if opened.causal:
            self.languages = languages_of_text(folder, options.languages)
        else:
            self.languages = set_languages(opened.tokenizer, opened.config, folder, options)
        template = read_template(options.template) if options.template else None
        if template and template.end and not opened.causal:
            raise InputError(f"{options.template}: text after the candidate is for language models only")
        self._template = template or Template("" if opened.causal else self.languages.task + SOURCE)
        self._source = Restored(options, two_letters(self.languages.source))
        self._target = Restored(options, two_letters(options.language or self.languages.target), options.truecaser)
        self.sizes = _vocabulary_sizes(opened.model)
        # None if positions are relative.
        self.longest: int | None = getattr(opened.model.config, "max_position_embeddings", None)
        self._warned = False
        self._check_vocabulary()

    def __call__(self, sentences: Sequence[Sentence]) -> list[Pair]:
        """Return the tokens of source and candidate for each candidate, `</s>` included.

        Texts longer than the model's maximum are cut, with a warning.

        Raises:
            InputError: prompt and candidate are longer than a language model's maximum, or a text has a token that the
                model does not know.
        """
        pairs: list[Pair] = []
        for each, source in zip(sentences, self.prompts(sentences), strict=True):
            texts = [self._target(tokens) for tokens in each.hypotheses]
            with at(f"{self._folder}: sentence {each.sentence}: "):
                encoded = self._prompted(source, texts) if self._causal else self._pairs(source, texts)
                for text, (before, target) in zip(texts, encoded, strict=True):
                    size = len(before) + len(target)
                    if self._causal and self.longest and size > self.longest:
                        fault = f"{size:,} subwords, more than the model's maximum of {self.longest:,}"
                        raise InputError(f"{fault}: {shown(text)}")
                    self._check_tokens(source, before, self.sizes[0])
                    self._check_tokens(text, target, self.sizes[1])
            pairs += encoded
        return pairs

    def network(self, model: Any) -> Network:
        """Return the network of the model."""
        return Causal(model) if self._causal else Seq2Seq(model, self.target_of(""))

    def encode_corpus(self, sentences: Sequence[Sentence]) -> list[Pair | None]:
        """Return the tokens of source and of the only candidate of each sentence, or None where they are too long.

        `path` of a sentence is the source file, and `sentence` the number of the line.

        Raises:
            InputError: a text has a token that the model does not know.
        """
        prompts = self.prompts(sentences)
        texts = [self._target(each.hypotheses[0]) for each in sentences]
        if self._causal:
            encoded = [self._prompted(prompt, [text])[0] for prompt, text in zip(prompts, texts, strict=True)]
        else:
            sources, targets = self._tokens(prompts, cut=False), self._tokens(texts, cut=False, target=True)
            encoded = list(zip(sources, targets, strict=True))
        pairs: list[Pair | None] = []
        for each, prompt, text, (before, target) in zip(sentences, prompts, texts, encoded, strict=True):
            with at(f"{each.path}:{each.sentence}: {self._folder}: "):
                self._check_tokens(prompt, before, self.sizes[0])
                self._check_tokens(text, target, self.sizes[1])
            size = len(before) + len(target) if self._causal else max(len(before), len(target))
            pairs.append((before, target) if not self.longest or size <= self.longest else None)
        return pairs

    def prompts(self, sentences: Sequence[Sentence]) -> list[str]:
        """Return the text that is read before the candidates of each sentence."""
        return [self.languages.prefix + self._template.before(self._source(each.source)) for each in sentences]

    def sources(self, sentences: Sequence[Sentence]) -> list[tuple[int, ...]]:
        """Return the inputs of the encoder."""
        rows = []
        for each, prompt in zip(sentences, self.prompts(sentences), strict=True):
            with at(f"{self._folder}: sentence {each.sentence}: "):
                (row,) = self._tokens([prompt])
                self._check_tokens(prompt, row, self.sizes[0])
            rows.append(row)
        return rows

    def fits(self, hypothesis: Sequence[str]) -> bool:
        """Return whether a candidate is not longer than the model's maximum."""
        return not self.longest or len(self.target_of(self._target(hypothesis))) <= self.longest

    def _pairs(self, source: str, texts: Sequence[str]) -> list[Pair]:
        """Return inputs of the encoder and targets of the decoder."""
        if not texts:
            return []
        (read,) = self._tokens([source])
        return [(read, target) for target in self._tokens(texts, target=True)]

    def _tokens(self, texts: Sequence[str], target: bool = False, cut: bool = True) -> list[tuple[int, ...]]:
        """Return the tokens of inputs of the encoder, or of targets, cut to the model's maximum if `cut`."""
        name, rows = "text_target" if target else "text", []
        with _TOKENIZING:
            # Tokenizers in Rust fail on an empty list.
            tokenized = self._tokenizer(**{name: list(texts)})["input_ids"] if texts else []
            for text, tokens in zip(texts, tokenized, strict=True):
                row = self._ended(tokens) if target else tuple(tokens)
                if cut and self.longest and len(row) > self.longest:
                    self._warn(text)
                    size = self.longest - (len(row) - len(tokens))  # with space for an end token
                    tokens = self._tokenizer(**{name: text}, truncation=True, max_length=size)["input_ids"]
                    row = self._ended(tokens) if target else tuple(tokens)
                rows.append(row)
        return rows

    def _warn(self, text: str) -> None:
        """Warn of the first text that is cut."""
        if not self._warned:
            cut = f"texts of more than {self.longest:,} subwords, the model's maximum, are cut"
            log.warning(f"{self._folder}: {cut}, such as {shown(text)}")
        self._warned = True

    def _prompted(self, prompt: str, texts: Sequence[str]) -> list[Pair]:
        """Return prompts and the tokens after them.

        Prompt and candidate are tokenized together, because the last token of a prompt may merge with the start of a
        candidate. It therefore belongs to the candidates, whose values all get its log-probability.
        """
        if not texts:
            return []
        with _TOKENIZING:
            # Without the space at the end, which usually belongs to the first token of a candidate.
            (start,) = self._tokenizer([prompt.rstrip(" ")])["input_ids"]
            rows = self._tokenizer([prompt + text + self._template.end for text in texts])["input_ids"]
        end = self._tokenizer.eos_token_id
        if len(start) > 1 and start[-1] == end:
            start = start[:-1]
        pairs: list[Pair] = []
        for row in rows:
            # A tokenizer whose texts begin with the end token does not end them with it.
            ended = row if len(row) > len(start) and row[-1] == end else [*row, end]
            whole = row if self._template.end or end is None else ended
            size = min(max(1, len(start) - 1), _common(start, row))
            pairs.append((tuple(whole[:size]), tuple(whole[size:])) if size else ((self._first(),), tuple(whole)))
        return pairs

    def _ended(self, target: Sequence[int]) -> tuple[int, ...]:
        """Return a target with the end token, which few tokenizers leave out."""
        end = self._tokenizer.eos_token_id
        if end is not None and end not in target:
            return (*target, end)
        if not target:
            raise InputError(f"{self._folder}: a tokenizer without an end token")
        return tuple(target)

    def _first(self) -> int:
        """Return the token before a text without a prompt."""
        for token in (self._tokenizer.bos_token_id, self._tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        raise InputError(f"{self._folder}: a tokenizer without a token for the start of a text. Give a template")

    def _check_tokens(self, text: str, tokens: Sequence[int], vocabulary: int) -> None:
        """Raise `InputError` if a text has a token without embedding."""
        if max(tokens, default=0) >= vocabulary:
            fault = f"the tokenizer has token {max(tokens):,}, the model has {vocabulary:,} tokens only"
            raise InputError(f"{fault}: {shown(text)}")

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
            return [text.strip(" ") for text in self._tokenizer.batch_decode(rows, skip_special_tokens=True)]

    def target_of(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a target."""
        with _TOKENIZING:
            return self._ended(self._tokenizer(text_target=text)["input_ids"])


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """Return the length of the common prefix of two texts."""
    equal = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    return sum(1 for _ in equal)


def _vocabulary_sizes(model: Any) -> tuple[int, int]:
    """Return the number of tokens of source and target."""
    source = model.get_input_embeddings().num_embeddings
    target = model.get_output_embeddings()
    return source, source if target is None else target.weight.shape[0]
