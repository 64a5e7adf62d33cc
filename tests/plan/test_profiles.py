"""Profiles: what each promises to touch, and that no cell is planned twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from highway_bench.blocks import blocks
from highway_bench.errors import UnknownName
from highway_bench.families import families, make_family, register_family
from highway_bench.families.attention import Attention
from highway_bench.families.conv import Conv
from highway_bench.families.mlp import Mlp
from highway_bench.plan.grids import Planned, Selection, plan
from highway_bench.plan.profiles import PROFILES, SMOKE, get_profile
from highway_bench.results.schema import OUTCOMES
from highway_bench.tasks import tasks
from highway_bench.tasks.from_cell import budget_mismatch

BLOCKS = [name for name in blocks.names() if not blocks.get(name).control]
COMBINATIONS = {(block, family) for block in BLOCKS for family in families.names()}
CPU = Selection(device="cpu")


def combinations(planned: list[Planned], task: str) -> set[tuple[str, str]]:
    return {(item.cell.block, item.cell.family) for item in planned if item.cell.task == task}


@pytest.mark.parametrize("name", PROFILES)
def test_no_cell_twice(name: str) -> None:
    cells = [item.cell for item in plan(name, CPU)]
    assert len(set(cells)) == len(cells)


@pytest.mark.parametrize("name", PROFILES)
def test_every_cell_has_a_task_that_can_say_how_long(name: str) -> None:
    for item in plan(name, CPU):
        task = tasks.get(item.cell.task)
        assert 0 < task.cost(item.cell).seconds < task.timeout(item.cell)
        assert make_family(item.cell.family, **item.cell.family_options)


@pytest.mark.parametrize("name", ["smoke", "standard", "full"])
def test_every_task_measures_something(name: str) -> None:
    planned = plan(name, CPU)
    assert {item.cell.task for item in planned} == set(tasks.names())
    looks = [item.cell for item in planned if item.cell.task == "gates"]
    assert {cell.block for cell in looks} == set(BLOCKS)
    assert len(looks) == len(BLOCKS)


@pytest.mark.parametrize("name", ["standard", "full"])
@pytest.mark.parametrize("task", ["throughput", "memory", "cost"])
def test_speed_and_memory_of_every_combination(name: str, task: str) -> None:
    assert combinations(plan(name, CPU), task) == COMBINATIONS


@pytest.mark.parametrize("name", ["smoke", "standard", "full"])
def test_training_of_every_combination(name: str) -> None:
    assert combinations(plan(name, CPU), "trainability") == COMBINATIONS - (
        {(block, "dense-pair") for block in BLOCKS} if name == "smoke" else set()
    )


def test_smoke_touches_everything_and_is_small() -> None:
    planned = plan("smoke", CPU)
    for task in ("throughput", "memory"):
        assert combinations(planned, task) == COMBINATIONS
    assert {item.cell.task for item in planned} == set(tasks.names())
    assert {item.cell.phase for item in planned if item.cell.task == "throughput"} == {
        "forward",
        "forward-backward",
        "train-step",
    }
    assert max(item.cell.depth for item in planned) == 2
    assert sum(tasks.get(item.cell.task).cost(item.cell).seconds for item in planned) < 600


def test_the_standard_ladder() -> None:
    ladder = [
        item
        for item in plan("standard", CPU)
        if item.cell.task == "trainability" and item.cell.family == "dense" and not item.cell.family_options
    ]
    assert {item.cell.depth for item in ladder} == {10, 20, 50, 100}
    assert {item.cell.seed for item in ladder} == set(range(5))
    assert {item.cell.dataset for item in ladder} == {"mnist-5k"}
    assert {item.cell.recipe["rate"] for item in ladder} == {"tuned"}
    assert {item.cell.nominal_width for item in ladder} == {71}
    assert {item.cell.width for item in ladder if item.cell.block == "highway"} == {50}
    assert all(item.statuses == OUTCOMES for item in ladder)
    assert len(ladder) == 4 * 5 * len(BLOCKS)


def test_the_frontier_climbs_from_rung_to_rung() -> None:
    planned = plan("frontier", CPU)
    assert {item.cell.task for item in planned} == {"trainability"}
    assert max(item.cell.depth for item in planned) == 1000
    assert {item.cell.recipe["steps"] for item in planned} == {300, 1_200}
    assert {item.cell.family_options.get("init", "default") for item in planned} == {
        "default",
        "scaled-branch",
        "orthogonal",
    }
    for item in planned:
        ladder = item.cell.recipe["ladder"]
        assert item.cell.depth in ladder["depths"]
        assert item.cell.seed < ladder["seeds"] == 10
        assert ladder["rates"] == item.cell.recipe["rates"]
    cells = {item.cell for item in planned}
    for deep in (cell for cell in cells if cell.depth == 1000 and cell.seed == 0):
        assert set(tasks.get("trainability").needs(deep)) & cells == {deep.but(depth=500, seed=n) for n in range(10)}


def test_residual_stands_beside_itself_with_a_start_that_bounds_its_stream() -> None:
    """x + relu(Wx + b) multiplies its stream every layer under the default init: a verdict may be the init's."""
    control = [
        item.cell for item in plan("standard", CPU) if item.cell.family_options and item.cell.task == "trainability"
    ]
    assert {(cell.task, cell.block, cell.family, cell.family_options["init"]) for cell in control} == {
        ("trainability", "residual", "dense", "scaled-branch")
    }
    assert {cell.depth for cell in control} == {10, 20, 50, 100}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["standard", "full"])
