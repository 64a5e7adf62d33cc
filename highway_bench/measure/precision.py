"""Precision: what a dtype means, the same on every device."""

from __future__ import annotations

from typing import Any

import torch


def ieee_float32() -> None:
    """Make products, convolutions and recurrent layers of float32 IEEE float32 on a GPU too, for this process.

    By default cuDNN computes in TF32, with 10 bits of mantissa for 23, and cuBLAS does not: one dtype would be two. An
    environment variable (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE, set in NVIDIA's images) turns cuBLAS to TF32 as well; this
    overrules it, and what a user's module has set through either of torch's two interfaces. The newer one
    (``fp32_precision``) is put back to "none" first: otherwise torch raises when it reads the older one's values.
    """
    backends: Any = torch.backends  # torch declares no types for these
    for part in (backends, backends.cudnn, backends.cudnn.conv, backends.cudnn.rnn):
        part.fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
