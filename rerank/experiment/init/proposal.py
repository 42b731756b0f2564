"""The experiment file that `init` proposes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, count
from pathlib import Path
from typing import Any

from features.kinds.language_model import require_kenlm
from moses_io.files.errors import InputError, printable, shown
from moses_io.files.streams import STANDARD
from rerank.experiment.entries import table_of_tests
from rerank.experiment.init.roles import Roles
from rerank.experiment.recipe import Recipe, find_recipe, inspect_corpus
from rerank.experiment.toml import entry, moved, write_experiment
from rerank.linear.weights import log_unmatched, read_initial_weights

HEAD = (
    "Experiment file, written by `moses-rerank init`. `moses-rerank run` with this file runs the whole experiment.",
    "A second run repeats only the stages whose inputs have changed. Paths are relative to the folder of this file.",
)
REMARKS = {
    "output": ("Folder of all results: reports, weights, translations, and `reranker`, which reranks new lists.",),
    "initial_weights": ("Initial weights, with which Moses decoded.",),
    "train": ("Training corpus of the models.",),
    "dev": ("Set on which weights are tuned. It also decides when the training of a model stops.",),
    "test": (
        "Test set, reranked and, if it has references, evaluated. For several, write tables [[test]] with names.",
    ),
    "models": ("Models to train, by name. `moses-rerank presets` lists presets and settings.",),
    "features": (
        "Features in addition to Moses' own, by label. neural:NAME uses the model NAME of the table [models].",
    ),
    "shortlist": ("Features that take long. They are computed only for the best candidates by all other features.",),
    "tuning.metric": ("Metric to tune for: bleu, chrf, ter, or a weighted sum such as bleu+chrf:0.7,0.3.",),
}
"""Comment lines above each key of the file."""
NO_TEST = (
    "No test set was found. Add one here, with or without references:",
    'test = { source = "test.de", reference = "test.en", nbest = "test.nbest.gz" }',
)
MORE_FEATURES = (
    "Further features to add. `moses-rerank features` lists all kinds:",
    'Posteriors = "posteriors"',
    'Length = "length"',
)
SCORES = 'COMET = "scores:{set}.comet"     # scores of another tool, {set} is dev, test, or the name of a test set'
"""Another feature, for lists to which models add no candidates."""


def propose(roles: Roles, output: str) -> bytes:
    """Return the content of the experiment file to be written at `output`, with paths relative to its folder.

    `roles` must be complete: `roles.missing` is empty.

    Raises:
        InputError: the initial weights do not fit the list of dev, the corpus cannot be read, or a path is not UTF-8,
            which TOML requires.
    """
    assert roles.dev is not None and roles.train is not None and roles.space is not None
    log_unmatched(roles.space, read_initial_weights(roles.start, roles.space), roles.start)
    corpus = inspect_corpus(roles.train, roles.dev.texts)
    recipe = find_recipe(corpus)
    files = {
        "initial_weights": roles.start,
        "train": {name: path for name, path in asdict(roles.train).items() if path},
        "dev": roles.dev.table,
        "test": table_of_tests(roles.tests),
        "ngrams": roles.ngrams,
    }
    files = moved(files, Path.cwd(), Path(output).resolve().parent)
    ngrams, left_out = _ngrams(files.pop("ngrams"), {*recipe.features, *roles.space.columns})
    values = {
        "output": "work",
        **files,
        **recipe.tables,
        "features": recipe.features | ngrams,
        "tuning": {"metric": "bleu"},
    }
    remarks = {
        **REMARKS,
        **_proposed(recipe, left_out),
        "": HEAD,
        "test": REMARKS["test"] if roles.tests else NO_TEST,
        "models": REMARKS["models"] + recipe.remarks,
    }
    return _encoded(write_experiment(values, remarks), output)


def _proposed(recipe: Recipe, left_out: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return comments above the first model and the first feature that propose further entries."""
    joins = any("candidates" in settings for settings in recipe.models.values())
    features, models = [*MORE_FEATURES, *([] if joins else [SCORES]), *left_out], []
    if recipe.longer:
        models = [*recipe.longer.remarks, *_lines(recipe.longer.models)]
        features += _lines(recipe.longer.features)
    return {f"models.{next(iter(recipe.models))}": models, f"features.{next(iter(recipe.features))}": features}


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [entry(key, value).rstrip() for key, value in table.items()]


def _ngrams(paths: Sequence[str], taken: Collection[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return a feature per n-gram model by unused labels. If kenlm is missing, return a comment per model instead."""
    try:
        if paths:
            require_kenlm()
    except InputError as error:
        return {}, tuple(printable(f"Omitted: kenlm:{path}; {error}.") for path in paths)
    labels = chain(["LM"] if len(paths) == 1 else [], (f"LM{number}" for number in count(1)))
    free = (label for label in labels if label not in taken)
    return {label: f"kenlm:{path}" for path, label in zip(paths, free, strict=False)}, ()


def _encoded(text: str, output: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start)
        fault = f"a path that is not UTF-8, as TOML requires: {shown(text.split(chr(10))[line])}"
        raise InputError(f"{'<stdout>' if output == STANDARD else output}: {fault}") from None