def test_timed_widths_keep_budgets_equal_within_five_percent(
    name: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: device == "cuda")
    cells = [item.cell for item in plan(name, Selection(device=device)) if item.cell.task in ("throughput", "memory")]
    assert cells
    for cell in cells:
        assert abs(budget_mismatch(cell).value or 0.0) <= 0.05, cell


def test_short_curves_claim_no_verdict() -> None:
    curves = [
        item.cell
        for item in plan("standard", CPU)
        if item.cell.task == "trainability" and not item.cell.family.startswith("dense")
    ]
    assert curves
    assert {cell.recipe["verdict"] for cell in curves} == {False}


def test_full_holds_ten_seeds_and_every_mode_that_a_cpu_has() -> None:
    planned = plan("full", CPU)
    assert {item.cell.seed for item in planned if item.cell.recipe.get("rate") == "tuned"} == set(range(10))
    assert {item.cell.mode for item in planned} >= {"eager", "compile"}


def test_a_gpu_gets_wider_layers() -> None:
    (timing,) = [grid for grid in SMOKE.grids if grid.phases == ("forward-backward", "train-step")]
    assert timing.sizes("cuda").widths["vector"] > timing.sizes("cpu").widths["vector"]
    assert timing.sizes("cuda").snap == 64


def test_profiles_by_name() -> None:
    assert list(PROFILES) == ["smoke", "standard", "full", "frontier"]
    assert all(profile.summary and profile.name == name for name, profile in PROFILES.items())
    with pytest.raises(UnknownName, match="unknown profile 'standart'; did you mean standard"):
        get_profile("standart")


@pytest.fixture(params=[(Mlp, False), (Conv, True), (Attention, False)])
def throwaway(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a family that nothing but its registration knows of."""
    base, is_deep = request.param
    cls = type("Throwaway", (base,), {"deep": is_deep})
    register_family("throwaway", transform="H", summary="of a test", source="these tests")(cls)
    yield "throwaway"
    families.unregister("throwaway")


@pytest.mark.parametrize("name", ["smoke", "standard", "full"])
def test_a_family_is_in_the_profiles_by_being_registered(name: str, throwaway: str) -> None:
    own = [item.cell for item in plan(name, CPU) if item.cell.family == throwaway]
    assert {cell.task for cell in own} >= {"throughput", "memory", "cost", "trainability", "propagation"}
    ladders = {cell.depth for cell in own if cell.recipe.get("rate") == "tuned"}
    if name == "standard":
        assert bool(ladders) == families.get(throwaway).deep
    for cell in own:
        assert tasks.get(cell.task).cost(cell).seconds > 0
