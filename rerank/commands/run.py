"""`moses-rerank run`."""

import argparse

from rerank.commands.arguments import (
    add_allow_code,
    add_jobs,
    add_ray,
    add_resources,
    declarers,
    read_jobs,
    read_resources,
)

HELP = "do the whole chain that an experiment file describes"
EXAMPLES = """\
  moses-rerank run experiment.toml

An experiment file, with paths relative to its folder:

  output = "work"
  start = "moses.ini"
  train = { source = "train.de", target = "train.en" }
  dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest.gz" }
  test = { source = "test.de", reference = "test.en", nbest = "test.nbest.gz" }

  [models]
  forward = { preset = "rnnsearch" }
  backward = { preset = "rnnsearch", backward = true, epochs = 10 }

  [features]
  NMT = "neural:forward"
  NMTback = "neural:backward"
  LMbig = "kenlm:lm.5gram.arpa.gz"

  [tuning]
  seed = 1

Without [models] and [features] it gets those that suit its corpus and some 25 minutes of two cores;
experiment.toml among the results has them in full. `moses-rerank init` writes such a file for the files that there are.

Several test sets are tables [[test]], each with a name of its own; without "reference" a test set is reranked, and the
report says what changed. Without any test set, what folds of dev say is printed.

A second run does only the stages whose inputs have changed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add, read, _ = declarers(parser)
    read("experiment", metavar="EXPERIMENT", help="TOML file")
    add_jobs(parser, "models and features")
    add_ray(parser, "train and score")
    add("--link", action="store_true", help="link models and tables into the reranker, do not copy them")
    add_allow_code(parser, "EXPERIMENT")
    add_resources(parser)


def run(arguments: argparse.Namespace) -> None:
    """Run all stages that are not up to date, and print the reports."""
    from features.progress import show
    from rerank.experiment.chain import run_experiment
    from rerank.experiment.file import read_experiment

    resources = read_resources(arguments, arguments.ray)
    experiment = read_experiment(arguments.experiment, allow_code=arguments.allow_code)
    jobs = read_jobs(arguments, len(experiment.models))
    show(run_experiment(experiment, resources, jobs, arguments.link, arguments.ray))
