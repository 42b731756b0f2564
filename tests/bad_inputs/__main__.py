"""Run every command with bad input: python tests/bad_inputs FOLDER [--only TEXT] [--show].

Each case runs in its own folder and process. A case fails if the command ends with a traceback, takes over 30 s or
2 GB, accepts input that must be an error, leaves an incomplete file, or does not report the error in one readable
line. The exit status is 1 if a case fails.
"""

import argparse
import shutil
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from case import Case, Outcome, attempt, faults
from experiments import experiment_cases
from features_asked import feature_cases
from lists import list_cases
from models import model_cases, reranker_cases
from settings import setting_cases
from texts import text_cases
from valid import make_valid, warm_up
from weight_files import weight_cases

from rerank.experiment.workers import cores

KINDS = (
    list_cases,
    weight_cases,
    text_cases,
    feature_cases,
    model_cases,
    reranker_cases,
    experiment_cases,
    setting_cases,
)


def main() -> int:
    """Run all cases and print those that fail."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--only", default="", help="only cases whose name contains this text")
    parser.add_argument("--show", action="store_true", help="print the outcome of all cases")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    valid = make_valid(folder / "valid")
    warm_up(valid, folder / "warm")
    cases = [case for kind in KINDS for case in kind(valid) if arguments.only in case.name]
    repeated = [name for name, number in Counter(case.name for case in cases).items() if number > 1]
    assert not repeated, repeated
    number = 0
    slowest = largest = 0.0
    folders = [folder / "cases" / str(number) for number in range(len(cases))]
    with ProcessPoolExecutor(arguments.jobs, get_context("fork")) as pool:
        for case, (outcome, wrong) in zip(cases, pool.map(judge, cases, folders), strict=True):
            slowest, largest = max(slowest, outcome.seconds), max(largest, outcome.megabytes)
            number += bool(wrong)
            if wrong or arguments.show:
                text = outcome.err.strip().split("\n")[-1].encode("unicode_escape").decode()[:300]
                print(
                    f"{case.name}: {', '.join(wrong) or 'right'}; {outcome.status}, {outcome.seconds:.1f} s: {text}",
                    flush=True,
                )
    print(f"{len(cases)} cases, {number} failed; slowest {slowest:.1f} s, largest {largest:.0f} MB")
    return int(number > 0)


def judge(case: Case, folder: Path) -> tuple[Outcome, list[str]]:
    """Run a case and return its outcome and faults. Its folder is kept only if there are faults."""
    shutil.rmtree(folder, ignore_errors=True)
    outcome = attempt(case, folder)
    wrong = faults(case, outcome)
    if not wrong:
        shutil.rmtree(folder)
    return outcome, wrong


if __name__ == "__main__":
    sys.exit(main())
