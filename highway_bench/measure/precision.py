"""Precision: what a dtype means, the same on every device."""

from __future__ import annotations

import torch


def ieee_float32() -> None:
    """Make products, convolutions and recurrent layers of float32 IEEE float32 on a GPU too, for this process.

    By default cuDNN computes in TF32, with 10 bits of mantissa for 23, and cuBLAS does not: one dtype would be two. An
    environment variable (TORCH_ALLOW_TF32_CUBLAS_OVERRIDE, set in NVIDIA's images) turns cuBLAS to TF32 as well; this
    overrules it. The older of torch's two interfaces, for it alone sets everything at once: after the newer one
    (``fp32_precision``) the older one's values raise when they are read, and torch itself reads them.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
