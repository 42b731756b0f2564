"""The experiment file that `init` proposes."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from itertools import chain, count
from pathlib import Path

from features.kinds.language_model import require_kenlm
from moses_io.files.errors import InputError, printable, shown
from moses_io.files.streams import STANDARD
from rerank.experiment.entries import table_of_tests
from rerank.experiment.file import MINUTES, experiment_of
from rerank.experiment.init.roles import Roles
from rerank.experiment.plan import assumed_plan, plan_lines
from rerank.experiment.recipe import CONSENSUS, LABELS
from rerank.experiment.toml import INPUT_FILTER, moved, write_experiment
from rerank.linear.weights import log_unmatched, read_initial_weights

HEAD = (
    "Experiment file, written by `moses-rerank init`. `moses-rerank run` with this file runs the whole experiment.",
    "A second run repeats only the stages whose inputs have changed. Paths are relative to the folder of this file.",
)
COMMENTS = {
    "minutes": (
        "Time of a run in minutes. `run` chooses models and features for it and writes them to experiment.toml in the",
        "folder of results. To name models, remove this key, copy the tables from there, and replace [features].",
    ),
    "output": ("Folder of all results: reports, weights, translations, and `reranker`, which reranks new lists.",),
    INPUT_FILTER: ("Filters for all texts and lists, so that models, features and metrics read words.",),
    "initial_weights": ("Initial weights, with which Moses decoded.",),
    "train": ("Training corpus of the models.",),
    "dev": ("Set on which weights are tuned. It also decides when the training of a model stops.",),
    "test": (
        "Test set, reranked and, if it has references, evaluated. For several, write tables [[test]] with names.",
    ),
    "features": ("Features in addition to Moses' own and those of the models. `moses-rerank features` lists all.",),
    "features.": ('Posteriors = "posteriors"', 'Length = "length"'),
    "tuning.metric": ("Metric to tune for: bleu, chrf, ter, or a weighted sum such as bleu+chrf:0.7,0.3.",),
}
"""Comment lines above each key of the file."""
NO_TEST = (
    "No test set was found. Add one here, with or without references:",
    'test = { source = "test.de", reference = "test.en", nbest = "test.nbest.gz" }',
)
SCORES = 'COMET = "scores:{set}.comet"     # scores of another tool, {set} is dev, test, or the name of a test set'
"""Another feature, for lists to which models add no candidates."""
PRETRAINED = 'HF{} = "hf:{}"     # pretrained model. If it has several languages: hf:DIR[SOURCE,TARGET]'
FILTERED_FIRST = "`run` filters all files and then chooses the models."
ASSUMED = "`run` measures the speed of the machine first, so its plan may differ."


def propose(roles: Roles, output: str, pretrained: Sequence[str] = ()) -> bytes:
    """Return the content of the experiment file to be written at `output`, with paths relative to its folder.

    Args:
        roles: complete roles: `roles.missing` is empty.
        output: path of the file.
        pretrained: folders with models of transformers. They become comments, since they take much of a run's time.

    Raises:
        InputError: the initial weights do not fit the list of dev, the corpus cannot be read, or a path is not UTF-8,
            which TOML requires.
    """
    assert roles.dev is not None and roles.train is not None and roles.space is not None
    log_unmatched(roles.space, read_initial_weights(roles.initial_weights, roles.space), roles.initial_weights)
    corpus = asdict(roles.train) | {"monolingual": roles.monolingual}
    files = {
        "initial_weights": roles.initial_weights,
        "train": {name: path for name, path in corpus.items() if path},
        "dev": roles.dev.table,
        "test": table_of_tests(roles.tests),
        "ngrams": roles.ngrams,
        "folders": list(pretrained),
    }
    folder = Path(output).resolve().parent
    files = moved(files, Path.cwd(), folder)
    models = [PRETRAINED.format(number, printable(path)) for number, path in enumerate(files.pop("folders"))]
    used_labels = {*LABELS.values(), CONSENSUS, *roles.space.columns}
    ngrams, left_out = _ngrams(files.pop("ngrams"), used_labels, bool(roles.input_filter))
    joining = {INPUT_FILTER: roles.input_filter} if roles.input_filter else {}
    tuning = {"metric": "bleu"}
    values = {"minutes": round(MINUTES), "output": "work", **joining, **files, "features": ngrams, "tuning": tuning}
    experiment = experiment_of(values, folder)
    plan = assumed_plan(experiment)
    planned = (*plan.recipe.comments, *plan_lines(plan), ASSUMED) if not roles.input_filter else (FILTERED_FIRST,)
    adds = any("candidates" in settings for settings in plan.recipe.models.values())
    comments = {
        **COMMENTS,
        "": HEAD,
        "minutes": (*COMMENTS["minutes"], *planned),
        "test": COMMENTS["test"] if roles.tests else NO_TEST,
        "features.": (*COMMENTS["features."], *([] if adds else [SCORES]), *models, *left_out),
    }
    return _encoded(write_experiment(values, comments), output)


def _ngrams(
    paths: Sequence[str], used_labels: Collection[str], filtered: bool
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return a feature per n-gram model by unused labels, or a comment per model that cannot be used.

    Args:
        paths: the n-gram models.
        used_labels: labels that are in use.
        filtered: whether lists are filtered. Then models, which may be of subwords, are not used.
    """
    if filtered:
        return {}, tuple(printable(f'LM = "kenlm:{path}"     # only a model of words') for path in paths)
    try:
        if paths:
            require_kenlm()
    except InputError as error:
        return {}, tuple(printable(f"Omitted: kenlm:{path} ({error}).") for path in paths)
    labels = chain(["LM"] if len(paths) == 1 else [], (f"LM{number}" for number in count(1)))
    free = (label for label in labels if label not in used_labels)
    return {label: f"kenlm:{path}" for path, label in zip(paths, free, strict=False)}, ()


def _encoded(text: str, output: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start)
        fault = f"a path that is not UTF-8, as TOML requires: {shown(text.split(chr(10))[line])}"
        raise InputError(f"{'<stdout>' if output == STANDARD else output}: {fault}") from None
