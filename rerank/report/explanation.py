"""Explain why one candidate of a sentence scores higher than another, feature by feature."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from moses_io.files.errors import InputError, counted
from moses_io.files.streams import name_of
from moses_io.hypothesis import Hypothesis
from moses_io.nbest import SentenceList, read_nbest
from moses_io.weights import Weights, names_of_values
from rerank.linear.candidates import FeatureSpace
from rerank.linear.collecting import dense_features
from rerank.linear.ranking import LinearModel
from rerank.linear.weights import load_weight_file, weights_for


def explain(
    nbest: str,
    weights: str,
    sentence: int,
    candidates: tuple[int, int],
    moses_output: str | None,
    texts: Sequence[tuple[str, str]],
) -> list[str]:
    """Return lines that compare two candidates of a sentence.

    Args:
        nbest: scored list.
        weights: weight file.
        sentence: sentence id.
        candidates: numbers of the two candidates in the list, from 1. 0 for the first one is the candidate that the
            weights choose. 0 for the second one is Moses' choice or, if that is the first candidate or not in the
            list, the best other candidate by the weights. A single candidate is compared with itself.
        moses_output: translation that Moses printed, None if it is the candidate with the highest total.
        texts: further texts to show, each with its name, such as source and reference.

    Raises:
        InputError: there is no such sentence, or no such candidate.
    """
    content = load_weight_file(weights)
    sentence_list = next((each for each in read_nbest(nbest) if each.sentence == sentence), None)
    if sentence_list is None:
        raise InputError(f"{name_of(nbest)}: no sentence {sentence}")
    sentence_list = replace(sentence_list, moses_output=moses_output)
    scores = LinearModel(content, weights).scores(sentence_list)
    by_name = weights_for(content, FeatureSpace(dense_features(sentence_list)))
    candidate, against = (_index(number, sentence_list) for number in candidates)
    order = np.argsort(-scores, kind="stable").tolist()
    candidate = order[0] if candidate is None else candidate
    if against is None:
        others = (sentence_list.moses_choice, *order[:2])
        against = next((index for index in others if index not in (None, candidate)), candidate)
    lines = [f"sentence {sentence}, {counted(len(scores), 'candidate')}"]
    lines += [f"  {name:<10} {text}" for name, text in texts]
    if moses_output is not None:
        unlisted = "   (not among the candidates)" if sentence_list.moses_choice is None else ""
        lines.append(f"  {'moses':<10} {moses_output}{unlisted}")
    for name, index in (("candidate", candidate), ("against", against)):
        text = sentence_list.hypotheses[index].text
        lines.append(f"  {name:<10} {text}   (number {index + 1}, score {scores[index]:.4f})")
    return lines + _rows(sentence_list.hypotheses[candidate], sentence_list.hypotheses[against], by_name)


def _index(number: int, sentence_list: SentenceList) -> int | None:
    size = len(sentence_list.hypotheses)
    if number > size:
        known = f"sentence {sentence_list.sentence} has {counted(size, 'candidate')}"
        raise InputError(f"{sentence_list.place}: {known}, there is no candidate {number}")
    return number - 1 if number else None


def _rows(candidate: Hypothesis, against: Hypothesis, weights: Weights) -> list[str]:
    """Return one line per feature value: both candidates, the weight, and the contribution. The largest comes first."""
    values, against_values = (dict(_values(each.dense)) | each.sparse for each in (candidate, against))
    by_value = dict(_values(weights.items()))
    parts = []
    for name in values | against_values:
        value, against_value = values.get(name, 0.0), against_values.get(name, 0.0)
        weight = by_value.get(name, 0.0)
        parts.append((name, value, against_value, weight, weight * (value - against_value)))
    parts.sort(key=lambda part: -part[4])
    width = max([len("feature"), *(len(part[0]) for part in parts)])
    head = f"  {'feature':<{width}} {'candidate':>12} {'against':>12} {'weight':>10} {'contribution':>12}"
    rows = [f"  {name:<{width}} {a:>12.5g} {b:>12.5g} {w:>10.4g} {d:>+12.4f}" for name, a, b, w, d in parts]
    return [head, *rows, f"  {'sum':<{width}} {'':>36} {sum(part[4] for part in parts):>+12.4f}"]


def _values(features: Iterable[tuple[str, Sequence[float]]]) -> Iterator[tuple[str, float]]:
    """Yield each value with its name."""
    for name, values in features:
        yield from zip(names_of_values(name, len(values)), values, strict=True)
