"""The allocator keeps freed memory: a large buffer that is allocated again causes no page faults."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import resource, torch
from highway_bench.measure.allocator import keep_freed_memory
kept = keep_freed_memory() if {keep} else None
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    torch.ones(2**24)
before = faults()
for _ in range(10):
    torch.ones(2**24)
print(kept, (faults() - before) // 10)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="page faults of glibc's allocator")
def test_a_buffer_that_is_allocated_again_causes_no_page_faults() -> None:
    def run(keep: bool) -> tuple[str, int]:
        done = subprocess.run(
            [sys.executable, "-c", CODE.format(keep=keep)], capture_output=True, text=True, check=True
        )
        kept, faults = done.stdout.split()
        return kept, int(faults)

    kept, faults = run(True)
    if kept == "False":
        pytest.skip("this C library has no mallopt")
    assert faults < 0.2 * run(False)[1]
