"""Languages of multilingual tokenizers of transformers."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import langcodes

from features.models.pretrained.options import Options
from moses_io.files.errors import InputError, nearest, shown

FAR = 5
"""Maximum distance in langcodes between two codes of a language, such as `pt` and `pt_XX`."""

_TASK = re.compile("translation_(.+)_to_(.+)")


class Languages(NamedTuple):
    """Languages of a model.

    Attributes:
        source: code of the source language, empty if it is not known.
        target: code of the target language, empty if it is not known.
        prefix: text that each input begins with, such as the target language of Marian.
        task: text before the source if there is no template, such as the name of a task of T5.
    """

    source: str = ""
    target: str = ""
    prefix: str = ""
    task: str = ""


@runtime_checkable
class Multilingual(Protocol):
    """A tokenizer of many languages."""

    src_lang: str | None
    tgt_lang: str | None


@runtime_checkable
class WithLanguageTokens(Protocol):
    """A tokenizer whose tokens of languages differ from their codes, such as M2M100's `__de__`."""

    lang_code_to_token: Mapping[str, str]


@runtime_checkable
class WithTargetTokens(Protocol):
    """A tokenizer whose sources begin with a token of the target language, such as Marian's `>>deu<<`."""

    supported_language_codes: Sequence[str]
    source_lang: str | None
    target_lang: str | None


def languages_of_text(folder: str, languages: Sequence[str]) -> Languages:
    """Return the languages of texts that a language model reads. Raises `InputError` if a code is none."""
    for language in languages:
        if not two_letters(language):
            raise InputError(f"{folder}: {shown(language)} is not a code of a language")
    return Languages(*languages)


def set_languages(tokenizer: Any, config: Mapping[str, Any], folder: str, options: Options) -> Languages:
    """Set source and target language of a tokenizer and return them in the codes of the tokenizer.

    Args:
        tokenizer: a tokenizer of a sequence-to-sequence model.
        config: content of the model's `config.json`, which may have tasks, such as `translation_en_to_de` of T5.
        folder: folder of the model, for messages.
        options: options with the languages as the user wrote them, or without languages.

    Raises:
        InputError: an unknown language, or no languages for a tokenizer that needs them.
    """
    languages = options.languages
    pair = tokenizer.init_kwargs.get("langs")
    if pair:  # FSMT: the tokenizer is for one pair and has no tokens of languages
        if languages and [_find(language, pair) for language in languages] != list(pair):
            expected = f"expected hf:DIR or hf:DIR[{','.join(pair)}]"
            raise InputError(f"{folder}: a tokenizer of {pair[0]} and {pair[1]}, {expected}")
        return Languages(*pair)
    tasks = _tasks(config)
    if tasks and languages:
        return _task(tasks, folder, languages)
    if tasks and not options.template:
        names = ", ".join(map("-".join, tasks))
        raise InputError(f"{folder}: a model of several tasks, expected hf:DIR[SOURCE,TARGET] with one of {names}")
    known = _known_languages(tokenizer)
    if not known and languages:
        raise InputError(f"{folder}: a tokenizer without languages, expected hf:DIR without [{','.join(languages)}]")
    if not languages:
        if len(known) > 1:
            expected = f"expected hf:DIR[SOURCE,TARGET]. Known: {shown(', '.join(sorted(known)))}"
            raise InputError(f"{folder}: a tokenizer of several languages, {expected}")
        of_pair = isinstance(tokenizer, WithTargetTokens)
        return Languages(tokenizer.source_lang or "", tokenizer.target_lang or "") if of_pair else Languages()
    target = _checked(languages[1], known, folder)
    if not isinstance(tokenizer, Multilingual):  # the model has one source language, without a token
        return Languages(languages[0], target, f">>{target}<< ")
    tokenizer.src_lang = source = _checked(languages[0], known, folder)
    tokenizer.tgt_lang = target
    return Languages(source, target)


def _checked(language: str, known: set[str], folder: str) -> str:
    """Return the code of a language in a tokenizer, or raise `InputError` if the tokenizer has no such language."""
    code = _find(language, known)
    if code is None:
        raise InputError(f"{folder}: unknown language {shown(language)}{_nearest_language(language, sorted(known))}")
    return code


def _find(language: str, known: Iterable[str]) -> str | None:
    """Return the known code of a language, for example `deu_Latn` for `de`, or None if there is none."""
    if language in known:
        return language
    found = _closest(language, known)
    if found is None:
        return None
    scripts = [langcodes.get(code).maximize().script for code in (language, found)]
    return found if scripts[0] == scripts[1] else None


def _closest(language: str, known: Iterable[str]) -> str | None:
    """Return the known code with the same language, perhaps in another script, or None if there is none."""
    codes = sorted(each for each in known if langcodes.tag_is_valid(each))  # the first of equally close codes is found
    if not langcodes.tag_is_valid(language):
        return None
    # The same script is better than the same region.
    for ignore in (False, True):
        found, distance = langcodes.closest_match(language, codes, max_distance=FAR, ignore_script=ignore)
        if found in codes and distance <= FAR:
            return str(found)
    return None


def _tasks(config: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the prefix of each translation task of a model, by source and target language."""
    tasks = config.get("task_specific_params")
    found = {}
    for name, settings in tasks.items() if isinstance(tasks, dict) else ():
        match = _TASK.fullmatch(name)
        if match and isinstance(settings, dict) and isinstance(settings.get("prefix"), str):
            found[match[1], match[2]] = settings["prefix"]
    return found


def _task(tasks: Mapping[tuple[str, str], str], folder: str, languages: Sequence[str]) -> Languages:
    for (source, target), prefix in tasks.items():
        if _find(languages[0], [source]) and _find(languages[1], [target]):
            return Languages(source, target, task=prefix)
    known = ", ".join(map("-".join, tasks))
    hint = "A template can have the prefix of another task"
    raise InputError(f"{folder}: no task for {'-'.join(languages)}, expected one of {known}. {hint}")


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
    """Return ". Did you mean 'x'?" with the known code of the same language or a similar one, or all known codes."""
    start = code.strip("_<> ")[:2].lower()
    alike = [each for each in known if each[:2].lower() == start]
    close = _closest(code, known) or next(iter(difflib.get_close_matches(code, alike, n=1, cutoff=0)), None)
    return f". Did you mean {shown(close)}?" if close else nearest(code, list(known))


def two_letters(code: str) -> str:
    """Return the code of a language without script and region, with two letters if there is one, empty if unknown."""
    language = langcodes.get(code).language if langcodes.tag_is_valid(code) else None
    return language if language and language != "und" else ""
