"""`moses-rerank train`."""

import argparse
from functools import partial
from pathlib import Path

from features.models.torchrun import is_one_of_several
from moses_io.files.errors import InputError
from rerank.commands.arguments import (
    add_device,
    add_jobs,
    add_ray,
    add_settings,
    declarers,
    read_jobs,
    read_settings,
    whole_number,
)

HELP = "train one or several models on a parallel corpus"
EXAMPLES = """\
  moses-rerank train --preset attend-after --source train.de --target train.en \\
      --dev-source dev.de --dev-target dev.en --output models/forward
  moses-rerank train --preset cohn-align --backward --set hidden_size=512 dropout=0.2 epochs=20 \\
      --source train.de --target train.en --dev-source dev.de --dev-target dev.en --output models/backward
  moses-rerank train --preset rnnsearch,cohn-align,yang-window11 --seeds 3 --jobs 2 --output models/many …
  moses-rerank train --preset cohn-align-glofer-pre --pretrained-model models/align --output models/glofer …
  torchrun --nproc-per-node 2 --no-python moses-rerank train --preset rnnsearch --output models/forward …

With several presets or --seeds, several models are trained. With torchrun, several processes train one model."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, write = declarers(parser)
    add("--preset", required=True, metavar="NAME[,NAME…]", help="one or several presets, see `moses-rerank presets`")
    read("--source", required=True, help="source side of the corpus, one tokenized sentence per line")
    read("--target", required=True, help="target side of the corpus, in the language of the n-best lists")
    read(
        "--dev-source",
        required=True,
        help="source side of the dev set, for early stopping and for fine-tuning (setting `fine_tuning_epochs`)",
    )
    read("--dev-target", required=True, help="target side of the dev set")
    write("--output", required=True, metavar="DIR", help="folder of the model, to be created")
    add_settings(
        parser,
        "KEY=VALUE",
        "settings such as hidden_size=512 attention_terms=markov,fertility, see `moses-rerank presets`",
    )
    add("--backward", action="store_true", help="model of p(source|target) instead of p(target|source)")
    add("--right-to-left", action="store_true", help="model that predicts the target from its last word to its first")
    add("--seeds", type=whole_number, metavar="N", help="number of models per preset, in DIR/PRESET-SEED (default: 1)")
    read(
        "--alignment",
        default="",
        help="word alignment of the corpus, one line per pair, as Moses' aligned.grow-diag-final-and, required by the "
        "setting `guided_alignment`, optional for `lexicon`",
    )
    read(
        "--synthetic-source",
        default="",
        help="source side of synthetic pairs: a translation of --synthetic-target, as `translate --backward` writes it",
    )
    read("--synthetic-target", default="", help="target side of synthetic pairs: monolingual text")
    add("--paper-sizes", action="store_true", help="sizes and training settings from the paper of the preset")
    resources = parser.add_argument_group("resources")
    add_device(resources)
    add_jobs(resources, "models")
    add_ray(resources, "training")
    add, read, _ = declarers(parser.add_argument_group("initialization and interrupted training"))
    read(
        "--pretrained-model",
        default="",
        metavar="DIR",
        help="folder of a trained model to start from, required by presets whose name ends in -pre",
    )
    add("--resume", action="store_true", help="continue interrupted training in --output, if any")


def run(arguments: argparse.Namespace) -> None:
    """Train one model, or one for each preset and seed."""
    from features.models.folder import check_free
    from features.models.training.request import TrainingFiles, TrainingRequest, synthetic_files, train_model
    from moses_io.files.text import ParallelFiles
    from rerank.experiment.model_entries import members
    from rerank.experiment.workers import do_all

    settings = read_settings(arguments.set, "KEY=VALUE")
    files = TrainingFiles(
        corpus=ParallelFiles(arguments.source, arguments.target, alignment=arguments.alignment),
        dev=ParallelFiles(source=arguments.dev_source, target=arguments.dev_target),
        synthetic=synthetic_files(arguments.synthetic_source, arguments.synthetic_target),
    )
    several = "," in arguments.preset or arguments.seeds is not None
    together = is_one_of_several()
    if together and (several or arguments.jobs or arguments.ray):
        raise InputError("with torchrun all processes train one model. Omit --jobs, --ray, --seeds and further presets")
    if several and "seed" in settings:
        raise InputError("seed: several models have the seeds 1, 2, …. Remove it")
    switches = {name: vars(arguments)[name] for name in ("backward", "right_to_left", "paper_sizes")}
    trainings = {}
    for name, model in members(arguments.preset, 1 if arguments.seeds is None else arguments.seeds).items():
        seed = {"seed": model["seed"]} if several else {}
        request = TrainingRequest(model["preset"], **switches, settings=settings | seed)
        request.check(arguments.pretrained_model)
        request.check_synthetic(files.synthetic)
        output = f"{arguments.output}/{name}" if several else arguments.output
        if not arguments.resume and not together:  # before hours of training
            check_free(Path(output), resume=False)
        resume = arguments.resume or bool(arguments.ray)  # a worker that died is restarted and continues its training
        trainings[f"train {name if several else arguments.output}"] = partial(
            train_model, request, files, output, arguments.device, arguments.pretrained_model, resume, together
        )
    do_all(trainings, read_jobs(arguments, len(trainings)), arguments.ray)
