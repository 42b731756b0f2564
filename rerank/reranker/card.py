"""The card of a reranker: what it is, what it was made with, what it gained, in Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moses_io.errors import printable
from moses_io.weights import Weights

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

Features of Moses have their weights in `weights.ini`, too. Tuned by `{tuned}`.

## What it gained

{gains}

## Licence

(to be filled in: of the models, and of the data that they were trained on)
"""


@dataclass(frozen=True)
class CardFacts:
    """What the card tells.

    Attributes:
        version: of moses-rerank.
        source: language of the source, by the end of the corpus' name; target: the other one.
        facts: name and value of what it was made with, in their order.
        features: `KIND[:ARG]` by label.
        weights: of all features.
        tuned: signature of the tuning.
        gains: lines of text, such as tables of scores.
    """

    version: str
    source: str
    target: str
    facts: Sequence[tuple[str, str]]
    features: Mapping[str, str]
    weights: Weights
    tuned: str
    gains: Sequence[str]


def card(facts: CardFacts) -> str:
    """Return the card as Markdown."""
    rows = [
        _row(label, f"`{text}`", " ".join(f"{weight:.4g}" for weight in facts.weights.get(label, ())))
        for label, text in facts.features.items()
    ]
    return TEMPLATE.format(
        languages=f"{facts.source} → {facts.target}",
        version=facts.version,
        source=facts.source,
        facts="\n".join(_row(*fact) for fact in facts.facts),
        features="\n".join(rows),
        tuned=facts.tuned,
        gains="\n".join(["```", *facts.gains, "```"]) if facts.gains else "Not measured: no references.",
    )


def _row(*cells: str) -> str:
    return "| " + " | ".join(printable(cell).replace("|", "\\|") for cell in cells) + " |"


def language(path: str) -> str:
    """Return the language of a text by the end of its name: `de` of `train.de.gz`."""
    name = Path(path).name
    for packed in (".gz", ".bz2", ".xz"):
        name = name.removesuffix(packed)
    return printable(Path(name).suffix.removeprefix(".")) or "?"
