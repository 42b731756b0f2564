"""Filtered copies of the files of an experiment, for lists and texts with subwords."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from moses_io.files.folders import locked, make_folder
from moses_io.files.text import ParallelFiles
from moses_io.input_filters import InputFilters
from rerank.experiment.entries import SELECTION, NbestFiles, table_of_tests
from rerank.experiment.experiment import Experiment
from rerank.experiment.stages import RECORD, Stage, run_stages
from rerank.experiment.toml import with_paths

FOLDER = "filtered"
"""Folder, in the folder of results, of the filtered copies."""


def filter_inputs(experiment: Experiment) -> Experiment:
    """Write filtered copies of all lists and texts, and return the experiment with these copies.

    Copies of an earlier run are used again if their files have not changed.

    Raises:
        InputError: a file cannot be read, or an alignment does not fit its corpus.
    """
    copies = _Copies(experiment)
    train = copies.corpus(experiment.train)
    monolingual = copies.text(experiment.monolingual, "monolingual") if experiment.monolingual else ""
    sets = {name: copies.files_of(name, files) for name, files in experiment.sets.items()}
    make_folder(experiment.output / FOLDER)
    with locked(experiment.output):
        run_stages(copies.stages, experiment.output / RECORD)
    dev, selection = sets["dev"], sets.get(SELECTION)
    tests = {name: sets[name] for name in experiment.tests}
    unplanned = experiment.unplanned
    if unplanned:
        corpus = {"source": train.source, "target": train.target, "alignment": train.alignment}
        tables = {
            "train": {key: path for key, path in (corpus | {"monolingual": monolingual}).items() if path},
            "dev": dev.table,
            **({"test": table_of_tests(tests)} if tests else {}),
            **({SELECTION: selection.table} if selection else {}),
        }
        tables = with_paths(tables, partial(os.path.relpath, start=unplanned.folder))
        unplanned = replace(unplanned, values=unplanned.values | tables)
    return replace(
        experiment,
        train=train,
        monolingual=monolingual,
        dev=dev,
        selection=selection,
        tests=tests,
        unplanned=unplanned,
    )


@dataclass
class _Copies:
    """The stages that write filtered copies.

    Attributes:
        experiment: the experiment with the original files.
        stages: one stage for each file.
    """

    experiment: Experiment
    stages: list[Stage] = field(default_factory=list)

    @property
    def _filters(self) -> InputFilters:
        return self.experiment.input_filters

    def files_of(self, name: str, files: NbestFiles) -> NbestFiles:
        """Return the copies of the files of a set."""
        reference = [self.text(path, f"{name}.reference{number}") for number, path in enumerate(files.reference)]
        return NbestFiles(
            source=self.text(files.source, f"{name}.source"),
            reference=tuple(reference),
            nbest=self._copy(files.nbest, f"{name}.nbest", self._filters.write_list),
            moses_output=self.text(files.moses_output, f"{name}.moses_output") if files.moses_output else "",
        )

    def corpus(self, files: ParallelFiles) -> ParallelFiles:
        """Return the copies of a corpus and, if subwords are joined, of its word alignment."""
        source, target = self.text(files.source, "train.source"), self.text(files.target, "train.target")
        alignment = files.alignment
        if alignment and self._filters.joins:
            write = partial(_write_alignment, self._filters, files.source, files.target)
            alignment = self._copy(alignment, "train.alignment", write, (files.source, files.target))
        return ParallelFiles(source, target, alignment)

    def text(self, path: str, role: str) -> str:
        """Return the copy of a text."""
        return self._copy(path, role, self._filters.write_text)

    def _copy(self, path: str, role: str, write: Callable[[str, str], None], others: tuple[str, ...] = ()) -> str:
        # The name of the copy ends with the name of the file, which has the language and the compression.
        output = self.experiment.result(os.path.join(FOLDER, f"{role}.{os.path.basename(path)}"))
        action = partial(write, path, output)
        self.stages.append(Stage(f"filter {role}", (path, *others), self._filters.text, (output,), action))
        return output


def _write_alignment(filters: InputFilters, source: str, target: str, path: str, output: str) -> None:
    filters.write_alignment(path, source, target, output)
