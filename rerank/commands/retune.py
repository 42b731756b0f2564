"""`moses-rerank retune`."""

import argparse

from rerank.commands.arguments import (
    add_allow_code,
    add_jobs,
    add_resources,
    declarers,
    positive_number,
    read_resources,
)

HELP = "train a reranker from the files of a run of mert-moses.pl"
EXAMPLES = """\
  mert-moses.pl dev.de dev.en ~/mosesdecoder/bin/moses model/moses.ini --working-dir $PWD/mert \\
      --decoder-flags "-threads 8"
  moses-rerank retune dev.de dev.en ~/mosesdecoder/bin/moses mert/moses.ini --working-dir rerank-work \\
      --decoder-flags="-threads 8" --corpus corpus/train --f de --e en

The positional arguments are the ones of mert-moses.pl. The decoder writes the n-best list of the dev set with the tuned
weights. The next steps are those of `run`: train, score, tune and save the reranker. Steps whose inputs have not
changed are skipped if the command is repeated. At the end, the folder of --working-dir contains the n-best list,
weights.ini with all weights, and the folder `reranker` for `apply`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, _ = declarers(parser)
    read("source", metavar="SOURCE", help="source of the dev set")
    read(
        "references",
        metavar="REFERENCES",
        help="reference of the dev set, or the prefix of several: REFERENCES0, … or REFERENCES.ref0, …",
    )
    add("decoder", metavar="DECODER", help="decoder program, such as ~/mosesdecoder/bin/moses")
    read("config", metavar="CONFIG", help="tuned moses.ini")
    add("--working-dir", required=True, metavar="DIR", help="folder for all results")
    add(
        "--corpus",
        required=True,
        metavar="STEM",
        help="prefix of the parallel corpus to train models on, STEM.F and STEM.E",
    )
    add("--f", required=True, metavar="F", help="extension of the source side of the corpus")
    add("--e", required=True, metavar="E", help="extension of the target side of the corpus")
    add(
        "--decoder-flags",
        default="",
        metavar="FLAGS",
        help='further arguments of the decoder, written with "=" because they begin with "-"',
    )
    add("--nbest", type=positive_number, default=100, metavar="N", help="candidates per sentence (default: 100)")
    read("--alignment", default="", help="word alignment of the corpus, as Moses' aligned.grow-diag-final-and")
    read(
        "--experiment",
        default="",
        help="experiment file without output, initial_weights, train and dev (default: models for a run of 25 minutes)",
    )
    resources = parser.add_argument_group("resources")
    add_jobs(resources, "models and features")
    add_resources(resources)
    add_allow_code(parser.add_argument_group("rare options"), "the file of --experiment")


def run(arguments: argparse.Namespace) -> None:
    """Decode dev with the tuned weights, run all stages and print the reports."""
    from features.progress import show
    from moses_io.files.text import ParallelFiles
    from rerank.moses.retuning import Decoder, retune

    stem = arguments.corpus
    corpus = ParallelFiles(f"{stem}.{arguments.f}", f"{stem}.{arguments.e}", arguments.alignment)
    lines = retune(
        Decoder(arguments.decoder, arguments.decoder_flags, arguments.config, arguments.nbest),
        arguments.source,
        arguments.references,
        corpus,
        arguments.working_dir,
        read_resources(arguments),
        experiment=arguments.experiment,
        allow_code=arguments.allow_code,
        jobs=arguments.jobs,
    )
    show(lines)
