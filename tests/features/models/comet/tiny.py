"""Program for COMET's environment: `python tiny.py FOLDER` makes tiny models with random weights and their scores.

Each model is in FOLDER/CLASS. `scores.json` contains, by class, the scores of the package for the candidates in `LIST`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
import yaml
from comet.cli.mbr import build_embeddings, mbr_decoding
from comet.models import load_from_checkpoint, str2model

SOURCE = "Das Haus ist alt."
LIST = ["The house is old.", "House is the old.", "The old house, which is old.", "The house is old.", "Old"]
SETTINGS = {
    "regression_metric": {"hidden_sizes": [8], "layer": "mix", "pool": "avg"},
    "referenceless_regression_metric": {"hidden_sizes": [8], "layer": "mix", "pool": "avg"},
    "unified_metric": {"hidden_sizes": [8], "input_segments": ["mt", "src"], "layer_transformation": "sparsemax_patch"},
    "xcomet_metric": {"hidden_sizes": [8], "layer_transformation": "sparsemax", "word_layer": 1},
}


def main() -> None:
    folder = Path(sys.argv[1])
    encoder = folder / "encoder"
    make_encoder(encoder)
    scores = {}
    for kind, settings in SETTINGS.items():
        torch.manual_seed(1)
        given = {"pretrained_model": str(encoder), "load_pretrained_weights": False, "local_files_only": True}
        model = str2model[kind](**given, **settings)
        for weight in model.layerwise_attention.scalar_parameters:  # zeros would give all layers equal weights
            torch.nn.init.normal_(weight)
        # Published checkpoints name a model of a hub.
        named = {**settings, "class_identifier": kind, "pretrained_model": "xlm-roberta-large"}
        (folder / kind / "checkpoints").mkdir(parents=True)
        (folder / kind / "hparams.yaml").write_text(yaml.safe_dump(named))
        path = folder / kind / "checkpoints" / "model.ckpt"
        lightning = {"pytorch-lightning_version": "2.0.0", "hparams_name": "kwargs"}
        saved = {"state_dict": model.state_dict(), "hyper_parameters": {**model.hparams, **named}}
        torch.save({**saved, "hyper_parameters": {**saved["hyper_parameters"], **given}, **lightning}, path)
        opened = load_from_checkpoint(str(path), local_files_only=True).eval()
        scores[kind] = by_the_package(opened)
        torch.save({**saved, **lightning}, path)
    (folder / "scores.json").write_text(json.dumps(scores))


def by_the_package(model: Any) -> list[float]:
    if model.requires_references():
        source, texts = build_embeddings([SOURCE], LIST, model, 2)
        return list(mbr_decoding(source, texts.reshape(1, len(LIST), -1), model)[0].tolist())
    samples = [{"src": SOURCE, "mt": text} for text in LIST]
    return list(model.predict(samples, batch_size=2, gpus=0, num_workers=1, progress_bar=False).scores)


def make_encoder(folder: Path) -> None:
    """Write an XLM-R tokenizer and configuration."""
    folder.mkdir(parents=True)
    letters = sorted(set("".join([SOURCE, *LIST])) - {" "})
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", *letters, "▁the", "▁old"]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram([(piece, -1.0) for piece in pieces], unk_id=3))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    transformers.XLMRobertaTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    transformers.XLMRobertaConfig(
        vocab_size=len(pieces) + 1, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64, type_vocab_size=1, initializer_range=0.5,
    ).save_pretrained(folder)  # fmt: skip


if __name__ == "__main__":
    main()
