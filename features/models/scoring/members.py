"""Models for scoring, single or in an ensemble, each with weights that were not trained on the sentence to score.

Also their preparation for many candidates per source, their size and their perplexity.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from features.models.config import DevFolds, weights_file
from features.models.device import check_process
from features.models.folder import Model, digest_of_model, load_model, signature_of
from features.models.network.cells import Columns, Recurrence
from features.models.network.model import EncoderDecoder
from features.models.network.transformer import Dense
from features.models.scoring.pairs import SentencePair, perplexity, score_pairs
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
        backward: whether the models are backward models that translate, as forward models from the target language to
            the source language.

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
        self._warned = False
        for folder, model in zip(folders[1:], self.models[1:], strict=True):
            reason = _difference(self.models[0], model)
            if reason:
                raise InputError(f"{folder}: {reason} than {folders[0]}; {advice}")
        configs = [
            replace(model.config, direction="backward" if backward else model.config.direction) for model in self.models
        ]
        self.signature = "|".join(map(signature_of, configs, (model.digest for model in self.models)))

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
                if not self._warned:
                    learned = "was fine-tuned on some of these sentences. Their values are too optimistic"
                    log.warning(f"{folder}: {learned}")
                self._warned = True
                fold = 0
            folds.append(fold)
        return tuple(folds)

    def _without(self, folds: tuple[int, ...]) -> list[Model]:
        """Return the models, each with the weights that were trained without its fold."""
        for number, fold in enumerate(folds):
            if (number, fold) not in self._loaded:
                model = load_model(self._folders[number], self._device, weights_file(fold))
                if self._backward:
                    model = replace(model, config=replace(model.config, direction="forward"))
                if self._precision:
                    prepare(model, self._precision)
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


class Folded(nn.Module):
    """Rest of a linear layer that read the context first, after its context weights were applied to annotations.

    The input now begins with the products of all such layers, `total` values. The slice `own` holds those of this
    layer.
    """

    def __init__(self, layer: nn.Linear, width: int, own: slice, total: int) -> None:
        super().__init__()
        self.own, self.total = own, total
        self.rest = nn.Parameter(layer.weight.detach()[:, width:]) if layer.in_features > width else None
        self.bias = layer.bias

    def forward(self, rows: Tensor) -> Tensor:
        """Return the outputs (…, outputs) of the original layer."""
        if self.rest is None:
            return rows[..., self.own]
        return rows[..., self.own] + functional.linear(rows[..., self.total :], self.rest, self.bias)


def prepare(model: Model, precision: str) -> None:
    """Prepare a model for many candidates per source, or for translation, with products in `fp32` or `bf16`."""
    forward = model.config.direction == "forward"
    if forward:
        fold(model.network)
    if precision == "bf16":
        lower(model.network, stepwise=forward)


def fold(network: EncoderDecoder) -> None:
    """Multiply the weights with annotations instead of contexts: W sum_i a_i e_i = sum_i a_i W e_i.

    The network is changed in place. This is faster if many hypotheses share a source. With granularity `fine`, where
    each dimension has its own attention weights, it is not possible, and nothing is changed.
    """
    decoder = network.decoder
    layers = [decoder.get_submodule(name) for name in decoder.readers]
    if not layers or decoder.attention.fine:
        return
    width, total = network.annotation, sum(layer.out_features for layer in layers)
    values = nn.Linear(width, total, bias=False, device="meta")
    values.weight = nn.Parameter(torch.cat([layer.weight.detach()[:, :width] for layer in layers]))
    start = 0
    for name, layer in zip(decoder.readers, layers, strict=True):
        end = start + layer.out_features
        decoder.set_submodule(name, Folded(layer, width, slice(start, end), total))
        start = end
    decoder.values = values


def lower(network: EncoderDecoder, stepwise: bool) -> None:
    """Multiply in bfloat16 in the decoder layers and the softmax, but add, normalize and keep states in float32.

    The network is changed in place. `stepwise`: the decoder will only take single steps, so its recurrent layers can be
    lowered too. Torch's fused kernels require a single precision.
    """
    parts = list(network.decoder.modules())
    lowered = [part.weight for part in parts if isinstance(part, Columns | Dense)]
    for part in parts if stepwise else ():
        if isinstance(part, Recurrence):
            lowered += [weight for name, weight in part.stack.named_parameters() if name.startswith("weight")]
    for weight in lowered:
        weight.data = weight.data.bfloat16()
    network.softmax.weight = nn.Parameter(network.softmax.weight.detach().bfloat16())  # word vectors stay as they are


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
