"""Models whose distributions are averaged word by word, each by weights that have not seen the sentence at hand."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

from features.models.folder import Model, load_model
from features.models.folds import DevFolds, weights_without
from moses_io.errors import InputError


class Ensemble:
    """One model or several; of those that learned from dev, the weights that did not see a sentence read that sentence.

    Attributes:
        models: as they are for sentences that none of them has learned from.
        signature: of these.

    Args:
        folders: of the models.
        device: where they run.
        advice: what else to do with models that cannot be averaged.
        prepare: what is done to each network before it is used.

    Raises:
        InputError: as `load_model`, or a model that does not say the same words in the same order as the first.
    """

    def __init__(
        self,
        folders: Sequence[str],
        device: torch.device,
        advice: str,
        prepare: Callable[[Model], object] = lambda model: None,
    ) -> None:
        self._folders, self._device, self._prepare = [Path(folder) for folder in folders], device, prepare
        self._folds = [DevFolds.read(folder) for folder in self._folders]
        self._loaded: dict[tuple[int, int], Model] = {}
        self.models = self._models((0,) * len(folders))
        for folder, model in zip(folders[1:], self.models[1:], strict=True):
            reason = _difference(self.models[0], model)
            if reason:
                raise InputError(f"{folder}: {reason} than {folders[0]}; {advice}")
        self.signature = _signature(self.models)

    def signature_for(self, source: tuple[str, ...]) -> str:
        """Return the signature of the models that read a source."""
        return _signature(self._models(self._key(source)))

    def for_each(self, sources: Sequence[tuple[str, ...]]) -> Iterator[tuple[list[int], list[Model]]]:
        """Yield the places of the sources that the same models read, with these models."""
        places = defaultdict[tuple[int, ...], list[int]](list)
        for place, source in enumerate(sources):
            places[self._key(source)].append(place)
        for folds, together in places.items():
            yield together, self._models(folds)

    def _key(self, source: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(folds.of(source) for folds in self._folds)

    def _models(self, folds: tuple[int, ...]) -> list[Model]:
        """Return the models without a fold each; each is loaded when it is first asked for."""
        for number, fold in enumerate(folds):
            if (number, fold) not in self._loaded:
                model = load_model(self._folders[number], self._device, weights_without(fold))
                self._prepare(model)
                self._loaded[number, fold] = model
        return [self._loaded[key] for key in enumerate(folds)]


def _signature(models: Sequence[Model]) -> str:
    return "|".join(model.signature for model in models)


def _difference(first: Model, other: Model) -> str:
    if other.config.direction != first.config.direction:
        return "another direction"
    if other.config.right_to_left != first.config.right_to_left:
        return "another order of words"
    return "" if other.target == first.target else "another target vocabulary"
