"""Filtered copies of the files of an experiment, for lists and texts with subwords."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from features.progress import log
from features.request import FeatureRequest
from moses_io.alignment import format_links, read_alignments
from moses_io.files.errors import InputError
from moses_io.files.folders import locked, make_folder
from moses_io.files.streams import check_plain, name_of, open_output
from moses_io.files.text import ParallelFiles, encode, input_lines, parallel_lines, read_lines, tokens
from moses_io.filters import Filters
from moses_io.input_filters import InputFilters
from moses_io.list_end import ListEnd
from moses_io.nbest import EmptyLines, read_moses_output, read_nbest, without_marks
from moses_io.weights import read_weights
from rerank.experiment.entries import SELECTION, NbestFiles, table_of_tests
from rerank.experiment.experiment import Experiment, Unplanned
from rerank.experiment.stages import RECORD, Stage, run_stages
from rerank.experiment.toml import with_paths

FOLDER = "filtered"
"""Folder, in the folder of results, of the filtered copies. It has its own record of stages."""


def filter_inputs(experiment: Experiment) -> Experiment:
    """Write filtered copies of all lists and texts, and return the experiment with these copies.

    Copies of an earlier run are used again if their files have not changed.

    Raises:
        InputError: a file is missing or cannot be read, an alignment does not fit its corpus, or the folder of the
            copies is a symbolic link.
    """
    for path in experiment.files:
        check_plain(path)
    read_weights(experiment.initial_weights)  # only for its errors
    copies = _Copies(experiment)
    train = copies.corpus(experiment.train)
    monolingual = copies.text(experiment.monolingual, "monolingual") if experiment.monolingual else ""
    sets = {name: copies.files_of(name, files) for name, files in experiment.sets.items()}
    folder = experiment.output / FOLDER
    if folder.is_symlink():
        raise InputError(f"{folder}: a symbolic link, expected a folder. Remove it")
    make_folder(folder)
    with locked(experiment.output):
        run_stages(copies.stages, folder / RECORD)
    copied = replace(
        experiment,
        train=train,
        monolingual=monolingual,
        dev=sets["dev"],
        selection=sets.get(SELECTION),
        tests={name: sets[name] for name in experiment.tests},
        features=_features_of_copies(experiment, train),
    )
    if not experiment.unplanned:
        return copied
    return replace(copied, unplanned=_tables_of_copies(experiment.unplanned, copied))


def _tables_of_copies(unplanned: Unplanned, copied: Experiment) -> Unplanned:
    """Return the tables of an experiment without models, with the paths of the copies."""
    train = copied.train
    selection = copied.selection
    relative = partial(os.path.relpath, start=unplanned.folder)
    corpus = {"source": train.source, "target": train.target, "alignment": train.alignment}
    corpus["monolingual"] = copied.monolingual
    tables = {
        "train": {key: path for key, path in corpus.items() if path},
        "dev": copied.dev.table,
        **({"test": table_of_tests(copied.tests)} if copied.tests else {}),
        **({SELECTION: selection.table} if selection else {}),
    }
    tables = with_paths(tables, relative)
    if copied.features:
        tables["features"] = {
            label: request.with_parts(list(map(relative, request.parts))).text
            for label, request in copied.features.items()
        }
    return replace(unplanned, values=unplanned.values | tables)


def _features_of_copies(experiment: Experiment, train: ParallelFiles) -> dict[str, FeatureRequest]:
    """Return the features. Those that read a file of the corpus read its copy in `train`."""
    copies = {
        os.path.realpath(path): copy
        for path, copy in ((experiment.train.source, train.source), (experiment.train.target, train.target))
    }
    return {
        label: request.with_parts([copies.get(os.path.realpath(part), part) for part in request.parts])
        if request.row.takes == "files"
        else request
        for label, request in experiment.features.items()
    }


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
        lines = partial(_write_lines, self._filters)
        output = partial(_write_moses_output, self._filters, self.experiment.tuning.filters.marks)
        reference = [self._copy(path, f"{name}.reference{k}", lines) for k, path in enumerate(files.reference)]
        return NbestFiles(
            source=self.text(files.source, f"{name}.source"),
            reference=tuple(reference),
            nbest=self._copy(files.nbest, f"{name}.nbest", partial(_write_list, self._filters)),
            moses_output=self._copy(files.moses_output, f"{name}.moses_output", output) if files.moses_output else "",
        )

    def corpus(self, files: ParallelFiles) -> ParallelFiles:
        """Return the copies of a corpus and, if subwords are joined, of its word alignment."""
        source, target = self.text(files.source, "train.source"), self.text(files.target, "train.target")
        alignment = files.alignment
        if alignment and self._filters.joins:
            write = partial(_write_alignment, self._filters, files)
            alignment = self._copy(alignment, "train.alignment", write, (files.source, files.target))
        return ParallelFiles(source, target, alignment)

    def text(self, path: str, role: str) -> str:
        """Return the copy of a source text or of a text for training."""
        return self._copy(path, role, partial(_write_text, self._filters))

    def _copy(self, path: str, role: str, write: Callable[[str, str], None], others: tuple[str, ...] = ()) -> str:
        """Return the path of a copy, which has the name of its file, and so its language and compression."""
        folder = Path(os.path.realpath(self.experiment.output / FOLDER))
        if Path(os.path.realpath(path)).is_relative_to(folder):
            return path  # `output/experiment.toml` names the copies
        output = self.experiment.output / FOLDER / role / os.path.basename(path)
        action = partial(_write_copy, write, path, output)
        self.stages.append(Stage(f"filter {role}", (path, *others), self._filters.text, (str(output),), action))
        return str(output)


def _write_copy(write: Callable[[str, str], None], path: str, output: Path) -> None:
    make_folder(output.parent)
    write(path, str(output))


def _write(lines: Iterable[str], output: str) -> None:
    with open_output(output) as stream:
        stream.writelines(encode(line) + b"\n" for line in lines)


def _write_text(filters: InputFilters, path: str, output: str) -> None:
    """Write the filtered lines of a source text or of a text for training."""
    _write(map(filters, input_lines(path)), output)


def _write_lines(filters: InputFilters, path: str, output: str) -> None:
    """Write the filtered lines of a reference, whose tabs separate no tokens."""
    _write(map(filters, read_lines(path)), output)


def _write_moses_output(filters: InputFilters, marks: bool, path: str, output: str) -> None:
    """Write Moses' own output with filtered lines. With `marks`, segmentation marks are removed first."""
    moses_output = read_moses_output(path, marks=marks)
    without = Filters("marks") if marks else Filters()
    _write((filters(without(line)) for line in moses_output.lines), output)


