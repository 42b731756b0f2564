"""The simulated GPU raises the same errors and causes the same waits as a real one."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from features.feature import Sentence
from features.models.batches import pad
from features.models.folder import Model
from features.models.network import attention, terms, transformer
from features.models.network.cells import full_precision
from features.models.scoring.tree import score_tree
from features.models.settings import Architecture

CUDA = torch.device("cuda")


def there(*shape: int) -> Tensor:
    return torch.zeros(shape, device=CUDA)


WRONG_OPERATIONS: dict[str, Callable[[], object]] = {
    "sum": lambda: there(3) + torch.ones(3),
    "product": lambda: there(2, 2) @ torch.ones(2, 2),
    "join": lambda: torch.cat([there(3), torch.ones(3)]),
    "rows": lambda: there(3).index_select(0, torch.tensor([1])),
    "place": lambda: torch.ones(3)[torch.zeros(1, dtype=torch.long, device=CUDA)],
    "numpy": lambda: there(3).numpy(),
    "layer": lambda: torch.nn.Linear(2, 2)(there(2)),
    "precisions": lambda: there(2, 2).bfloat16() @ there(2, 2),
}


@pytest.mark.parametrize("act", WRONG_OPERATIONS.values(), ids=WRONG_OPERATIONS)
def test_wrong_operations_are_errors(accelerator: Any, act: Callable[[], object]) -> None:
    with pytest.raises((RuntimeError, TypeError)):
        act()


WAITS: dict[str, tuple[Callable[[], object], dict[str, int]]] = {
    "float": (lambda: float(there()), {"item": 1}),
    "bool": (lambda: bool(there() > 0), {"item": 1}),
    "list": (lambda: there(3).tolist(), {"down": 1}),
    "cpu": (lambda: there(3).cpu(), {"down": 1}),
    "into": (lambda: torch.ones(3).copy_(there(3)), {"down": 1}),
    "nonzero": (lambda: there(3).nonzero(), {"nonzero": 1}),
    "mask": (lambda: there(3)[there(3) > 0], {"mask": 1}),
    "masked": (lambda: there(3).__setitem__(there(3) > 0, 1.0), {"mask": 1}),
    "made there": (lambda: torch.tensor([1, 2], device=CUDA), {"up": 1}),
    "sent": (lambda: torch.ones(2).to(CUDA), {"up": 1}),
    "sent ahead": (lambda: torch.ones(2).to(CUDA, non_blocking=True), {}),
    "number": (lambda: there(3) + torch.tensor(1.0), {}),
    "arithmetic": (lambda: (there(3) * 2)[1:].sum(), {}),
}


@pytest.mark.parametrize(("act", "waits"), WAITS.values(), ids=WAITS)
def test_waits_of_the_host_are_counted(accelerator: Any, act: Callable[[], object], waits: dict[str, int]) -> None:
    act()
    assert accelerator.waits == Counter(waits)


def test_autocast_to_bfloat16_and_gradients_in_float32(accelerator: Any) -> None:
    weight = there(2, 2).requires_grad_()
    with torch.autocast("cuda", torch.bfloat16):
        product = weight @ there(2, 2)
        assert product.is_cuda and product.device == CUDA and product.dtype == torch.bfloat16
        assert torch.softmax(product, dim=0).dtype == torch.float32
        with torch.autocast("cuda", enabled=False):
            assert (weight @ there(2, 2)).dtype == torch.float32
    product.sum().backward()
    assert weight.grad is not None and weight.grad.dtype == torch.float32 and weight.grad.device == CUDA


def test_autocast_runs_recurrent_layers_in_float16(accelerator: Any) -> None:
    layer = torch.nn.LSTM(2, 3).to(CUDA)
    with torch.autocast("cuda", torch.bfloat16):
        assert layer(there(1, 1, 2))[0].dtype == torch.float16
        with full_precision(CUDA):
            assert layer(there(1, 1, 2))[0].dtype == torch.float32
    assert set(accelerator.products) == {torch.float16, torch.float32}


def _left_behind(shape: tuple[int, ...]) -> Tensor:
    return torch.zeros(shape)


MUTANTS: list[tuple[str, object, str, Callable[..., Any]]] = [
    ("luong-local-m-dot", attention, "_positions", lambda source: _left_behind(source.bias.shape)),
    ("cohn-align", terms.Markov, "start", lambda self, bias: (_left_behind(bias.shape),)),
    ("transformer", transformer, "add_positions", lambda embedded, positions: embedded + _left_behind(embedded.shape)),
]


@pytest.mark.parametrize(
    ("architecture", "module", "name", "mutant"), MUTANTS, indirect=["architecture"], ids=[row[0] for row in MUTANTS]
)
def test_a_tensor_left_on_the_cpu_is_an_error(
    accelerator: Any,
    architecture: Architecture,
    make_model: Callable[..., Model],
    monkeypatch: pytest.MonkeyPatch,
    module: object,
    name: str,
    mutant: Callable[..., Any],
) -> None:
    model = replace(make_model(architecture, 1), device=CUDA)
    model.network.to(CUDA)
    sentences = [Sentence(0, ("a", "b"), (("c", "d"),)), Sentence(1, ("a",), (("c",),))]
    score_tree([model], sentences, ["logprob"])
    monkeypatch.setattr(module, name, mutant)
    with pytest.raises(RuntimeError, match="expected all tensors on the same device, found "):
        score_tree([model], sentences, ["logprob"])
    with pytest.raises(RuntimeError, match="expected all tensors on the same device, found "):
        model.network.train()(pad([[4, 5], [4]], CUDA), pad([[4], [4]], CUDA))
