"""The allocator keeps freed memory: a large buffer that is allocated again causes no page faults."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import resource, torch
from highway_bench.measure.allocator import keep_freed_memory
def faults_of_ten():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(2**24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults_of_ten()
freed = faults_of_ten()
kept = keep_freed_memory()
faults_of_ten()
print(kept, freed, min(faults_of_ten() for _ in range(5)))  # a small block behind a freed buffer makes the heap grow
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="page faults of glibc's allocator")
def test_a_buffer_that_is_allocated_again_causes_no_page_faults() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    kept, freed, again = done.stdout.split()
    if kept == "False":
        pytest.skip("this C library has no mallopt")
    assert int(again) < 0.2 * int(freed)
