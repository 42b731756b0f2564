"""`moses-rerank retune`."""

import argparse

from rerank.commands.arguments import add_jobs, add_resources, declarers, positive_number, read_resources

HELP = "make a reranker after mert-moses.pl, with its arguments"
EXAMPLES = """\
  mert-moses.pl dev.de dev.en ~/moses/bin/moses model/moses.ini --working-dir $PWD/mert --decoder-flags "-threads 8"
  moses-rerank retune dev.de dev.en ~/moses/bin/moses mert/moses.ini --working-dir rerank-work \\
      --decoder-flags="-threads 8" --corpus corpus/train --f de --e en

The decoder makes the n-best list of dev with the tuned weights; then all goes as in `run`, also when the command is
given again. The folder gets the list, weights.ini with all weights, and `reranker`, which `apply` takes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, _ = declarers(parser)
    read("source", metavar="SOURCE", help="source of dev")
    read(
        "references", metavar="REFERENCES", help="its reference, or the stem of several: REFERENCES0 or REFERENCES.ref0"
    )
    add("decoder", metavar="DECODER", help="program, such as ~/moses/bin/moses")
    read("config", metavar="CONFIG", help="ini that the tuning wrote")
    add("--working-dir", required=True, metavar="DIR", help="folder for all results")
    add("--decoder-flags", default="", metavar="FLAGS", help="of the decoder; with = before them, as they begin with -")
    add("--nbest", type=positive_number, default=100, metavar="N", help="candidates of a sentence (default: 100)")
    add("--corpus", required=True, metavar="STEM", help="parallel corpus that models are trained on, STEM.F and STEM.E")
    add("--f", required=True, metavar="F", help="extension of its source")
    add("--e", required=True, metavar="E", help="extension of its target")
    read("--alignment", default="", help="its word alignment, Moses' aligned.grow-diag-final-and")
    read(
        "--experiment",
        default="",
        help="experiment file without output, start, train and dev (default: models that suit the corpus)",
    )
    add(
        "--allow-code",
        action="store_true",
        help="let features that are code run though FILE is not your own in the working folder or below it",
    )
    add_jobs(parser, "models and features")
    add_resources(parser)


def run(arguments: argparse.Namespace) -> None:
    """Decode dev with the tuned weights, run all stages and print the reports."""
    from features.models.training.request import ParallelFiles
    from features.progress import show
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
