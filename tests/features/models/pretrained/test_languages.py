"""Languages of multilingual models of transformers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from features.feature import Sentence
from features.models.pretrained.encoding import Encoding
from features.models.pretrained.folder import open_folder
from features.models.pretrained.options import parse_options
from moses_io.files.errors import InputError

transformers = pytest.importorskip("transformers")

Make = Callable[..., Path]


def encoding(folder: Path, languages: str) -> Encoding:
    import torch

    path, options = parse_options(f"{folder}{languages}")
    return Encoding(open_folder(path, torch.device("cpu"), torch.float32), path, options)


@pytest.mark.parametrize(
    ("style", "languages", "code", "known"),
    [
        ("nllb", "deu_Latn,▁the", "▁the", None),
        ("nllb", "<unk>,deu_Latn", "<unk>", None),
        ("nllb", "qu,eng_Latn", "qu", "quy_Latn"),
        ("nllb", "sr-Latn,eng_Latn", "sr-Latn", "srp_Cyrl"),
        ("m2m100", "de,__en__", "__en__", "en"),
        ("m2m100", "zh-TW,en", "zh-TW", "zh"),
        ("mbart", "de_DE,sw", "sw", None),
        ("mbart50", "de_DE,no", "no", None),
        ("marian", "eng,x", "x", None),
        ("marian", "eng,dan", "dan", None),
    ],
)
def test_an_unknown_language_is_an_error_that_suggests_another_one(
    make: Make, style: str, languages: str, code: str, known: str | None
) -> None:
    """Without an error, the code would become the token of unknown words or a word of the vocabulary."""
    folder = make(style)
    with pytest.raises(InputError) as caught:
        encoding(folder, f"[{languages}]")
    assert str(caught.value).startswith(f"{folder}: unknown language {code!r}")
    assert known is None or f"Did you mean '{known}'?" in str(caught.value)


@pytest.mark.parametrize(
    ("style", "languages", "known"),
    [
        ("nllb", "de,en", ("deu_Latn", "eng_Latn")),
        ("nllb", "deu,eng_latn", ("deu_Latn", "eng_Latn")),
        ("nllb", "zh,zh-TW", ("zho_Hans", "zho_Hant")),
        ("nllb", "zh-Hant,nb", ("zho_Hant", "nob_Latn")),
        ("nllb", "sw,fa", ("swh_Latn", "pes_Arab")),
        ("m2m100", "deu_Latn,EN", ("de", "en")),
        ("m2m100", "pt-BR,zho_Hans", ("pt", "zh")),
        ("mbart", "de,en_US", ("de_DE", "en_XX")),
        ("mbart50", "de_AT,pt", ("de_DE", "pt_XX")),
        ("marian", "en,de", ("en", "deu")),
        ("fsmt", "deu,eng_Latn", ("de", "en")),
        ("t5", "deu_Latn,en", ("de", "en")),
    ],
)
def test_languages_are_found_by_other_codes(make: Make, style: str, languages: str, known: tuple[str, str]) -> None:
    found = encoding(make(style), f"[{languages}]").languages
    assert (found.source, found.target) == known


@pytest.mark.parametrize(
    ("style", "languages", "message"),
    [
        ("opus", "[deu_Latn,eng_Latn]", "a tokenizer without languages, expected hf:DIR without [deu_Latn,eng_Latn]"),
        ("nllb", "", "a tokenizer of several languages, expected hf:DIR[SOURCE,TARGET]. Known: 'ace_Arab, "),
        ("m2m100", "", "a tokenizer of several languages, expected hf:DIR[SOURCE,TARGET]. Known: 'af, "),
        ("mbart", "", "a tokenizer of several languages, expected hf:DIR[SOURCE,TARGET]. Known: 'ar_AR, "),
        ("marian", "", "a tokenizer of several languages, expected hf:DIR[SOURCE,TARGET]. Known: 'deu, nld'"),
        ("fsmt", "[en,de]", "a tokenizer of de and en, expected hf:DIR or hf:DIR[de,en]"),
        ("t5", "", "a model of several tasks, expected hf:DIR[SOURCE,TARGET] with one of de-en"),
        ("llama", "[foo,de]", "'foo' is not a code of a language"),
        ("t5", "[en,de]", "no task for en-de, expected one of de-en. A template can have the prefix of another task"),
        ("nllb", "[eng_Latn]", "expected hf:DIR[SOURCE,TARGET], found 1 language"),
        ("nllb", "[deu_Latn,eng_Latn,fra_Latn]", "expected hf:DIR[SOURCE,TARGET], found 3 languages"),
    ],
)
def test_missing_or_unsupported_languages_are_errors(make: Make, style: str, languages: str, message: str) -> None:
    folder = make(style)
    with pytest.raises(InputError) as caught:
        encoding(folder, languages)
    assert str(caught.value).startswith(f"{folder}: {message}")


@pytest.mark.parametrize(
    ("style", "languages", "unknown"), [("nllb", "[deu_Latn,eng_Latn]", "deu_Latn"), ("marian", "[eng,deu]", "deu")]
)
def test_a_language_that_only_the_tokenizer_supports_is_an_error(
    make: Make, style: str, languages: str, unknown: str
) -> None:
    """The model has embeddings of eight words, and the ids of language codes are larger."""
    with pytest.raises(InputError, match=f"the tokenizer supports language '{unknown}', the model does not"):
        encoding(make(style, size=8), languages)


@pytest.mark.parametrize(
    ("style", "languages", "source", "target"),
    [
        ("nllb", "[deu_Latn,eng_Latn]", "deu_Latn ▁die ▁Zeitung </s>", "eng_Latn ▁the ▁newspaper </s>"),
        ("m2m100", "[de,en]", "__de__ ▁die ▁Zeitung </s>", "__en__ ▁the ▁newspaper </s>"),
        ("mbart50", "[de_DE,en_XX]", "de_DE ▁die ▁Zeitung </s>", "en_XX ▁the ▁newspaper </s>"),
        ("mbart", "[de_DE,en_XX]", "▁die ▁Zeitung </s> de_DE", "▁the ▁newspaper </s> en_XX"),
        ("marian", "[eng,deu]", ">>deu<< ▁die ▁Zeitung </s>", "▁the ▁newspaper </s>"),
        ("opus", "", "▁die ▁Zeitung </s>", "▁the ▁newspaper </s>"),
        ("t5", "[de,en]", "▁die ▁the ▁die ▁Zeitung </s>", "▁the ▁newspaper </s>"),
    ],
)
def test_language_tokens_are_where_the_model_expects_them(
    make: Make, style: str, languages: str, source: str, target: str
) -> None:
    folder = make(style)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    reads, writes = (tokenizer.convert_tokens_to_ids(tokens.split(" ")) for tokens in (source, target))
    sentence = Sentence(0, ("die", "Zeitung"), (("the", "newspaper"),))
    brackets = languages.replace("]", ",text=tokens]") or "[text=tokens]"
    assert encoding(folder, brackets)([sentence]) == [(tuple(reads), tuple(writes))]
