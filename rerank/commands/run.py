"""`moses-rerank run`."""

import argparse

from rerank.commands.arguments import (
    add_allow_code,
    add_jobs,
    add_ray,
    add_resources,
    declarers,
    read_resources,
)

HELP = "run an experiment: train models, score, tune, rerank and report"
EXAMPLES = """\
  moses-rerank run experiment.toml

An experiment file, with paths relative to its folder:

  output = "work"
  initial_weights = "moses.ini"
  train = { source = "train.de", target = "train.en" }
  dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest.gz" }
  test = { source = "test.de", reference = "test.en", nbest = "test.nbest.gz" }

  [models]
  forward = { preset = "attend-after" }
  backward = { preset = "attend-after", backward = true, epochs = 10 }

  [features]
  NMT = "neural:forward"
  NMTback = "neural:backward"
  LMbig = "kenlm:lm.5gram.arpa.gz"

  [tuning]
  seed = 1

With --minutes, the key `minutes` or `apply_seconds`, or with neither [models] nor [features], `run` chooses models and
features by the time that it may take (default: 25 minutes). It measures the speed of the machine first, prints the
plan, and writes all tables to experiment.toml in the output folder. `moses-rerank init` writes an experiment file for
given files.

For several test sets, write one table [[test]] with a name for each. A test set without "reference" is reranked, and
the report lists the changes. Without a test set, cross-validated results on dev are printed.

A second run repeats only the stages whose inputs have changed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, _ = declarers(parser)
    read("experiment", metavar="EXPERIMENT", help="experiment file (TOML)")
    add(
        "--minutes",
        type=float,
        metavar="M",
        help="time of the run in minutes, for which `run` chooses models (default: `minutes` in EXPERIMENT, or 25)",
    )
    add_jobs(parser, "models and features")
    add_resources(parser)
    add_ray(parser, "training and scoring")
    add("--link", action="store_true", help="symbolic links instead of copies of files in the reranker folder")
    add_allow_code(parser, "EXPERIMENT")


def run(arguments: argparse.Namespace) -> None:
    """Run all stages that are not up to date, and print the reports."""
    from features.progress import show
    from rerank.experiment.file import read_experiment
    from rerank.experiment.run import run_experiment

    resources = read_resources(arguments, arguments.ray)
    experiment = read_experiment(arguments.experiment, allow_code=arguments.allow_code, minutes=arguments.minutes)
    show(run_experiment(experiment, resources, arguments.jobs, arguments.link, arguments.ray))
