"""A study as a whole: what is not done yet is done, then its tables and curves are written."""

import importlib.util
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from features.feature import Resources
from features.progress import note
from moses_io.errors import InputError, printable
from moses_io.folders import locked, make_folder
from moses_io.streams import check_plain, open_output
from moses_io.text import encode
from rerank.experiment.checks import check_inputs
from rerank.experiment.stages import RECORD, run_stages
from rerank.experiment.studies.file import Study
from rerank.experiment.studies.grid import Cell, cells, replicates
from rerank.experiment.studies.results import Results, gather
from rerank.experiment.studies.stages import Plan, plan
from rerank.experiment.studies.tables import as_csv, as_json, notes, tables

TABLES = ("study.txt", "study.md", "study.json", "study.csv")


@dataclass(frozen=True)
class StudyOutcome:
    """What a study has shown: the lines of its tables, the stages that failed, and of how many."""

    lines: list[str]
    failed: list[str]
    parts: int


def run_study(study: Study, resources: Resources, jobs: int = 1, address: str = "") -> StudyOutcome:
    """Do what is not done yet, `jobs` trainings and cells at a time, and write what came out.

    These are done by the Ray cluster of an address, if there is one.

    The folder of results has, for each size and seed, `SIZE/seed-N/models` and for each system
    `SIZE/seed-N/SYSTEM/experiment.toml` with the results of that experiment; above them `study.txt`, `study.md`,
    `study.json` and `study.csv`, and where matplotlib is installed curves. What fails for its input is told, and left
    out of the tables.

    Raises:
        InputError: a file that is read is missing or not as it should be, the folder is not of an earlier study or
            another process is at work in it, or a training or a cell was killed.
    """
    _check(study)
    make_folder(study.output)
    with locked(study.output):
        grid = replicates(study)
        experiments = [cell for replicate in grid for cell in cells(study, replicate)]
        for replicate in grid:
            make_folder(Path(replicate.experiment.result("models")))
        if not (study.output / RECORD).exists():
            _check_free(study.output, experiments)
        for cell in experiments:
            make_folder(cell.path.parent)
            _write(cell.path, [cell.text.removesuffix("\n")])
        steps = plan(study, grid, experiments, resources, sharing=not address)
        run_stages(steps.stages, study.output / RECORD, jobs, address)
        failed = [stage.name for stage in steps.stages if not all(Path(path).exists() for path in stage.outputs)]
        return _write_results(study, steps, gather(study, steps), failed)


def _check(study: Study) -> None:
    """Refuse what can be seen before anything is trained."""
    if study.systems:
        check_inputs(study.experiment)
    for files in (study.experiment.train, *study.texts.values()):
        for path in files.files:
            check_plain(path)


def _check_free(output: Path, experiments: Sequence[Cell]) -> None:
    """Refuse a folder with files of others in the places of tables and cells; what a killed study wrote may stay."""
    others = {output / name: b"" for name in TABLES} | {cell.path: encode(cell.text) for cell in experiments}
    for path, own in others.items():
        if os.path.lexists(path) and not (path.is_file() and path.read_bytes() == own):
            raise InputError(f"{path}: this is there already and not of an earlier run; remove or rename it")


def _write_results(study: Study, steps: Plan, results: Results, failed: list[str]) -> StudyOutcome:
    """Write tables and curves."""
    shown = tables(study, results)
    plain = [line for table in shown for line in (*table.plain(), "")]
    lines = list(map(printable, [*plain, *notes(study)]))
    marked = [line for table in shown for line in (*table.markdown(), "")]
    contents: list[Iterable[str]] = [
        lines,
        map(printable, [*marked, *notes(study)]),
        [as_json(study, results, failed)],
        [as_csv(results).removesuffix("\n")],
    ]
    for name, content in zip(TABLES, contents, strict=True):
        _write(study.output / name, content)
    if importlib.util.find_spec("matplotlib") is None:
        note("no curves, only tables: pictures need matplotlib (pip install moses-rerank[plot])")
    else:
        from rerank.experiment.studies.pictures import draw

        for path in draw(study, steps, results):
            note(f"drawn: {path}")
    return StudyOutcome(lines, failed, len(steps.stages))


def _write(path: Path, lines: Iterable[str]) -> None:
    with open_output(str(path)) as stream:
        stream.writelines(encode(f"{line}\n") for line in lines)
