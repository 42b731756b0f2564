"""Languages of multilingual models of transformers: tiny tokenizers and models, made on the spot."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from features.feature import Resources, Sentence
from features.models.huggingface import HuggingFace
from moses_io.files.errors import InputError

transformers = pytest.importorskip("transformers")

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
WORDS = ["the", "newspaper", "die", "Zeitung"]
VOCABULARY = {token: number for number, token in enumerate([*SPECIAL, *(f"▁{word}" for word in WORDS)])}
SIZE = 300
"""Embeddings of the models, more than any of the tokenizers has tokens."""

Make = Callable[..., Path]


def sentencepiece(folder: Path) -> str:
    """Train a model whose pieces are the words."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS)]), model_writer=model, model_type="word", vocab_size=20,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (folder / "pieces.spm").write_bytes(model.getvalue())
    return str(folder / "pieces.spm")


def tokenizer_of(style: str, folder: Path) -> Any:
    vocabulary, pieces = folder / "words.json", [(token, 0.0) for token in VOCABULARY]
    match style:
        case "nllb":
            starts = [word[:end] for word in list(VOCABULARY)[len(SPECIAL) :] for end in range(1, len(word))]
            letters = [letter for word in WORDS for letter in word]
            parts = dict.fromkeys([*VOCABULARY, *starts, *letters])
            merges = [(word[:end], word[end]) for word in VOCABULARY if word[0] == "▁" for end in range(1, len(word))]
            return transformers.NllbTokenizer({part: number for number, part in enumerate(parts)}, merges)
        case "mbart":
            return transformers.MBartTokenizer(pieces)
        case "mbart50":
            return transformers.MBart50Tokenizer(pieces)
        case "m2m100":
            vocabulary.write_text(json.dumps(VOCABULARY))
            return transformers.M2M100Tokenizer(str(vocabulary), sentencepiece(folder))
        case "fsmt":
            vocabulary.write_text(json.dumps({token.strip("▁"): number for token, number in VOCABULARY.items()}))
            (folder / "merges.txt").write_text("t h 1\n")
            files = {"src_vocab_file": vocabulary, "tgt_vocab_file": vocabulary, "merges_file": folder / "merges.txt"}
            return transformers.FSMTTokenizer(langs=["de", "en"], **{name: str(path) for name, path in files.items()})
        case _:
            codes = {">>deu<<": len(VOCABULARY), ">>nld<<": len(VOCABULARY) + 1} if style == "marian" else {}
            vocabulary.write_text(json.dumps(VOCABULARY | codes))
            return transformers.MarianTokenizer(*[sentencepiece(folder)] * 2, str(vocabulary))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a folder with a tokenizer of a style and a model with random weights."""
    import torch

    def make(style: str, size: int = SIZE) -> Path:
        torch.manual_seed(1)
        kind = transformers.MBartConfig if style == "mbart" else transformers.M2M100Config
        config = kind(
            vocab_size=size, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64, dropout=0.0,
            bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None,
        )  # fmt: skip
        folder = tmp_path / style
        transformers.AutoModelForSeq2SeqLM.from_config(config).save_pretrained(folder)
        tokenizer_of(style, tmp_path).save_pretrained(folder)
        return folder

    return make


def feature(folder: Path, languages: str) -> HuggingFace:
    return HuggingFace(f"{folder}{languages}", Resources("cpu"))


@pytest.mark.parametrize(
    ("style", "languages", "code", "known"),
    [
        ("nllb", "de,eng_Latn", "de", "deu_Latn"),
        ("nllb", "deu_Latn,eng_latn", "eng_latn", "eng_Latn"),
        ("nllb", "deu_Latn,▁the", "▁the", None),
        ("nllb", "<unk>,deu_Latn", "<unk>", None),
        ("m2m100", "deu_Latn,en", "deu_Latn", "de"),
        ("m2m100", "de,EN", "EN", "en"),
        ("m2m100", "de,__en__", "__en__", "en"),
        ("mbart", "de,en_XX", "de", "de_DE"),
        ("mbart", "de_DE,en_US", "en_US", "en_XX"),
        ("mbart50", "de_AT,en_XX", "de_AT", "de_DE"),
        ("mbart50", "de_DE,pt", "pt", "pt_XX"),
        ("marian", "eng,ger", "ger", None),
        ("marian", "eng,de", "de", "deu"),
    ],
)
def test_an_unknown_language_is_named_with_the_nearest_known_one(
    make: Make, style: str, languages: str, code: str, known: str | None
) -> None:
    """It would stand as the token of unknown words, or as a word of the vocabulary."""
    folder = make(style)
    with pytest.raises(InputError) as caught:
        feature(folder, f"[{languages}]")
    nearest = f". Did you mean '{known}'?" if known else ". Known: "
    assert str(caught.value).startswith(f"{folder}: unknown language {code!r}{nearest}")


@pytest.mark.parametrize(
    ("style", "languages", "message"),
    [
        ("opus", "[deu_Latn,eng_Latn]", "a tokenizer without languages, expected hf:DIR without [deu_Latn,eng_Latn]"),
        ("nllb", "", "a tokenizer of several languages, expected hf:DIR[SOURCE,TARGET]. Known: 'ace_Arab, "),
        ("m2m100", "", "a tokenizer of several languages, expected hf:DIR[SOURCE,TARGET]. Known: 'af, "),
        ("mbart", "", "a tokenizer of several languages, expected hf:DIR[SOURCE,TARGET]. Known: 'ar_AR, "),
        ("marian", "", "a tokenizer of several languages, expected hf:DIR[SOURCE,TARGET]. Known: 'deu, nld'"),
        ("fsmt", "[en,de]", "a tokenizer of de and en, expected hf:DIR or hf:DIR[de,en]"),
        ("nllb", "[eng_Latn]", "expected hf:DIR[SOURCE,TARGET], found 1 language"),
        ("nllb", "[deu_Latn,eng_Latn,fra_Latn]", "expected hf:DIR[SOURCE,TARGET], found 3 languages"),
    ],
)
def test_languages_where_there_are_none_or_too_few(make: Make, style: str, languages: str, message: str) -> None:
    folder = make(style)
    with pytest.raises(InputError) as caught:
        feature(folder, languages)
    assert str(caught.value).startswith(f"{folder}: {message}")


def test_a_language_that_the_tokenizer_knows_and_the_model_does_not(make: Make) -> None:
    """Words only: the codes come behind them. Marian has a token of the target language, which sources begin with."""
    for style, languages, unknown in (("nllb", "[deu_Latn,eng_Latn]", "deu_Latn"), ("marian", "[eng,deu]", "deu")):
        folder = make(style, size=len(VOCABULARY))
        with pytest.raises(InputError, match=f"the tokenizer supports language '{unknown}', the model does not"):
            feature(folder, languages)


@pytest.mark.parametrize("languages", ["", "[de,en]"])
def test_a_tokenizer_of_one_pair_of_languages(make: Make, languages: str) -> None:
    pytest.importorskip("sacremoses")
    (value,) = feature(make("fsmt"), languages)([Sentence(0, ("die",), (("the", "the"),))])
    assert np.isfinite(value) and value < 0


@pytest.mark.parametrize(
    ("style", "languages", "source", "target"),
    [
        ("nllb", "[deu_Latn,eng_Latn]", "deu_Latn ▁die ▁Zeitung </s>", "eng_Latn ▁the ▁newspaper </s>"),
        ("m2m100", "[de,en]", "__de__ ▁die ▁Zeitung </s>", "__en__ ▁the ▁newspaper </s>"),
        ("mbart50", "[de_DE,en_XX]", "de_DE ▁die ▁Zeitung </s>", "en_XX ▁the ▁newspaper </s>"),
        ("marian", "[eng,deu]", ">>deu<< ▁die ▁Zeitung </s>", "▁the ▁newspaper </s>"),
        ("opus", "", "▁die ▁Zeitung </s>", "▁the ▁newspaper </s>"),
    ],
)
def test_known_languages_stand_where_the_model_expects_them(
    make: Make, style: str, languages: str, source: str, target: str
) -> None:
    import torch

    folder = make(style)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    reads, writes = (tokenizer.convert_tokens_to_ids(tokens.split(" ")) for tokens in (source, target))
    assert tokenizer.unk_token_id not in (*reads, *writes)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    with torch.no_grad():
        shifted = torch.tensor([[2, *writes[:-1]]])
        logits = model(input_ids=torch.tensor([reads]), decoder_input_ids=shifted).logits[0]
    wanted = sum(float(row.log_softmax(-1)[token]) for row, token in zip(logits, writes, strict=True))
    value = feature(folder, languages)([Sentence(0, ("die", "Zeitung"), (("the", "newspaper"),))])
    np.testing.assert_allclose(value, [[wanted]], rtol=1e-5)
