from pathlib import Path

import pytest

WORDS = ["the", "neighbours", "bought", "newspaper", "die", "Nachbarinnen", "haben", "Zeitung", ".", "a", "b"]


@pytest.fixture(scope="session")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sequence-to-sequence model of transformers with random weights."""
    pytest.importorskip("transformers")
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    known = {word: number for number, word in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    torch.manual_seed(1)
    config = BartConfig(
        vocab_size=len(known), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64, dropout=0.0,
        bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=None,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("transformer")
    BartForConditionalGeneration(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
