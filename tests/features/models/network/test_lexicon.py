from collections.abc import Callable

import pytest
import torch

from features.models.network.lexicon import ENTRIES, Lexical, Lexicon
from features.models.network.softmax import Softmax
from features.models.vocabulary import BEGIN, END, PADDING, UNKNOWN
from features.translation_table import Translations

AsTranslations = Callable[[dict[int, dict[int, float]]], Translations]
TABLE = {BEGIN: {4: 0.7, BEGIN: 0.3}, UNKNOWN: {4: 1.0}, 4: {5: 0.5, 4: 0.25, 6: 0.25, 7: 0.004}, 5: {6: 1.0}}


def looked_up(sentence: list[int], translations: AsTranslations) -> list[dict[int, float]]:
    lexicon = Lexicon(8, mixes=False)
    lexicon.fill(translations({4: {8: 1.0}}))
    lexicon.fill(translations(TABLE))
    table, words = lexicon.entries(torch.tensor([sentence, [BEGIN, 4, 5, 4, END]]))
    rows = [dict(zip(words[0].tolist(), row, strict=False)) for row in table[0].tolist()]
    real = words[1][words[1] != PADDING].tolist()
    assert sorted(real) == sorted(set(real)) == [END, 4, 5, 6]
    return [{word: p for word, p in row.items() if p} for row in rows]


def test_translations_of_each_source_word(translations: AsTranslations) -> None:
    rows_of_table = looked_up([BEGIN, UNKNOWN, 4, END, PADDING], translations)
    assert rows_of_table == [{4: pytest.approx(0.7)}, {}, {4: 0.25, 5: 0.5, 6: 0.25}, {END: 1.0}, {}]


def test_the_most_probable_translations_are_kept(translations: AsTranslations) -> None:
    lexicon = Lexicon(8, mixes=False)
    lexicon.fill(translations({4: {word: 0.01 + 0.01 * (word % 2) for word in range(4, 54)}}))
    assert lexicon.words[4].tolist() == list(range(5, 5 + 2 * ENTRIES, 2))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("mixes", [False, True])
def test_the_loss_and_its_gradients_equal_a_simple_implementation(
    mixes: bool, smoothing: float, bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row of outputs has its own table. The words of a table are padded."""
    monkeypatch.setattr("features.models.network.softmax.BLOCK", 3)
    torch.manual_seed(1)
    softmax = Softmax(4, 6, bias=bias).double()
    names, weights = zip(*softmax.named_parameters(), strict=True)
    outputs, targets = torch.randn(5, 2, 4).double(), torch.tensor([[1, 2], [0, 5], [4, 4], [0, 3], [1, 0]])
    words = torch.stack([torch.tensor([0, *(1 + torch.randperm(5)[:3]).tolist(), 0]) for _ in range(10)])
    values = 0.3 * torch.rand(10, 5).double() * (words != PADDING)

    def ours(rows: torch.Tensor, values: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        named = {f"softmax.{name}": weight for name, weight in zip(names, weights, strict=True)}
        total: torch.Tensor = torch.func.functional_call(Loss(softmax), named, (rows, values))
        return total

    class Loss(torch.nn.Module):
        def __init__(self, softmax: Softmax) -> None:
            super().__init__()
            self.softmax = softmax

        def forward(self, rows: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            known = Lexical(values * (words != PADDING), words, mixes)
            return self.softmax.loss(rows, targets, smoothing, known)[0] * 1.5

    dense = torch.zeros(10, 6).double().scatter_add(1, words, values)
    logits = softmax(outputs).flatten(0, 1)
    rest = 1 - dense.sum(dim=1, keepdim=True)
    log_probs = (dense + rest * logits.softmax(-1)).log() if mixes else (logits + dense).log_softmax(-1)
    wanted = torch.nn.functional.cross_entropy(
        log_probs, targets.flatten(), ignore_index=0, reduction="sum", label_smoothing=smoothing
    )
    torch.testing.assert_close(ours(outputs, values, *weights), 1.5 * wanted)
    chosen = softmax.log_probs(outputs, targets, Lexical(values, words, mixes))
    torch.testing.assert_close(chosen, log_probs.gather(1, targets.view(-1, 1)).view_as(targets))
    assert torch.autograd.gradcheck(ours, (outputs.requires_grad_(), values.requires_grad_(), *weights))
