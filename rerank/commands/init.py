"""`moses-rerank init`."""

import argparse

from rerank.commands.arguments import declarers

HELP = "write an experiment file for given files"
EXAMPLES = """\
  moses-rerank init data/
  moses-rerank init dev.nbest.gz dev.de dev.en test.nbest.gz test.de train.de train.en moses.ini lm.arpa.gz

`init` infers the role of each file from its content and reports it. It uses file names for three things: to find the
list of dev, to name test sets, and to reject a monolingual text that is named like a dev or test set. The list of dev
has a word such as `dev`, `tune` or `val` in its name. Otherwise it is the only list that has a source and a reference
and no word such as `test` or `eval` in its name.
The next step is `moses-rerank run experiment.toml`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    _, read, write = declarers(parser)
    read(
        "files",
        nargs="+",
        help="n-best lists, texts (parallel or monolingual), weights, n-gram models and word alignments, or folders of "
        "such files (hidden files are ignored, and subfolders without a model of transformers)",
    )
    write("--output", default="experiment.toml", help="experiment file, - for stdout (default: %(default)s)")


def run(arguments: argparse.Namespace) -> None:
    """Log the role of each file and write the experiment file."""
    import os
    import shlex

    from features.progress import log, progress_bar
    from moses_io.files.errors import InputError
    from moses_io.files.streams import STANDARD, open_output
    from rerank.experiment.checks import check_inputs
    from rerank.experiment.file import parse_experiment
    from rerank.experiment.init.kinds import detect_kinds, files_in, pretrained_in
    from rerank.experiment.init.proposal import propose
    from rerank.experiment.init.roles import find_roles
    from rerank.experiment.plan import with_all_models

    output = arguments.output
    if output != STANDARD and os.path.lexists(output):
        raise InputError(f"{output}: already exists. Name another --output")
    if output != STANDARD and not os.path.isdir(folder := os.path.dirname(output) or "."):
        raise InputError(f"{folder}: no such folder")
    files, pretrained = detect_kinds(files_in(arguments.files)), pretrained_in(arguments.files)
    with progress_bar("match files", None):
        roles = find_roles(files)
    for line in roles.lines():
        log.info(line)
    for folder in pretrained:
        log.info(f"{folder}: pretrained model, in a comment of [features]")
    if roles.missing:
        raise InputError(". ".join(roles.missing))
    content = propose(roles, output, pretrained)
    # The text is parsed again as `run` will parse it, so that the file that is written has passed all checks.
    experiment = parse_experiment(content, "<stdout>" if output == STANDARD else output)
    check_inputs(with_all_models(experiment))
    with open_output(output) as stream:
        stream.write(content)
    if output != STANDARD:
        log.info(f"{output} is written. Check it, then run: moses-rerank run {shlex.quote(output)}")
