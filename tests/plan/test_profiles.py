"""Profiles: what each promises to touch, and that no cell is planned twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import pytest
import torch

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.errors import UnknownName
from highway_bench.families import families, make_family, register_family
from highway_bench.families.attention import Attention
from highway_bench.families.conv import Conv
from highway_bench.families.mlp import Mlp
from highway_bench.families.transformer import Transformer
from highway_bench.plan.expand import joins
from highway_bench.plan.plan import Plan
from highway_bench.plan.profiles import PROFILES, SMOKE, get_profile
from highway_bench.plan.selection import Selection
from highway_bench.results.schema import OUTCOMES
from highway_bench.success.ladder import FULL_SEEDS
from highway_bench.tasks import tasks
from highway_bench.tasks.from_cell import budget_mismatch
from tests.combinations import TASKS

BLOCKS = [name for name in blocks.names() if blocks.get(name).group in ("core", "own")]
FAMILIES = [name for name in families.names() if families.get(name).group == "core"]
COMBINATIONS = {(block, family) for block in BLOCKS for family in FAMILIES}
MODERN = {
    (name, family)
    for name in blocks.names()
    if blocks.get(name).group == "modern"
    for family in FAMILIES
    if joins(name, make_family(family))
}
CPU = Selection(device="cpu")
TIMED = ("throughput", "memory", "cost")  # tasks whose widths are those of timed networks


@cache
def plan_of(name: str) -> Plan:
    return Plan.of(name, CPU)


def combinations(planned: tuple[Cell, ...], task: str) -> set[tuple[str, str]]:
    return {(cell.block, cell.family) for cell in planned if cell.task == task}


@pytest.mark.parametrize("name", PROFILES)
def test_no_cell_twice(name: str) -> None:
    cells = plan_of(name).cells
    assert len(set(cells)) == len(cells)


@pytest.mark.parametrize("name", PROFILES)
def test_every_cell_has_a_task_that_can_say_how_long(name: str) -> None:
    for cell in plan_of(name).cells:
        task = tasks.get(cell.task)
        assert 0 < task.cost(cell).seconds < task.timeout(cell)
        assert make_family(cell.family, **cell.family_options)


@pytest.mark.parametrize("name", ["smoke", "standard"])
def test_every_task_measures_something(name: str) -> None:
    planned = plan_of(name).cells
    assert {cell.task for cell in planned} == set(TASKS)
    looks = [cell for cell in planned if cell.task == "gates"]
    assert {cell.block for cell in looks} == set(BLOCKS)
    assert len(looks) == len(BLOCKS)


@pytest.mark.parametrize("task", TIMED)
def test_speed_and_memory_of_every_combination(task: str) -> None:
    assert combinations(plan_of("standard").cells, task) == COMBINATIONS
    assert combinations(Plan.of("standard", Selection.of(task, block="*", device="cpu")).cells, task) == (
        COMBINATIONS | MODERN
    )


@pytest.mark.parametrize("name", ["smoke", "standard"])
def test_training_of_every_combination(name: str) -> None:
    found = combinations(plan_of(name).cells, "trainability")
    assert found & COMBINATIONS == COMBINATIONS - (
        {(block, "dense-pair") for block in BLOCKS} if name == "smoke" else set()
    )
    modern = {(block, family) for block, family in MODERN if family == "transformer"}
    assert found - COMBINATIONS == (modern if name == "smoke" else set())


@pytest.mark.parametrize("name", PROFILES)
def test_a_variant_is_planned_where_it_is_named(name: str) -> None:
    assert "resnet" not in {cell.family for cell in plan_of(name).cells}
    some = Plan.of("smoke", Selection(device="cpu", family=("dense", "res*"))).cells
    assert {cell.family for cell in some} == {"dense"}
    named = Plan.of("smoke", Selection(device="cpu", family=("resnet",))).cells
    assert {cell.family for cell in named} == {"resnet"}
    assert {cell.task for cell in named} >= {"throughput", "memory", "cost", "trainability", "propagation"}


def test_standard_has_one_start_for_all() -> None:
    cells = [cell for cell in plan_of("standard").cells if "start" in tasks.get(cell.task).coordinates]
    assert {cell.start for cell in cells if not cell.family_options} == {"depth-aware"}


def test_smoke_touches_everything_and_is_small() -> None:
    planned = plan_of("smoke").cells
    for task in ("throughput", "memory"):
        assert combinations(planned, task) >= COMBINATIONS
    assert {cell.task for cell in planned} == set(TASKS)
    assert {cell.phase for cell in planned if cell.task == "throughput"} == {
        "forward",
        "forward-backward",
        "train-step",
    }
    assert max(cell.depth for cell in planned) == 2
    assert sum(tasks.get(cell.task).cost(cell).seconds for cell in planned) < 600


def test_the_standard_ladder() -> None:
    plan = plan_of("standard")
    ladder = [
        cell
        for cell in plan.cells
        if cell.task == "trainability" and cell.family == "dense" and not cell.family_options
    ]
    assert {cell.depth for cell in ladder} == {10, 50, 100}
    assert {cell.seed for cell in ladder} == set(range(FULL_SEEDS))
    assert {cell.dataset for cell in ladder} == {"mnist-5k"}
    assert {cell.recipe["rate"] for cell in ladder} == {"tuned"}
    assert {cell.nominal_width for cell in ladder} == {71}
    assert {cell.width for cell in ladder if cell.block == "highway"} == {50}
    assert all(plan.expected[cell] == OUTCOMES for cell in ladder)
    assert len(ladder) == 3 * FULL_SEEDS * len(BLOCKS)


def test_the_frontier_climbs_from_rung_to_rung() -> None:
    planned = plan_of("frontier").cells
    assert {cell.task for cell in planned} == {"trainability"}
    assert max(cell.depth for cell in planned) == 1000
    assert {cell.recipe["steps"] for cell in planned} == {300, 1_200}
    assert {cell.start for cell in planned} == {"published", "depth-aware"}
    for cell in planned:
        ladder = cell.recipe["ladder"]
        assert cell.depth in ladder["depths"]
        assert cell.seed < ladder["seeds"] == 10
        assert ladder["rates"] == cell.recipe["rates"]
    cells = set(planned)
    for deep in (cell for cell in cells if cell.depth == 1000 and cell.seed == 0):
        assert set(tasks.get("trainability").needs(deep)) & cells == {deep.but(depth=500, seed=n) for n in range(10)}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_timed_widths_keep_budgets_equal_within_five_percent(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: device == "cuda")
    cells = Plan.of("standard", Selection.of(("throughput", "memory"), block="*", device=device)).cells
    for cell in cells:
        most = 0.05 if cell.block in BLOCKS else 0.1  # no multiple of four heads may be nearer
        assert abs(budget_mismatch(cell).value or 0.0) <= most, cell


def test_heads_of_timed_attention_fit_a_gpus_fused_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take heads of a multiple of eight features. Trained and probed networks are as wide as on a CPU, so that
    their results are the same; their times are not compared."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    heads = {
        cell: cell.width / family.heads
        for cell in Plan.of("standard", Selection.of(TIMED, block="*", device="cuda")).cells
        if isinstance(family := make_family(cell.family, **cell.family_options), Attention | Transformer)
    }
    assert {cell.block for cell in heads} >= set(BLOCKS)
    assert {cell.family for cell in heads} == {"attention", "transformer"}
    assert [cell for cell, features in heads.items() if features % 8] == []


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_standard_times_compiled_steps_next_to_eager_ones(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: device == "cuda")
    modes: dict[tuple[str, str, int], set[str]] = {}
    for cell in Plan.of("standard", Selection(device=device)).cells:
        if cell.task == "throughput" and cell.threads == 1:
            modes.setdefault((cell.block, cell.family, cell.depth), set()).add(cell.mode)
    side_by_side = {(block, family, 4) for block in BLOCKS for family in ("dense", "transformer")}
    assert {where for where, found in modes.items() if found != {"eager"}} == side_by_side
    expected = {"eager", "compile", "cudagraph"} if device == "cuda" else {"eager", "compile"}
    assert {frozenset(modes[where]) for where in side_by_side} == {frozenset(expected)}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_several_threads_are_timed_on_a_cpu_alone(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: device == "cuda")
    monkeypatch.setattr("highway_bench.plan.expand.cores", lambda: 2)
    cells = Plan.of("standard", Selection(device=device)).cells
    assert {cell.threads for cell in cells if cell.task == "throughput"} == ({1, 2} if device == "cpu" else {1})


def test_short_curves_claim_no_verdict() -> None:
    curves = [
        cell
        for cell in plan_of("standard").cells
        if cell.task == "trainability" and not cell.family.startswith("dense")
    ]
    assert curves
    assert {cell.recipe["verdict"] for cell in curves} == {False}


def test_a_gpu_gets_wider_layers() -> None:
    (timing,) = [grid for grid in SMOKE.grids if grid.phases == ("forward-backward", "train-step")]
    assert timing.sizes("cuda").widths["vector"] > timing.sizes("cpu").widths["vector"]
    assert timing.sizes("cuda").snap == 64


def test_profiles_by_name() -> None:
    assert list(PROFILES) == ["smoke", "standard", "frontier"]
    assert all(profile.summary and profile.name == name for name, profile in PROFILES.items())
    with pytest.raises(UnknownName, match="unknown profile 'standart'; did you mean standard"):
        get_profile("standart")


@pytest.fixture
def throwaways() -> Iterator[Mapping[str, bool]]:
    """Families of each kind that nothing but their registration knows of, by name: whether they are deep."""
    deep = {}
    for base, is_deep in ((Mlp, False), (Conv, True), (Attention, False)):
        name = f"throwaway-{base.__name__.lower()}"
        cls = type("Throwaway", (base,), {"deep": is_deep})
        register_family(name, transform="H", summary="of a test", source="these tests")(cls)
        deep[name] = is_deep
    yield deep
    for name in deep:
        families.unregister(name)


@pytest.mark.parametrize("name", ["smoke", "standard"])
def test_a_family_is_in_the_profiles_by_being_registered(name: str, throwaways: Mapping[str, bool]) -> None:
    cells = Plan.of(name, CPU).cells
    for family, deep in throwaways.items():
        own = [cell for cell in cells if cell.family == family]
        assert {cell.task for cell in own} >= {"throughput", "memory", "cost", "trainability", "propagation"}
        ladders = {cell.depth for cell in own if cell.recipe.get("rate") == "tuned"}
        if name == "standard":
            assert bool(ladders) == families.get(family).deep == deep
        for cell in own:
            assert tasks.get(cell.task).cost(cell).seconds > 0
