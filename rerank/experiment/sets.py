"""The lists of an experiment, with their texts: that of dev, and those of any number of test sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from features.models.training.request import ParallelFiles
from moses_io.errors import InputError
from rerank.experiment.models import check_name
from rerank.experiment.toml import as_table, check_keys, path_of

UNNAMED = "test"
"""Name of the test set that has none; its report has none either."""

CHOOSE = "choose"
"""Name of the set on which a way to tune is chosen, if there is one."""

SET = "{set}"
"""What stands, in the argument of a feature, for the name of the set that is scored."""

TAKEN = ("dev", CHOOSE, "report", "weights", "tuning", "models", "reranker", "ablation", "stages", "confidence")
"""Names that files of the results have."""

_KEYS = ("source", "reference", "nbest")

MOSES_OUTPUT = "moses_output"
"""Key of the decoder's own output, with which choices on dev and on test sets are compared."""


@dataclass(frozen=True)
class NbestFiles:
    """A source text, its references, of which a test set may have none, and the list of its candidates.

    `moses_output` is the decoder's own output, empty if that is the candidates with the highest totals.
    """

    source: str
    reference: tuple[str, ...]
    nbest: str
    moses_output: str = ""

    @property
    def texts(self) -> ParallelFiles:
        """What a training takes, with the first of the references."""
        return ParallelFiles(source=self.source, target=self.reference[0])

    @property
    def files(self) -> list[str]:
        """All of them."""
        return [self.source, *self.reference, self.nbest, *([self.moses_output] if self.moses_output else [])]

    @property
    def table(self) -> dict[str, Any]:
        """The set as `read_set` reads it."""
        reference = self.reference[0] if len(self.reference) == 1 else list(self.reference)
        return {
            "source": self.source,
            **({"reference": reference} if reference else {}),
            "nbest": self.nbest,
            **({MOSES_OUTPUT: self.moses_output} if self.moses_output else {}),
        }


def table_of_tests(tests: Mapping[str, NbestFiles]) -> Any:
    """Return test sets as `read_tests` reads them: a table of the only one without a name, or a list of tables."""
    if list(tests) == [UNNAMED]:
        return tests[UNNAMED].table
    return [{"name": name, **files.table} for name, files in tests.items()]


def read_set(value: Any, name: str, folder: Path) -> NbestFiles:
    """Read the table of dev, or of the set to choose on, whose paths are relative to a folder.

    Raises:
        InputError: a key is unknown, missing or of the wrong kind.
    """
    table = as_table(value, name)
    check_keys(table, _KEYS if name == CHOOSE else (*_KEYS, MOSES_OUTPUT), f"{name}.")
    return _paths(table, f"{name}.", _references(table, f"{name}."), folder)


def read_tests(value: Any, folder: Path) -> dict[str, NbestFiles]:
    """Read a table of a test set, or a list of them, each with its own name; `reference` may be left out.

    Raises:
        InputError: as of dev, and a name that is missing, none of a file, taken or there twice.
    """
    if not isinstance(value, list):
        value = [{"name": UNNAMED} | as_table(value, "test")]
    tests: dict[str, NbestFiles] = {}
    for number, each in enumerate(value, start=1):
        table = as_table(each, "test")
        name = table.get("name")
        if not isinstance(name, str):
            other = "nothing" if name is None else repr(name)
            raise InputError(f"test.name: expected a name in each [[test]], found {other} in number {number}")
        check_name(name, "test")
        if name in TAKEN or name in tests:
            fault = "another test set has this name" if name in tests else "files of the results have this name"
            raise InputError(f"test.{name}: {fault}; choose another one")
        prefix = "test." if name == UNNAMED else f"test.{name}."
        check_keys(table, ("name", *_KEYS, MOSES_OUTPUT), prefix)
        references = _references(table, prefix) if "reference" in table else []
        tests[name] = _paths(table, prefix, references, folder)
    return tests


def _references(table: dict[str, Any], prefix: str) -> list[str]:
    """Return the paths of a table's references: one, or a list of them."""
    listed = table.get("reference")
    if listed and isinstance(listed, list):
        return [str(path) for path in listed]
    return [path_of(table, "reference", prefix)]


def _paths(table: dict[str, Any], prefix: str, references: list[str], folder: Path) -> NbestFiles:
    source, nbest = (str(folder / path_of(table, key, prefix)) for key in ("source", "nbest"))
    output = str(folder / path_of(table, MOSES_OUTPUT, prefix)) if MOSES_OUTPUT in table else ""
    references = [str(folder / path) for path in references]
    return NbestFiles(source=source, reference=tuple(references), nbest=nbest, moses_output=output)
