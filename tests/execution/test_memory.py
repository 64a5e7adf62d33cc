"""A cell that does not fit memory is a row before it runs."""

import pytest
import torch

from highway_bench.execution import failure
from highway_bench.execution.failure import lack_of_memory
from highway_bench.execution.runner import run_cells
from highway_bench.provenance.free_memory import USABLE, gib
from highway_bench.tasks import tasks
from highway_bench.tasks.predicted_costs import predicted_bytes
from tests.inline_engine import InlineEngine, cell_of

MEMORY = cell_of("memory", depth=2, batch_size=4, phase="train-step")
TRAINED = MEMORY.but(task="trainability", phase=None, dataset="digits", width=64, depth=100, recipe={"together": 64})


@pytest.fixture
def free(monkeypatch):
    """Sets the usable bytes of the machine, or of a GPU that it has then."""

    def set_to(size):
        monkeypatch.setattr(failure, "usable_bytes", lambda device: size)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (size // 2, 10 * size))
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: size)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: size // 2)

    return set_to


def test_a_run_has_a_row_for_it_and_goes_on(store, tmp_path):
    deep = MEMORY.but(depth=10**9)
    run_cells([deep, MEMORY], store, engine=InlineEngine(tmp_path))
    rows = store.frame().set_index("depth")
    assert set(rows.loc[deep.depth, "status"]) == {"oom"}
    assert all(message.startswith("not run") for message in rows.loc[deep.depth, "message"])
    assert set(rows.loc[MEMORY.depth, "status"]) == {"ok"}


def test_the_message_has_both_numbers(free):
    task, cell = tasks.get("memory"), MEMORY.but(depth=1_000)
    needed = predicted_bytes(cell)
    free(needed)
    assert lack_of_memory(task, cell, compiles=False) is None
    free(needed // 2)
    message = f"not run: it needs about {gib(needed)}, and {gib(needed // 2)} may be used"
    assert lack_of_memory(task, cell, compiles=False) == message


def test_nothing_runs_in_a_process_that_compiles(free, monkeypatch):
    monkeypatch.setattr("highway_bench.tasks.predicted_costs.step_bytes", None)
    task = tasks.get("memory")
    closed_form = task.cost(MEMORY).bytes
    free(closed_form)
    assert lack_of_memory(task, MEMORY, compiles=True) is None
    free(closed_form // 4)
    assert "needs" in str(lack_of_memory(task, MEMORY, compiles=True))


def test_on_a_gpu_one_network_of_a_population_decides(free):
    task, one = tasks.get("trainability"), predicted_bytes(TRAINED.but(recipe={}))
    enough = int(1.01 * one / USABLE)  # half of it free, half in the cache of this process
    free(enough)
    assert lack_of_memory(task, TRAINED.but(device="cuda"), compiles=False) is None
    assert lack_of_memory(task, TRAINED, compiles=False) is not None
    free(enough // 2)
    assert lack_of_memory(task, TRAINED.but(device="cuda"), compiles=False) is not None


def test_without_the_gpu_the_measurement_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert lack_of_memory(tasks.get("memory"), MEMORY.but(device="cuda", depth=10**9), compiles=False) is None
