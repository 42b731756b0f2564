"""`moses-rerank study`."""

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

HELP = "run an experiment for several corpus sizes, seeds and systems, with tables and curves"
EXAMPLES = """\
  moses-rerank study study.toml --jobs 4

A study file is an experiment file (see `run --help`) with an additional table:

  [study]
  sizes = [1500, 3000, "all"]     # numbers of sentence pairs, from the start of the corpus (default: the whole corpus)
  seeds = 3                       # number of replicates of each size, or a list of seeds (default: 1)

  [study.systems]                 # features of each system (default: one system with all features)
  forward = ["NMT"]
  both = ["NMT", "NMTback"]

Each model is trained once for each size and seed. Each system is an experiment in OUTPUT/SIZE/seed-N/SYSTEM. Without
[features], only the perplexities of models are compared, and dev and test need no n-best lists.

A second run skips stages that are complete and unchanged. Failed stages are reported and left out of the tables. Curves
are drawn if matplotlib is installed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    _, read, _ = declarers(parser)
    read("study", metavar="STUDY", help="study file (TOML)")
    add_jobs(parser, "training runs and experiments")
    add_resources(parser)
    add_ray(parser, "training and experiments")
    add_allow_code(parser, "STUDY")


def run(arguments: argparse.Namespace) -> None:
    """Run a study and print its tables. Raise `InputError` at the end if stages failed."""
    from features.progress import show
    from moses_io.files.errors import InputError, counted
    from rerank.experiment.studies.file import read_study
    from rerank.experiment.studies.run import run_study

    resources = read_resources(arguments, arguments.ray)
    study = read_study(arguments.study, allow_code=arguments.allow_code)
    trainings = len(study.experiment.models) * len(study.sizes) * len(study.seeds)
    jobs = read_jobs(arguments, trainings)
    lines, failed, parts = run_study(study, resources, jobs, arguments.ray)
    show(lines)
    if failed:
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        fault = f"{len(failed)} of {counted(parts, 'stage')} failed: {failed[0]}{more}"
        raise InputError(f"{fault}. See the messages above. The same command repeats them")
