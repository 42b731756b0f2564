"""`moses-rerank init`."""

import argparse

from rerank.commands.arguments import declarers

HELP = "write an experiment file for the files that there are"
EXAMPLES = """\
  moses-rerank init data/
  moses-rerank init dev.nbest.gz dev.de dev.en test.nbest.gz test.de train.de train.en moses.ini lm.arpa.gz

It looks at what the files hold and tells what it takes each for. Names count only for the list of dev: where several
could be it, its name has `dev`, `tune` or `val` in it; one with `test` or `eval` in its name alone is not it. Then
`moses-rerank run experiment.toml` does all that the file says."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    _, read, write = declarers(parser)
    help_text = "lists, texts, weights, n-gram models; of a folder the files in it, but not those of its folders"
    read("files", nargs="+", help=help_text)
    write("--output", default="experiment.toml", help="file to write, - for stdout (default: %(default)s)")


def run(arguments: argparse.Namespace) -> None:
    """Log the role of each file and write the experiment file."""
    import os
    import shlex

    from features.progress import log, progress_bar
    from moses_io.files.errors import InputError
    from moses_io.files.streams import STANDARD, open_output
    from rerank.experiment.checks import check_inputs
    from rerank.experiment.file import parse_experiment
    from rerank.experiment.init.proposal import propose
    from rerank.experiment.init.roles import find_roles
    from rerank.experiment.init.sorting import files_in, sort_files

    output = arguments.output
    if output != STANDARD and os.path.lexists(output):
        raise InputError(f"{output}: this is there already; name another --output")
    if output != STANDARD and not os.path.isdir(folder := os.path.dirname(output) or "."):
        raise InputError(f"{folder}: no such folder")
    files = sort_files(files_in(arguments.files))
    with progress_bar("find what goes together", None):
        roles = find_roles(files)
    for line in roles.lines():
        log.info(line)
    if roles.missing:
        raise InputError("; ".join(roles.missing))
    content = propose(roles, output)
    # The text is parsed again as `run` will parse it, so that the file that is written has passed all checks.
    check_inputs(parse_experiment(content, "<stdout>" if output == STANDARD else output))
    with open_output(output) as stream:
        stream.write(content)
    if output != STANDARD:
        log.info(f"{output} is written; look at it, then go on with: moses-rerank run {shlex.quote(output)}")
