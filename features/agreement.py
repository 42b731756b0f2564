"""What the attention of models agrees with: that of the other direction, and Moses' word alignment."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from features.feature import Array, Candidates, Resources
from features.models.device import find_device
from features.models.folder import Model, load_model
from features.models.inference import fold
from features.models.scoring import Pair, Rows, attention
from features.models.tree import tree_attention
from features.neural import GROUP, groups
from features.phrases import word_alignment
from moses_io.errors import InputError


class Agreement:
    """Two values: tr(A_{s→t} A_{t→s}) of both directions' attention (Cohn et al. 2016, 3.4), and it over min(I, J).

    Rows and columns of `</s>` count, as in training. An empty side counts as one word.

    Raises:
        InputError: not a forward and a backward model, or models that do not speak of words from left to right.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        folders = argument.split(",")
        if len(folders) != 2:
            raise InputError(f"feature 'agreement:{argument}': expected a forward and a backward model")
        self._models = [_load(folder, resources) for folder in folders]
        for folder, model, wanted in zip(folders, self._models, ("forward", "backward"), strict=True):
            if model.config.direction != wanted:
                raise InputError(f"{folder}: expected a {wanted} model, this is a {model.config.direction} one")
        self.signature = "|".join(["agreement", *(model.signature for model in self._models)])

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, 2)."""
        pairs = [(each.source, hypothesis) for each in sentences for hypothesis in each.hypotheses]
        distinct = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
        forward, backward = _forward(self._models[0], sentences), attention(self._models[1], list(distinct))
        rows = [self._values(pair, row, backward[distinct[pair]]) for pair, row in zip(pairs, forward, strict=True)]
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def _values(self, pair: Pair, forward: Rows, backward: Rows) -> tuple[float, float]:
        trace = float(np.einsum("ji,ij->", forward[:, 1:], backward[:, 1:]))
        return trace, trace / max(1, min(len(pair[0]), len(pair[1])))


class Links:
    """One value: the attention that target words give to the source words that Moses aligned them with, summed.

    Raises:
        InputError: a backward model, one that does not speak of words from left to right, or a list without alignment.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self._model = _load(argument, resources)
        if self._model.config.direction != "forward":
            raise InputError(f"{argument}: expected a forward model, this is a backward one")
        self.signature = f"links|{self._model.signature}"

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, 1)."""
        rows = iter(_forward(self._model, sentences))
        values = []
        for each in sentences:
            for hypothesis, line in zip(each.hypotheses, each.lines, strict=True):
                links = word_alignment(line, len(each.source), len(hypothesis))
                if links is None:
                    raise InputError(f"feature 'links', sentence {each.sentence}: the list has no word alignment")
                row = next(rows)
                values.append([sum(float(row[target, source + 1]) for source, target in links)])
        return np.array(values, dtype=np.float64)


def _forward(model: Model, sentences: Sequence[Candidates]) -> list[Rows]:
    """Return the rows of all candidates, whose prefixes are shared."""
    starts = np.cumsum([0, *(len(each.hypotheses) for each in sentences)])
    found: list[Rows] = [np.empty((0, 0), dtype=np.float32)] * int(starts[-1])
    for group in groups(sentences, GROUP[model.device.type]):
        rows = iter(
            tree_attention(model, [(sentences[number].source, sentences[number].hypotheses) for number in group])
        )
        for number in group:
            found[starts[number] : starts[number + 1]] = [next(rows) for _ in sentences[number].hypotheses]
    return found


def _load(folder: str, resources: Resources) -> Model:
    model = load_model(Path(folder), find_device(resources.device))
    config = model.config
    if config.right_to_left or config.training.bpe or config.architecture.wiring != "attend-first":
        raise InputError(
            f"{folder}: expected a model on words, from left to right, with wiring 'attend-first', whose attention "
            "belongs to its words"
        )
    if config.direction == "forward":
        fold(model.network)
    return model
