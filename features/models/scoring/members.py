"""Models for scoring, single or in an ensemble, each with weights that were not trained on the sentence to score.

Also their size and their perplexity.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from features.models.config import DevFolds, weights_file
from features.models.device import check_process
from features.models.folder import Model, digest_of_model, load_model, signature_of
from features.models.scoring.pairs import SentencePair, score_pairs
from features.models.scoring.preparation import prepare
from features.models.training.metrics import perplexity
from features.progress import log
from moses_io.files.errors import InputError


class Members:
    """One model, or several models whose distributions are averaged word by word.

    A model that was fine-tuned on dev has separate weights for the sentences of each fold of dev (`DevFolds`). They are
    loaded when the first of these sentences is scored. If they are missing, as in a reranker, the weights for other
    sentences are used, and a warning is logged.

    Attributes:
        models: the models, with the weights for sentences outside of dev.
        signature: signature of `models`.

    Args:
        folders: folders of the models.
        device: device on which the models run.
        advice: alternative for models that cannot be averaged, for the error message.
        precision: precision of products, `fp32` or `bf16`. If it is set, the models are prepared for many candidates
            per source. Default: as they were trained.
        backward: whether the models are backward models that translate, so that they take single steps like forward
            models.

    Raises:
        InputError: as in `load_model`, or a model differs from the first one in direction, word order or target
            vocabulary.
    """

    def __init__(
        self,
        folders: Sequence[str],
        device: torch.device,
        advice: str,
        precision: str = "",
        backward: bool = False,
    ) -> None:
        self._folders, self._device, self._precision = [Path(folder) for folder in folders], device, precision
        self._backward = backward
        self._process = os.getpid()
        self._loaded: dict[tuple[int, int], Model] = {}
        self.models = self._without((0,) * len(folders))
        self._digests = {(number, 0): model.digest for number, model in enumerate(self.models)}
        self._folds = [DevFolds.read(folder) for folder in self._folders]  # after weights: training writes folds first
        self._warned: set[Path] = set()
        for folder, model in zip(folders[1:], self.models[1:], strict=True):
            reason = _difference(self.models[0], model)
            if reason:
                raise InputError(f"{folder}: {reason} than {folders[0]}. {advice}")
        self.signature = "|".join(model.signature for model in self.models)

    def signature_for(self, source: tuple[str, ...]) -> str:
        """Return the signature of the models that score a source."""
        keys = enumerate(self._folds_of(source))
        return "|".join(signature_of(self.models[key[0]].config, self._digest(key)) for key in keys)

    def for_each(self, sources: Sequence[tuple[str, ...]]) -> Iterator[tuple[list[int], list[Model]]]:
        """Yield groups of sources that are scored by the same models: indices of the sources, and the models.

        Raises:
            InputError: the models are on a GPU, and this process was forked after they were loaded.
        """
        check_process(self._device, self._process)
        groups = defaultdict[tuple[int, ...], list[int]](list)
        for index, source in enumerate(sources):
            groups[self._folds_of(source)].append(index)
        for folds, indices in groups.items():
            yield indices, self._without(folds)

    def _folds_of(self, source: tuple[str, ...]) -> tuple[int, ...]:
        """Return, for each model, the fold whose weights score a source.

        It is 0 if the source is not in the model's dev set, or if the weights of its fold are missing.
        """
        folds = []
        for folder, dev in zip(self._folders, self._folds, strict=True):
            fold = dev.fold_of(source)
            if fold and not (folder / weights_file(fold)).exists():
                if folder not in self._warned:
                    learned = "was fine-tuned on some of these sentences. Their values are too optimistic"
                    log.warning(f"{folder}: {learned}")
                self._warned.add(folder)
                fold = 0
            folds.append(fold)
        return tuple(folds)

    def _without(self, folds: tuple[int, ...]) -> list[Model]:
        """Return the models, each with the weights that were trained without its fold."""
        for number, fold in enumerate(folds):
            if (number, fold) not in self._loaded:
                model = load_model(self._folders[number], self._device, weights_file(fold))
                if self._precision:
                    prepare(model, self._precision, self._backward or model.config.direction == "forward")
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


def perplexity_of(model: Members, pairs: Sequence[SentencePair]) -> float:
    """Return the perplexity per word, counting `</s>`, of a model's predictions for pairs of source and target.

    Pairs from dev are scored with weights that were not trained on them.
    """
    total = 0.0
    for indices, models in model.for_each([source for source, _ in pairs]):
        scored = score_pairs(models, [pairs[index] for index in indices])
        total += sum(float(scores.log_probs.double().sum()) for _, scores in scored)
    side = 0 if model.models[0].config.direction == "backward" else 1
    return perplexity(-total / sum(len(pair[side]) + 1 for pair in pairs))


def parameters_of(model: Model) -> int:
    """Return the number of parameters that scoring needs. Parameters of objectives are needed in training only."""
    parameters = model.network.named_parameters()
    return sum(each.numel() for name, each in parameters if not name.startswith("objectives."))