def _write_list(filters: InputFilters, path: str, output: str) -> None:
    """Write a list with filtered texts.

    Warn if the list was cut off or has empty lines, which the copy does not have.

    Raises:
        InputError: the list cannot be read, or has segmentation marks.
    """
    empty, end = EmptyLines(), ListEnd()
    with open_output(output) as stream:
        for each in filters.filter_lists(without_marks(end.follow(read_nbest(path, empty)))):
            stream.writelines(line.line for line in each.hypotheses)
    if empty.count:
        log.warning(f"{name_of(path)}: {empty}, which the filtered list does not have")
    if cut := end.cut():
        log.warning(f"{name_of(path)}:{cut}")


def _write_alignment(filters: InputFilters, corpus: ParallelFiles, path: str, output: str) -> None:
    """Write the word alignment of a corpus with the indices of the words of the filtered corpus.

    Args:
        filters: filters of the corpus.
        corpus: the unfiltered corpus.
        path: its alignment.
        output: the alignment to write.

    Raises:
        InputError: the alignment does not fit the corpus.
    """
    lengths: tuple[list[int], list[int]] = ([], [])
    for pair in parallel_lines(corpus.source, corpus.target):
        for counts, line in zip(lengths, pair, strict=True):
            counts.append(len(tokens(line)))
    pairs = parallel_lines(corpus.source, corpus.target)
    with open_output(output) as stream:
        for (source, target), links in zip(pairs, read_alignments(path, *lengths), strict=True):
            of_source, of_target = filters.word_indices(source), filters.word_indices(target)
            words = frozenset((of_source[i], of_target[j]) for i, j in links)
            stream.write(encode(format_links(frozenset(link for link in words if min(link) >= 0))) + b"\n")
