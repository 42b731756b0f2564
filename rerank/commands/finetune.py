"""`moses-rerank finetune`."""

import argparse
from pathlib import Path

from features.request import is_pretrained
from moses_io.files.errors import InputError, shown
from rerank.commands.arguments import add_device, add_settings, declarers, read_settings

HELP = "fine-tune a pretrained model of transformers on a parallel corpus"
EXAMPLES = """\
  moses-rerank finetune hf:opus --source train.de --target train.en \\
      --dev-source dev.de --dev-target dev.en --output opus-tuned
  moses-rerank finetune 'hf:nllb[de,en]' --set lora_rank=16 epochs=2 …

The new folder is a model of transformers, used like the old one: hf:opus-tuned. The settings are epochs (3),
learning_rate (3e-5, with LoRA 3e-4), batch_tokens (2000), gradient_accumulation (1), warmup_updates (100),
label_smoothing (0.1), clip_norm (1), patience (2), lora_rank (0, all weights are trained) and seed (1)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    _, read, write = declarers(parser)
    read("model", metavar="hf:DIR", help="folder of a model, with languages and options as in features")
    read("--source", required=True, help="source side of the corpus, one tokenized sentence per line")
    read("--target", required=True, help="target side of the corpus, in the form of the n-best lists")
    read("--dev-source", required=True, help="source side of the dev set, for early stopping")
    read("--dev-target", required=True, help="target side of the dev set")
    write("--output", required=True, metavar="DIR", help="folder of the model, to be created")
    add_settings(parser, "KEY=VALUE", "settings such as epochs=2 learning_rate=1e-4 lora_rank=16")
    resources = parser.add_argument_group("resources")
    add_device(resources)
    resources.add_argument("--resume", action="store_true", help="continue interrupted training in --output, if any")


def run(arguments: argparse.Namespace) -> None:
    """Fine-tune a model."""
    from features.kinds.pretrained import require_transformers
    from moses_io.files.text import ParallelFiles

    if not is_pretrained(arguments.model):
        raise InputError(f"{shown(arguments.model)}: expected hf:DIR. `train` continues a model of ours")
    require_transformers()
    from features.models.pretrained.finetuning import fine_tune
    from features.models.pretrained.finetuning_run import parse_settings

    settings = parse_settings(read_settings(arguments.set, "KEY=VALUE"))
    corpus = ParallelFiles(arguments.source, arguments.target)
    dev = ParallelFiles(arguments.dev_source, arguments.dev_target)
    argument = arguments.model.partition(":")[2]
    fine_tune(argument, corpus, dev, Path(arguments.output), settings, arguments.device, arguments.resume)
