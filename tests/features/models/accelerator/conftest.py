"""A simulated GPU for machines without one. It raises the errors of a GPU and counts synchronizations with the host.

Its tensors are tensors of torch's device `meta`, which have a shape and a type but no data. `Presented` makes them
look like `cuda` tensors to the tested code. `Watched` intercepts every operator, including the backward pass.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, ValuesView
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.fx.experimental import _config as symbolic
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from features.models.settings import Architecture

CUDA, META, CPU = (torch.device(name) for name in ("cuda", "meta", "cpu"))
ATEN = torch.ops.aten
INDEXING = {ATEN.index, ATEN.index_put, ATEN.index_put_, ATEN._index_put_impl_}
PRODUCTS = {ATEN.mm, ATEN.bmm, ATEN.addmm, ATEN.addmm_, ATEN.baddbmm}
KERNELS = {ATEN._fused_adam_}
"""Operators that change tensors in place without a result and are not implemented for `meta`."""
IN_BFLOAT16 = {
    torch.mm, torch.bmm, torch.matmul, torch.einsum, torch.nn.functional.linear, Tensor.matmul, Tensor.__matmul__,
}  # fmt: skip
"""Operators of the models whose arguments autocast converts to bfloat16 on a GPU."""
IN_FLOAT16 = {torch.lstm, torch.gru, torch.rnn_tanh}
"""Operators whose arguments autocast converts to float16 on a GPU, even if its precision is bfloat16."""
IN_FLOAT32 = {
    torch.softmax, torch.log1p, torch.exp, torch.log, torch.sum, torch.cumsum, torch.logsumexp, torch.log_softmax,
    torch.nn.functional.softplus, torch.nn.functional.layer_norm, Tensor.softmax, Tensor.log1p, Tensor.exp, Tensor.log,
    Tensor.sum, Tensor.cumsum, Tensor.logsumexp, Tensor.log_softmax,
}  # fmt: skip
"""Operators whose arguments autocast converts to float32."""
WIDEST = {torch.cat, torch.stack, torch.scatter_add, torch.index_put}
"""Operators whose arguments autocast converts to the widest of their types."""


def ones(tensor: Tensor) -> Tensor:
    """Return the values that a copy from the device contains: ones of the same shape and type."""
    return torch.ones(tensor.shape, dtype=tensor.dtype)


@functools.cache
def is_composite(func: Any) -> bool:
    """Return whether an operator is a composition of other operators, which must be intercepted one by one."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


@functools.cache
def changes_one(func: Any) -> bool:
    """Return whether an operator changes the values of its first argument in place and returns it."""
    written = [place for place, each in enumerate(func._schema.arguments) if each.alias_info]
    changes = func._schema.name.endswith("_") and torch.Tag.inplace_view not in func.tags
    return changes and written == [0] and len(func._schema.returns) == 1


@functools.cache
def is_pure(func: Any) -> bool:
    """Return whether an operator returns new tensors whose shapes and types do not depend on data."""
    varies = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output} & set(func.tags)
    return not varies and not any(each.alias_info for each in (*func._schema.arguments, *func._schema.returns))


def described(value: Any) -> Any:
    """Return a key of the properties of an argument that determine the shape and type of a result."""
    if isinstance(value, Tensor):
        return value.shape, value.stride(), value.dtype
    return tuple(map(described, value)) if isinstance(value, list | tuple) else (type(value), value)


KNOWN: dict[Any, Any] = {}
"""Cached results of operators by their keys. Running the operators would take ten times as long."""


def run(func: Any, args: Any, kwargs: Any) -> Any:
    """Return the result of an operator whose tensors are all on the simulated GPU."""
    if kwargs.get("device") == CPU or not (is_pure(func) or changes_one(func)):
        return func(*args, **kwargs)
    key = (func, described(args), *((name, described(value)) for name, value in kwargs.items()))
    if key not in KNOWN:
        KNOWN[key] = func(*args, **kwargs)
    if changes_one(func):
        return args[0]
    result = KNOWN[key]
    return new_like(result) if isinstance(result, Tensor) else tree_map(new_like, result)


