"""Creation of a reranker from the results of an experiment, with a card that describes it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from features.models.config import read_config
from features.models.training.metrics import dev_perplexity
from features.request import FeatureRequest, is_pretrained, labelled_requests
from moses_io.files.errors import counted, printable
from moses_io.files.text import ParallelFiles, read_lines, stream_lines, write_text
from moses_io.weights import Weights, read_weights
from rerank import __version__
from rerank.reranker.folder import CARD, Manifest, read_candidates, write_folder
from rerank.systems.translations import CandidateRequest, indicators
from rerank.tuning.shortlist import read_choice

TEMPLATE = """\
# Reranker {languages}

Reranks Moses n-best lists with the features below. Made by moses-rerank {version}.

```
moses-rerank apply THIS_FOLDER test.nbest.gz --source test.{source} --output test.out
```

| | |
|---|---|
{facts}

## Features and weights

| label | feature | weights |
|---|---|---|
{features}

`weights.ini` also has the weights of Moses' features. Tuned by `{tuned}`.

## Gain

{gains}

## Licence

(to be filled in: licence of the models and of their training data)
"""


@dataclass(frozen=True)
class Ingredients:
    """The parts of a reranker.

    Attributes:
        requests: the features, in the order of scoring.
        weights: ini file of the tuned weights.
        corpus: training corpus of the models.
        dev: source text of the set that the weights were tuned on.
        reports: name and report file (text) of each test set.
        ablation: file with the ablation table, or empty for none.
        confidence: file of the sentence-level confidence estimation, or empty for none.
        candidates: models that add candidates to lists.
        shortlist: file of the choice of the shortlist, or empty if there is none.
        shortlist_weights: weight file that selects the shortlist, or empty if there is none.
        input_filter: names of the filters for sources and candidates, or empty if there are none.
        link: whether to link to models and tables instead of copying them.
    """

    requests: tuple[FeatureRequest, ...]
    weights: str
    corpus: ParallelFiles
    dev: str
    reports: tuple[tuple[str, str], ...] = ()
    ablation: str = ""
    confidence: str = ""
    candidates: tuple[CandidateRequest, ...] = ()
    shortlist: str = ""
    shortlist_weights: str = ""
    input_filter: str = ""
    link: bool = False


def make_reranker(ingredients: Ingredients, folder: str) -> None:
    """Make the folder of a reranker with its card. See `write_folder`."""
    tuned, *_ = _comments(ingredients.weights)
    manifest = write_folder(
        Path(folder),
        ingredients.requests,
        ingredients.weights,
        tuned,
        confidence=ingredients.confidence,
        candidates=ingredients.candidates,
        shortlist=read_choice(ingredients.shortlist).settings if ingredients.shortlist else None,
        shortlist_weights=ingredients.shortlist_weights,
        input_filter=ingredients.input_filter,
        link=ingredients.link,
    )
    weights = read_weights(ingredients.weights)
    gained = gains(ingredients)
    source, target = (_language(path) for path in (ingredients.corpus.source, ingredients.corpus.target))
    card = TEMPLATE.format(
        languages=f"{source} → {target}",
        version=__version__,
        source=source,
        facts="\n".join(_row(*fact) for fact in _facts(ingredients, manifest, weights, Path(folder))),
        features="\n".join(feature_rows(manifest.features, weights)),
        tuned=tuned,
        gains="\n".join(["```", *gained, "```"]) if gained else "Not measured: no references.",
    )
    write_text(str(Path(folder) / CARD), card)


def feature_rows(features: Mapping[str, str], weights: Weights) -> list[str]:
    """Return the rows of the card's table of features and weights. `features` has `KIND[:ARG]` by label."""
    numbers = {label: " ".join(f"{weight:.4g}" for weight in weights.get(label, ())) for label in features}
    return [_row(label, f"`{text}`", numbers[label]) for label, text in features.items()]


def _row(*cells: str) -> str:
    return "| " + " | ".join(printable(cell).replace("|", "\\|") for cell in cells) + " |"


def _language(path: str) -> str:
    """Return the language of a text by its file extension, such as `de` for `train.de.gz`."""
    name = Path(path).name
    for suffix in (".gz", ".bz2", ".xz"):
        name = name.removesuffix(suffix)
    return printable(Path(name).suffix.removeprefix(".")) or "?"


def gains(ingredients: Ingredients) -> list[str]:
    """Return the lines on the gain of tuning on dev, the first block of each report, and the ablation table."""
    _, *lines = _comments(ingredients.weights)
    for name, path in ingredients.reports:
        lines += ["", f"{name}:", *_first_block(read_lines(path))]
    return [*lines, "", *read_lines(ingredients.ablation)] if ingredients.ablation else lines


def _comments(weights: str) -> list[str]:
    """Return the comment lines of a weight file that `tune` wrote: signature and results."""
    return [line[2:] for line in read_lines(weights) if line.startswith("# ")]


def _facts(ingredients: Ingredients, manifest: Manifest, weights: Weights, folder: Path) -> list[tuple[str, str]]:
    """Return names and values for the card: requirements of a list, tuning set, corpus, models and signature."""
    new_features = {*manifest.features, *indicators([each.name for each in ingredients.candidates])}
    models = _models(ingredients, manifest, folder)
    facts = [
        ("a list must have", ", ".join(name for name in weights if name not in new_features)),
        ("weights tuned on", f"{counted(_lines(ingredients.dev), 'sentence')} of {Path(ingredients.dev).name}"),
    ]
    if models:
        pairs = counted(_lines(ingredients.corpus.source), "sentence pair")
        facts.append(("models trained on", f"{pairs} of {Path(ingredients.corpus.source).name}"))
    if manifest.shortlist:
        labels, size = ", ".join(manifest.shortlist.features), manifest.shortlist.size
        facts.append((f"computed for a shortlist of {size}", labels))
    if manifest.input_filter:
        facts.append(("filters for lists and sources", manifest.input_filter))
    facts += [(f"candidates of {each.name}", f"{each.size} for each sentence") for each in ingredients.candidates]
    facts += [(f"model {model.name}", _model(model)) for model in models]
    return [*facts, ("signature", manifest.signature)]


def _lines(path: str) -> int:
    """Return the number of lines of a text."""
    return sum(1 for _ in stream_lines(path))


def _models(ingredients: Ingredients, manifest: Manifest, folder: Path) -> list[Path]:
    """Return the model folders, in the order of the features, then of the models that add candidates."""
    labels = [request.label for request in ingredients.requests if request.row.takes == "models"]
    requests = labelled_requests({label: manifest.features[label] for label in labels})
    folders = [folder / part for request in requests for part in request.parts]
    adding = [
        part for request in read_candidates(folder, manifest) for part in request.folders if not is_pretrained(part)
    ]
    folders += map(Path, adding)
    return list(dict.fromkeys(folders))


def _model(folder: Path) -> str:
    config = read_config(folder)
    order = ", right to left" if config.right_to_left else ""
    dev = dev_perplexity(folder)
    perplexity = f", perplexity on dev {dev:.3f}" if dev < math.inf else ""
    return f"{config.preset}, {config.direction}{order}{perplexity}"


def _first_block(lines: Sequence[str]) -> list[str]:
    return list(lines[: lines.index("")] if "" in lines else lines)
