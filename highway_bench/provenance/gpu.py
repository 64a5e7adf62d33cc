"""GPU: its model, memory and number types, read before a run in a short process of its own.

Reading them initialises CUDA. That takes some hundred MB for as long as the process lives, and blocks every worker from
a GPU that serves one process at a time. The process that starts the workers must therefore not read them itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

from highway_bench.errors import BadInput

READ = """
import json, sys, torch
with torch.cuda.device(sys.argv[1]):
    about = torch.cuda.get_device_properties(sys.argv[1])
    bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    free, memory = torch.cuda.mem_get_info()
tf32 = about.major >= 8  # from Ampere on
print(json.dumps({"name": about.name, "memory": memory, "free": free, "bfloat16": bfloat16, "tf32": tf32}))
"""


@dataclass(frozen=True)
class Gpu:
    """A GPU's model, its memory in bytes, how much of it was free, and whether it computes in bfloat16 and in TF32."""

    name: str
    memory: int
    free: int
    bfloat16: bool
    tf32: bool


@cache
def gpu(device: str) -> Gpu:
    """The GPU called ``device``. Raises ``BadInput`` if torch has no CUDA or finds no such device."""
    done = subprocess.run([sys.executable, "-P", "-c", READ, device], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BadInput(f"this machine has no device {device!r}: {reason}")
    return Gpu(**json.loads(done.stdout.strip().splitlines()[-1]))