def new_like(known: Tensor) -> Tensor:
    """Return a new tensor of the same shape and type, ten times faster than `empty_like`."""
    return torch.empty_strided(known.shape, known.stride(), dtype=known.dtype, device=META)


def tensors_of(values: Iterable[Any]) -> Iterator[Tensor]:
    """Yield the tensors among the arguments of an operator."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple | ValuesView):
            yield from tensors_of(value)


class Accelerator:
    """Counts of operations on the simulated GPU.

    Attributes:
        waits: number of times that the host waited for the GPU, by reason: `item` (also `float(…)` and `bool(…)`),
            `nonzero`, `mask` (a boolean index, whose size must be known), `down` (a copy to the CPU), `up` (a copy
            from the CPU without `non_blocking`).
        products: number of matrix products by the type of their arguments.
        answer: function that returns the values of a copy to the CPU for a tensor on the device.
    """

    def __init__(self) -> None:
        self.waits: Counter[str] = Counter()
        self.products: Counter[torch.dtype] = Counter()
        self.answer: Callable[[Tensor], Tensor] = ones


class Autocast:
    """Replacement for `torch.autocast`, which has no effect on `meta`. If `on` is true, products are in bfloat16."""

    on = False

    def __init__(self, device: str, dtype: torch.dtype = torch.bfloat16, enabled: bool = True) -> None:
        assert device == "cuda" and dtype == torch.bfloat16
        self.enabled = enabled

    def __enter__(self) -> None:
        self.before, Autocast.on = Autocast.on, self.enabled

    def __exit__(self, *reason: object) -> None:
        Autocast.on = self.before


class Presented(TorchFunctionMode):
    """A mode in which `meta` tensors report the device `cuda`, and requests of `cuda` create `meta` tensors."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func == Tensor.device.__get__:
            return CUDA if args[0].is_meta else CPU
        if func == Tensor.is_cuda.__get__:
            return args[0].is_meta
        args = tuple(map(self._place, args))
        kwargs = {name: self._place(value) for name, value in (kwargs or {}).items()}
        if func is torch.tensor and kwargs.get("device") == META:
            return torch.tensor(*args, **kwargs | {"device": CPU}).to(META)
        if func is Tensor.backward:  # operators of the backward pass must see a GPU
            with self:
                return torch.autograd.backward(*args)
        if func in IN_FLOAT16 and not all(tensor.is_contiguous() for tensor in tensors_of(args[1:3])):
            raise RuntimeError("rnn: hx is not contiguous")  # as cuDNN
        if Autocast.on:
            args, kwargs = self._cast(func, args, kwargs)
        return func(*args, **kwargs)

    def _place(self, value: Any) -> Any:
        return META if isinstance(value, torch.device) and value.type == "cuda" else value

    def _cast(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Convert arguments to the types that autocast uses."""
        kinds = {tensor.dtype for tensor in tensors_of(args) if tensor.is_meta and tensor.is_floating_point()}
        wanted = None
        if func in IN_BFLOAT16 and "out" not in kwargs:
            wanted = torch.bfloat16
        elif func in IN_FLOAT16:
            wanted = torch.float16
        elif func in IN_FLOAT32 or (func in WIDEST and len(kinds) > 1):
            wanted = torch.float32

        def cast(value: Any) -> Any:
            low = isinstance(value, Tensor) and value.is_meta and value.dtype in (torch.float32, torch.bfloat16)
            return value.to(wanted) if low and wanted else value

        return tree_map(cast, (args, kwargs))


class Watched(TorchDispatchMode):
    """A mode that intercepts every operator and raises an error where a GPU would."""

    def __init__(self, accelerator: Accelerator) -> None:
        super().__init__()
        self.accelerator = accelerator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, operator, waits = kwargs or {}, func.overloadpacket, self.accelerator.waits
        if is_composite(func):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        tensors = list(tensors_of((args, kwargs.values())))
        there = [tensor for tensor in tensors if tensor.is_meta]
        if operator in (ATEN._to_copy, ATEN.copy_):
            return self._copy(func, args, kwargs)
        if not there:
            return func(*args, **kwargs)
        self._check(func, operator, tensors)
        if operator in KERNELS:
            return None
        if operator is ATEN._local_scalar_dense:
            waits["item"] += 1
            return ones(args[0]).item()
        if operator is ATEN.nonzero:
            waits["nonzero"] += 1
        if operator in INDEXING and any(index is not None and index.dtype == torch.bool for index in args[1]):
            waits["mask"] += 1
        if operator in PRODUCTS:
            self.accelerator.products[tensors[-1].dtype] += 1
        return run(func, args, kwargs) if len(there) == len(tensors) else func(*args, **kwargs)

    def _check(self, func: Any, operator: Any, tensors: list[Tensor]) -> None:
        """Raise `RuntimeError` for tensors on two devices and for products of two types.

        The lengths of packed sequences are an exception, because they must be on the CPU.
        """
        here = [tensor for tensor in tensors if not tensor.is_meta and (tensor.dim() or operator in INDEXING)]
        if here and operator is not ATEN._pack_padded_sequence:
            places = [f"{'cuda' if tensor.is_meta else 'cpu'} {list(tensor.shape)}" for tensor in tensors]
            raise RuntimeError(f"{func}: expected all tensors on the same device, found {', '.join(places)}")
        if operator in PRODUCTS and len({tensor.dtype for tensor in tensors}) > 1:
            raise RuntimeError(f"{func}: expected one type, found {[tensor.dtype for tensor in tensors]}")

    def _copy(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Copy a tensor between devices or within a device, and count the wait."""
        source = args[0] if func.overloadpacket is ATEN._to_copy else args[1]
        target = torch.device(kwargs.get("device") or args[0].device)
        if source.is_meta and target.type == "cpu":
            self.accelerator.waits["down"] += 1
            answer = self.accelerator.answer(source)
            return answer.to(kwargs.get("dtype") or source.dtype) if source is args[0] else args[0].copy_(answer)
        blocking = not (kwargs.get("non_blocking") or args[2:])
        if not source.is_meta and target.type == "meta" and blocking:
            self.accelerator.waits["up"] += 1
        return func(*args, **kwargs)


@pytest.fixture
def accelerator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Accelerator]:
    """The simulated GPU during a test. A model is moved to it with `.to(torch.device("cuda"))`."""
    monkeypatch.setattr(torch, "autocast", Autocast)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device_type: Autocast.on)
    monkeypatch.setattr(torch, "get_autocast_dtype", lambda device_type: torch.bfloat16)
    monkeypatch.setattr(torch._C, "_is_any_autocast_enabled", lambda: Autocast.on)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=2**36))
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    monkeypatch.setattr(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
    device = Accelerator()
    with ExitStack() as stack:
        stack.enter_context(symbolic.patch(meta_nonzero_assume_all_nonzero=True))
        stack.enter_context(Watched(device))
        stack.enter_context(Presented())
        yield device


@pytest.fixture
def of_encoding(architecture: Architecture) -> Counter[str]:
    """Expected waits of the host when a batch of sources is encoded."""
    waits: Counter[str] = Counter()
    if architecture.encoder == "unidirectional":  # torch packs sequences by lengths on the CPU
        waits.update(down=2, up=1)
    if architecture.lexicon != "none":  # shapes depend on the number of table entries of a source
        waits["item"] += 1
    return waits


class Precision(NamedTuple):
    """Precision of matrix products and the expected types of their arguments."""

    low: bool
    kinds: set[torch.dtype]


@pytest.fixture(params=["bf16", pytest.param("fp32", marks=pytest.mark.slow)])
def precision(request: pytest.FixtureRequest) -> Precision:
    """The case `bf16` covers everything that `fp32` does, and it detects incompatible types."""
    low = request.param == "bf16"
    return Precision(low, {torch.float32, torch.bfloat16} if low else {torch.float32})
