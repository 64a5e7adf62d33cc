"""Set-up of every bench: float32 without TF32."""

from __future__ import annotations

from highway_bench.measure.precision import ieee_float32

ieee_float32()  # as in a worker
