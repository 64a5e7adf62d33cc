"""Precision: a dtype has the same meaning on every device."""

from __future__ import annotations

from typing import Any

import torch


def ieee_float32() -> None:
    """Make float32 products, convolutions and recurrent layers compute in IEEE float32 on GPUs too, in this process.

    By default cuDNN computes float32 in TF32, with 10 instead of 23 bits of mantissa, and cuBLAS does not. The
    environment variable TORCH_ALLOW_TF32_CUBLAS_OVERRIDE, set in NVIDIA's images, switches cuBLAS to TF32 as well. This
    function overrides the variable, and the settings of a user's module through either of torch's two interfaces. It
    resets the newer one (``fp32_precision``) to "none" first, because otherwise torch raises when it reads the older
    one's values.
    """
    backends: Any = torch.backends  # torch declares no types for these
    for part in (backends, backends.cudnn, backends.cudnn.conv, backends.cudnn.rnn):
        part.fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
