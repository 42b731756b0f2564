"""Models that read sentences together, each by weights that have not learned from the sentence at hand."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

from features.models.device import check_process
from features.models.folder import Model, digest_of_model, load_model, signature_of
from features.models.folds import DevFolds, weights_file
from features.progress import warn
from moses_io.errors import InputError


class Members:
    """One model, or several whose distributions are averaged word by word.

    A model that learned from dev has other weights for the sentences of dev (`features.models.folds`), which are loaded
    when the first of them is read. Where they were left behind, as in a reranker, a warning says what is read instead.

    Attributes:
        models: as they are for sentences that none of them has learned from.
        signature: of these.

    Args:
        folders: of the models.
        device: where they run.
        advice: what else to do with models that cannot be averaged.
        prepare: what is done to each model before it is used.

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
        self._process = os.getpid()
        self._loaded: dict[tuple[int, int], Model] = {}
        self.models = self._without((0,) * len(folders))
        self._digests = {(number, 0): model.digest for number, model in enumerate(self.models)}
        self._folds = [DevFolds.read(folder) for folder in self._folders]  # after weights, as training writes them
        self._warned = False
        for folder, model in zip(folders[1:], self.models[1:], strict=True):
            reason = _difference(self.models[0], model)
            if reason:
                raise InputError(f"{folder}: {reason} than {folders[0]}; {advice}")
        self.signature = "|".join(model.signature for model in self.models)

    def signature_for(self, source: tuple[str, ...]) -> str:
        """Return the signature of the models that read a source."""
        keys = enumerate(self._folds_of(source))
        return "|".join(signature_of(self.models[key[0]].config, self._digest(key)) for key in keys)

    def for_each(self, sources: Sequence[tuple[str, ...]]) -> Iterator[tuple[list[int], list[Model]]]:
        """Yield the places of the sources that the same models read, with these models.

        Raises:
            InputError: the models are on a GPU, and this process was forked after they were opened.
        """
        check_process(self._device, self._process)
        places = defaultdict[tuple[int, ...], list[int]](list)
        for place, source in enumerate(sources):
            places[self._folds_of(source)].append(place)
        for folds, together in places.items():
            yield together, self._without(folds)

    def _folds_of(self, source: tuple[str, ...]) -> tuple[int, ...]:
        """Return the fold of each model that must not have seen a source; 0 for one that never has, or always."""
        folds = []
        for folder, dev in zip(self._folders, self._folds, strict=True):
            fold = dev.fold_of(source)
            if fold and not (folder / weights_file(fold)).exists():
                self._warn(folder)
                fold = 0
            folds.append(fold)
        return tuple(folds)

    def _warn(self, folder: Path) -> None:
        if not self._warned:
            warn(f"{folder}: has learned from some of these sentences, the dev set of its training; its values flatter")
        self._warned = True

    def _without(self, folds: tuple[int, ...]) -> list[Model]:
        """Return the models without a fold each."""
        for number, fold in enumerate(folds):
            if (number, fold) not in self._loaded:
                model = load_model(self._folders[number], self._device, weights_file(fold))
                self._prepare(model)
                self._loaded[number, fold] = model
        return [self._loaded[key] for key in enumerate(folds)]

    def _digest(self, key: tuple[int, int]) -> str:
        if key not in self._digests:
            (number, fold), config = key, self.models[key[0]].config
            self._digests[key] = digest_of_model(self._folders[number], config, weights_file(fold))
        return self._digests[key]


def _difference(first: Model, other: Model) -> str:
    if other.config.direction != first.config.direction:
        return "another direction"
    if other.config.right_to_left != first.config.right_to_left:
        return "another order of words"
    return "" if other.target == first.target else "another target vocabulary"
