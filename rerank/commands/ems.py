"""`moses-rerank ems`."""

import argparse
import re

from moses_io.files.errors import InputError
from moses_io.files.streams import name_of, numbered_lines
from moses_io.files.text import decode, write_text
from rerank.commands.arguments import declarers

HELP = "add reranking steps to the experiment.meta of Moses' EMS"
EXAMPLES = """\
  moses-rerank ems ~/mosesdecoder/scripts/ems/experiment.meta --output experiment.meta
  experiment.perl -meta experiment.meta -config config -exec

The steps are enabled by a section [RERANKING] and a line in [EVALUATION] of the EMS configuration.
docs/guide/moses.md shows both."""

# EMS replaces IN and OUT anywhere in a template by file names, even inside a name such as `RERANKING:trainer`. So
# templates do not name parameters of the module in full. EMS detects a failed step only by its stderr.
MODULE = """\
[RERANKING] single
train
	in: TUNING:input TUNING:reference TUNING:weight-config TRAINING:corpus
	out: reranker
	default-name: reranking/reranker
	ignore-unless: trainer
	rerun-on-change: trainer decoder decoder-settings nbest
	template: $trainer IN0 IN1 $decoder IN2 --working-dir OUT.work --corpus IN3 --f $input-extension \
--e $output-extension --nbest $nbest --decoder-flags="$decoder-settings" && ln -sfn OUT.work/reranker OUT
	error: ^moses-rerank [a-z-]+:,^Traceback

"""
"""Module that makes a reranker from the training corpus, the tuning set and the tuned ini file."""

STEP = """\
rerank
	in: system-output RERANKING:reranker input
	out: reranked-output
	default-name: evaluation/reranked
	pass-unless: reranking
	template: $reranking IN1 IN0.best* --source IN2 --output OUT
	error: ^moses-rerank [a-z-]+:,^Traceback
"""
"""Step that applies the reranker to the n-best list of a test set. It is inserted in `EVALUATION` before `NEXT`."""

NEXT, READS, READS_NOW = "remove-markup", "system-output", "reranked-output"
"""The first step after the decoder in Moses' file, the input that it reads there, and its new input."""

_MODULE = re.compile(r"\[(.+)\]\s+\S")
_INPUTS = re.compile(r"\s+in: ")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    _, read, write = declarers(parser)
    read("meta", metavar="META", help="experiment.meta of Moses, or a modified copy (- for stdin)")
    write("--output", default="-", help="copy of META with the additional steps (default: stdout)")


def run(arguments: argparse.Namespace) -> None:
    """Write a copy of an `experiment.meta` with the module and the step.

    Raises:
        InputError: the file already has the module, or has no step `NEXT` that reads the output of the decoder.
    """
    lines = [decode(line) for _, line in numbered_lines(arguments.meta)]
    module = step = ""
    added: list[str] = []
    changed = 0
    for line in lines:
        heading = _MODULE.match(line)
        if heading:
            module, step = heading[1], ""
            if module == "RERANKING":
                raise InputError(f"{name_of(arguments.meta)}: already has a module [RERANKING]")
            added += [MODULE] if module == "EVALUATION" else []
        elif re.match(r"[^\s#]", line):
            step = line.split()[0]
            added += [STEP] if (module, step) == ("EVALUATION", NEXT) else []
        elif (module, step) == ("EVALUATION", NEXT) and _INPUTS.match(line) and READS in line.split():
            line, changed = line.replace(READS, READS_NOW), changed + 1
        added.append(line)
    if changed != 1:
        expected = f"expected a step {NEXT} in [EVALUATION] that reads {READS}, as in Moses' experiment.meta"
        raise InputError(f"{name_of(arguments.meta)}: {expected}")
    write_text(arguments.output, "".join(added))
