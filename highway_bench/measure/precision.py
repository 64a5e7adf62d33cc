"""Precision: a dtype has the same meaning on every device, and so has a training run where the kernels allow it.

The names of dtypes are those of ``cell.DTYPES``. ``float32`` is IEEE float32. ``tf32`` is float32 whose products,
convolutions and recurrent layers a GPU computes with 10 instead of 23 bits of mantissa.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import BadInput
from .torch_internals import converted

TF32 = "tf32"
UNREPEATABLE = re.compile(  # torch's warnings: of most operators, of attention, and of products
    r"(\S+) does not have a deterministic implementation|([A-Za-z ]+) defaults to a non-deterministic|uses (CuBLAS)"
)


def ieee_float32() -> None:
    """Make float32 products, convolutions and recurrent layers compute in IEEE float32 on GPUs too, in this process.

    By default cuDNN computes float32 in TF32, with 10 instead of 23 bits of mantissa, and cuBLAS does not. The
    environment variable TORCH_ALLOW_TF32_CUBLAS_OVERRIDE, set in NVIDIA's images, switches cuBLAS to TF32 as well. This
    function overrides the variable, and the settings of a user's module through either of torch's two interfaces. It
    resets the newer one (``fp32_precision``) to "none" first, because otherwise torch raises when it reads the older
    one's values.
    """
    _set_float32("highest", in_cudnn=False)


def torch_dtype(name: str) -> torch.dtype:
    """torch's dtype of this name; raises ``BadInput`` for one that is not floating-point."""
    dtype = torch.float32 if name == TF32 else getattr(torch, name, None)
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise BadInput(f"{name!r} is no floating dtype")
    return dtype


def use_precision(name: str) -> None:
    """Make this process compute float32 as the dtype of this name says, from now on."""
    if name == TF32:
        _set_float32("high", in_cudnn=True)
    else:
        ieee_float32()


def cast(network: nn.Module, dtype: torch.dtype, device: torch.device | None = None) -> nn.Module:
    """``network`` with its real numbers in ``dtype``, its complex ones in the complex dtype of that precision, and its
    integers as they are; on ``device``, if one is given.

    ``nn.Module.to`` would discard imaginary parts.
    """

    def change(part: Tensor) -> Tensor:
        of_complex = dtype.to_complex() if part.is_complex() else part.dtype
        return part.to(device or part.device, dtype if part.is_floating_point() else of_complex)

    return converted(network, change)


@contextmanager
def precision(name: str) -> Iterator[None]:
    """``use_precision`` meanwhile."""
    before = _float32()
    use_precision(name)
    try:
        yield
    finally:
        _set_float32(*before)


def _float32() -> tuple[str, bool]:
    """The settings of products and of cuDNN. Those of torch's newer interface are reset where torch refuses to read."""
    try:
        return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    except RuntimeError:
        _reset_newer_interface()
        return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32


def _reset_newer_interface() -> None:
    backends: Any = torch.backends  # torch declares no types for these
    if hasattr(backends, "fp32_precision"):  # torch 2.9
        for part in (backends, backends.cudnn, backends.cudnn.conv, backends.cudnn.rnn):
            part.fp32_precision = "none"


def _set_float32(products: str, in_cudnn: bool) -> None:
    _reset_newer_interface()
    torch.set_float32_matmul_precision(products)
    torch.backends.cudnn.allow_tf32 = in_cudnn


@contextmanager
def repeatable(device: torch.device) -> Iterator[set[str]]:
    """Use kernels on a GPU meanwhile that give equal numbers in every run, where torch has them.

    Yields a set of the operators that ran without such a kernel. On a CPU nothing changes: the kernels are repeatable.
    """
    lacking: set[str] = set()
    if device.type != "cuda":
        yield lacking
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read at the process's first product
    backends: Any = torch.backends
    memory: Any = torch.utils.deterministic
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        memory.fill_uninitialized_memory,
        backends.cudnn.deterministic,
    )
    torch.use_deterministic_algorithms(True, warn_only=True)
    memory.fill_uninitialized_memory = False  # it would cost a kernel for each new tensor
    backends.cudnn.deterministic = True
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")  # once a place: a step may warn at every layer
            yield lacking
        for one in caught:
            found = UNREPEATABLE.search(str(one.message))
            if found is not None:
                lacking.add(next(name.strip() for name in found.groups() if name))
            else:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        memory.fill_uninitialized_memory, backends.cudnn.deterministic = before[2:]
