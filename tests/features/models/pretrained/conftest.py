"""Tiny Hugging Face models with random weights, and tokenizers of the matching classes."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers")

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
WORDS = ["the", "newspaper", "die", "Zeitung"]
VOCABULARY = {token: number for number, token in enumerate([*SPECIAL, *(f"▁{word}" for word in WORDS)])}
SIZE = 300
"""Number of embeddings of the models, larger than the vocabulary of every tokenizer."""

Make = Callable[..., Path]


def sentencepiece(folder: Path) -> str:
    """Train a sentencepiece model whose subwords are the words, and return its path."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS)]), model_writer=model, model_type="word", vocab_size=20,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (folder / "pieces.spm").write_bytes(model.getvalue())
    return str(folder / "pieces.spm")


def byte_pairs() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return a BPE vocabulary with the words and their prefixes, and the merges that produce them."""
    starts = [word[:end] for word in list(VOCABULARY)[len(SPECIAL) :] for end in range(1, len(word))]
    letters = [letter for word in WORDS for letter in word]
    parts = dict.fromkeys([*VOCABULARY, *starts, *letters])
    merges = [(word[:end], word[end]) for word in VOCABULARY if word[0] == "▁" for end in range(1, len(word))]
    return {part: number for number, part in enumerate(parts)}, merges


def tokenizer_of(style: str, folder: Path) -> Any:
    vocabulary, pieces = folder / "words.json", [(token, 0.0) for token in VOCABULARY]
    match style:
        case "nllb":
            return transformers.NllbTokenizer(*byte_pairs())
        case "llama":
            return transformers.LlamaTokenizer(*byte_pairs())
        case "mbart":
            return transformers.MBartTokenizer(pieces)
        case "mbart50":
            return transformers.MBart50Tokenizer(pieces)
        case "t5":
            return transformers.T5Tokenizer(pieces, extra_ids=0)
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


def config_of(style: str, size: int) -> Any:
    """Return the configuration of two layers with large weights, so that values differ between candidates."""
    tokens = {"vocab_size": size, "pad_token_id": 1, "eos_token_id": 2}
    if style == "llama":
        return transformers.LlamaConfig(
            **tokens, bos_token_id=0, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, max_position_embeddings=64, initializer_range=0.5,
        )  # fmt: skip
    if style == "t5":
        return transformers.T5Config(
            **tokens, decoder_start_token_id=1, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2,
            initializer_factor=2.0, dropout_rate=0.0,
            task_specific_params={"translation_de_to_en": {"prefix": "die the "}},
        )  # fmt: skip
    sizes = {
        "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 64,
        "dropout": 0.0, "init_std": 0.5, "bos_token_id": 0,
    }  # fmt: skip
    if style == "fsmt":
        del tokens["vocab_size"]
        return transformers.FSMTConfig(langs=["de", "en"], src_vocab_size=size, tgt_vocab_size=size, **tokens, **sizes)
    if style in ("marian", "opus"):
        return transformers.MarianConfig(decoder_start_token_id=1, forced_eos_token_id=None, **tokens, **sizes)
    kind = transformers.MBartConfig if style.startswith("mbart") else transformers.M2M100Config
    return kind(decoder_start_token_id=2, forced_eos_token_id=None, **tokens, **sizes)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that makes a folder with a tokenizer of a style and a model with random weights."""
    import torch

    def make(style: str, size: int = SIZE) -> Path:
        torch.manual_seed(1)
        kind = transformers.AutoModelForCausalLM if style == "llama" else transformers.AutoModelForSeq2SeqLM
        folder = tmp_path / style
        kind.from_config(config_of(style, size)).save_pretrained(folder)
        tokenizer_of(style, tmp_path).save_pretrained(folder)
        return folder

    return make
