"""Beam search against an enumeration of all translations and against a simple implementation."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch

from features.feature import Sentence
from features.models.batches import pad
from features.models.decoding import search as searching
from features.models.decoding.search import Beam, Ended, search
from features.models.folder import Model
from features.models.network.source import gather
from features.models.scoring import walk
from features.models.scoring.pairs import mean_log, score_one_by_one
from features.models.scoring.preparation import fuse_context_weights
from features.models.settings import Architecture
from features.models.vocabulary import END, UNKNOWN

MakeModel = Callable[..., Model]
SOURCES = [("b", "c", "a", "z"), (), ("a",), ("f", "f")]
LIMITS = [2, 2, 1, 2]
NEXT_WORDS = [UNKNOWN, *range(4, 10)]
"""Words that a model can predict, except `</s>`."""


def next_log_probs(models: list[Model], source: tuple[str, ...], prefix: list[int]) -> dict[int, float]:
    """Return log p of each next token, computed by scoring complete targets."""
    targets = pad([[*prefix, word] for word in NEXT_WORDS], torch.device("cpu"))  # (W, J+1)
    log_probs = []
    for model in models:
        one = model.network.encode(pad([model.source.encode(source)], model.device))
        following = model.network.score(gather(one, torch.zeros(len(NEXT_WORDS), dtype=torch.long)), targets)
        end = model.network.score(one, pad([prefix], model.device))
        log_probs.append(torch.cat([following.log_probs[:, len(prefix)], end.log_probs[:, len(prefix)]]))  # (W+1,)
    return dict(zip([*NEXT_WORDS, END], mean_log(log_probs).tolist(), strict=True))


def slow_search(models: list[Model], source: tuple[str, ...], limit: int, size: int) -> list[Ended]:
    """Beam search over one prefix at a time. Each finished translation reduces the size of the beam by one."""
    living, ends = [(0.0, list[int]())], list[Ended]()
    while living and len(ends) < size:
        options = [
            (log_prob + more, [*prefix, word])
            for log_prob, prefix in living
            for word, more in next_log_probs(models, source, prefix).items()
            if word == END or len(prefix) < limit
        ]
        kept = sorted(options, key=lambda option: -option[0])[: size - len(ends)]
        ends += [Ended(prefix[:-1], log_prob) for log_prob, prefix in kept if prefix[-1] == END]
        living = [(log_prob, prefix) for log_prob, prefix in kept if prefix[-1] != END]
    return sorted(ends, key=lambda end: -end.log_prob)


def equal(some: list[Ended], others: list[Ended]) -> bool:
    close = np.allclose([each.log_prob for each in some], [each.log_prob for each in others], atol=1e-4)
    return close and [each.tokens for each in some] == [each.tokens for each in others]


def test_an_unlimited_beam_finds_every_translation(architecture: Architecture, make_model: MakeModel) -> None:
    models = [make_model(architecture, seed) for seed in (1, 2)]
    words = dict(zip(NEXT_WORDS, ["z", *"abcdef"], strict=True))
    wanted = []
    for source, limit in zip(SOURCES, LIMITS, strict=True):
        texts = [text for length in range(limit + 1) for text in itertools.product(NEXT_WORDS, repeat=length)]
        hypotheses = tuple(tuple(words[token] for token in text) for text in texts)
        values = score_one_by_one(models, [Sentence(0, source, hypotheses)], ["logprob"]).values["logprob"]
        wanted.append(dict(zip(texts, values.tolist(), strict=True)))
    for each in models:
        fuse_context_weights(each.network)
    for normalize in (False, True):
        beam = Beam(60, 60, normalize)
        for ends, log_probs in zip(search(models, SOURCES, LIMITS, beam), wanted, strict=True):
            assert {tuple(end.tokens) for end in ends} == set(log_probs)
            np.testing.assert_allclose(
                [end.log_prob for end in ends], [log_probs[tuple(end.tokens)] for end in ends], atol=1e-4
            )
            values = [beam.value(end.log_prob, len(end.tokens) + 1) for end in ends]
            assert values == sorted(values, reverse=True)


@pytest.mark.parametrize(
    "architecture",
    ["encdec", "rnnsearch", "luong-local-p-dot", "cohn-align", "yang-window11", "gnmt", "transformer"],
    indirect=True,
)
def test_beams_equal_those_of_a_simple_search(architecture: Architecture, make_model: MakeModel) -> None:
    models = [make_model(architecture, 3)]
    limits = [5, 3, 4, 0]
    for size in (1, 3):
        ends = search(models, SOURCES, limits, Beam(size, size))
        for source, limit, of_source in zip(SOURCES, limits, ends, strict=True):
            assert equal(of_source, slow_search(models, source, limit, size))
        best = search(models, SOURCES, limits, Beam(size))
        assert [len(each) for each in best] == [1] * len(SOURCES)
        assert all(equal(one, many[:1]) for one, many in zip(best, ends, strict=True))


def test_results_do_not_depend_on_batches_and_blocks(
    architecture: Architecture, make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, limits, beam = make_model(architecture, 4), [6, 6, 6, 6], Beam(4, 4, normalize=True)
    together = search([model], SOURCES, limits, beam)
    # An ensemble of a model with itself equals the model.
    assert all(map(equal, search([model, model], SOURCES, limits, beam), together))
    monkeypatch.setattr(searching, "LOGITS", {"cpu": 1})
    monkeypatch.setattr(walk, "MEMORY", {"cpu": 1})
    assert all(map(equal, search([model], SOURCES, limits, beam), together))
    alone = [search([model], [source], [limit], beam)[0] for source, limit in zip(SOURCES, limits, strict=True)]
    assert all(map(equal, alone, together))


def test_greedy_search_takes_the_best_word_at_every_step(make_model: MakeModel) -> None:
    for seed in (6, 7):
        model = make_model(Architecture(), seed)
        for source, ends in zip(SOURCES, search([model], SOURCES, [5] * 4, Beam(1)), strict=True):
            prefix: list[int] = []
            while len(prefix) < 5:
                log_probs = next_log_probs([model], source, prefix)
                word = max(log_probs, key=lambda word: log_probs[word])
                if word == END:
                    break
                prefix.append(word)
            assert ends[0].tokens == prefix
