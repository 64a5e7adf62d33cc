"""Profiles: what each promises to touch, and that no cell is planned twice."""

from functools import cache, partial
from itertools import product

import pytest
import torch

from highway_bench.blocks import blocks, register_block
from highway_bench.cell import PHASES
from highway_bench.execution.progress import TimeLeft
from highway_bench.families import families, make_family, register_family
from highway_bench.families.attention import Attention
from highway_bench.families.conv import Conv
from highway_bench.families.mlp import Mlp
from highway_bench.families.transformer import Transformer
from highway_bench.plan.estimate import estimate
from highway_bench.plan.expand import joins
from highway_bench.plan.plan import Plan, opened
from highway_bench.plan.profiles import PROFILES, TIMED_AT
from highway_bench.plan.selection import Selection
from highway_bench.plan.settings import FIRST_SGD_RATES, FRESH_SEEDS
from highway_bench.report.choice.answers import known_answers
from highway_bench.studies.decide.part import dense, vision
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
TIMED = ("throughput", "memory", "cost")  # tasks whose widths are those of timed networks


@cache
def plan_of(name):
    return Plan.of(name, Selection(device="cpu"))


def planned(name, task=None, **words):
    """The cells of a profile under a selection, on a CPU unless it says where."""
    return list(Plan.of(name, Selection.of(task, **{"device": "cpu"} | words)).cells)


def combinations(cells, task):
    return {(cell.block, cell.family) for cell in cells if cell.task == task}


@pytest.mark.parametrize("name", PROFILES)
def test_every_cell_has_a_task_that_can_say_how_long(name):
    for cell in plan_of(name).cells:
        task = tasks.get(cell.task)
        assert 0 < task.cost(cell).seconds < task.timeout(cell)
        assert task.cost(cell).bytes > 0 or cell.task == "cost"
        assert make_family(cell.family, **cell.family_options)


@pytest.mark.parametrize("task", TIMED)
def test_speed_and_memory_of_every_combination(task):
    of_known = {(block, family) for block, family in MODERN if family in {one.family for one, _ in TIMED_AT}}
    found = combinations(plan_of("standard").cells, task)
    assert found == COMBINATIONS | (set() if task == "cost" else of_known)
    assert combinations(planned("standard", task, block="*"), task) == COMBINATIONS | MODERN


@pytest.mark.parametrize("name", ["smoke", "standard"])
def test_training_of_every_combination(name):
    found = combinations(plan_of(name).cells, "trainability")
    assert found & COMBINATIONS == COMBINATIONS - {(block, "dense-pair") for block in BLOCKS}
    modern = {(block, family) for block, family in MODERN if family == "transformer"}
    repeated = {(block, family) for block in ("deepnorm", "rezero") for family in ("dense", "bilstm")}
    assert found - COMBINATIONS == (modern if name == "smoke" else repeated)


@pytest.mark.parametrize("name", PROFILES)
def test_a_variant_is_planned_where_it_is_named(name):
    assert "resnet" not in {cell.family for cell in plan_of(name).cells}
    assert {cell.family for cell in planned("smoke", family=("dense", "res*"))} == {"dense"}
    named = planned("smoke", family="resnet")
    assert {cell.family for cell in named} == {"resnet"}
    assert {cell.task for cell in named} >= {"throughput", "memory", "cost", "trainability", "propagation"}


def test_smoke_touches_everything_and_is_small():
    cells = plan_of("smoke").cells
    for task in ("throughput", "memory"):
        assert combinations(cells, task) >= COMBINATIONS
    assert {cell.task for cell in cells} == set(TASKS)
    assert {cell.phase for cell in cells if cell.task == "throughput"} == set(PHASES)
    assert max(cell.depth for cell in cells) == 2
    assert sum(tasks.get(cell.task).cost(cell).seconds for cell in cells) < 600


def test_standard_repeats_trainings_of_decide_and_no_others():
    """Their keys are those of the committed runs, so that the numbers of one torch and processor are the same."""
    repeated = {cell for cell in plan_of("standard").cells if cell.recipe.get("own_rate")}
    known = known_answers()
    finals = set()
    for part in (dense(), vision()):
        for one in part.candidates:
            own = known[known["kind"].eq(one.template.family) & known["connection"].eq(one.template.block)]
            own = own[own["start"].eq(str(one.template.start)) & own["rate"].notna()]
            finals |= {
                one.run(depth, rate, seed)
                for depth, rate in zip(own["depth"].tolist(), own["rate"], strict=True)
                for seed in range(FRESH_SEEDS)
            }
    assert repeated
    assert repeated <= finals
    columns = {(cell.family, cell.depth) for cell in repeated}
    assert len(columns) == 3
    assert repeated == {cell for cell in finals if (cell.family, cell.depth) in columns}
    others = [cell for cell in plan_of("standard").cells if cell.task == "trainability" and cell not in repeated]
    assert {cell.recipe["verdict"] for cell in others} == {False}


def test_standard_fits_about_ten_minutes_by_the_tools_own_estimate():
    with opened(None) as store:
        left = estimate(plan_of("standard").needs, store, workers=2).left
    assert 400 < TimeLeft(left, workers=2).seconds < 1_000


def test_every_connection_is_timed_as_the_known_results_trained():
    listed = {name for name in blocks.names() if blocks.get(name).group in ("core", "modern")}
    timed = [cell for cell in plan_of("standard").cells if cell.task == "throughput" and cell.phase == "train-step"]
    known = known_answers()
    sizes = {(row.kind, row.depth, row.plain_width, row.batch) for row in known.itertuples()}
    for one, depth in TIMED_AT:
        own = [cell for cell in timed if (cell.family, cell.family_options) == (one.family, one.family_options)]
        family = make_family(one.family, **one.family_options)
        assert {cell.block for cell in own} == {name for name in listed if joins(name, family)}
        assert len({tasks.get("throughput").group(cell) for cell in own}) == 1  # in turn
        kind = f"{one.family} causal" if one.family_options else one.family
        assert {(kind, cell.depth, cell.nominal_width, cell.batch_size) for cell in own} == {
            (kind, depth, one.width, one.batch_size)
        }
        assert (kind, depth, one.width, one.batch_size) in sizes


def test_a_block_of_ones_own_is_tuned_in_a_column_that_is_repeated():
    class Halved(blocks.get("residual").cls):
        pass

    register_block("halved", equation="y", source="a test", summary="one start")(Halved)
    try:
        own = planned("standard", "trainability", block="halved", family="dense")
    finally:
        blocks.unregister("halved")
    assert {cell.recipe["rate"] for cell in own} == {"tuned"}
    assert {tuple(cell.recipe["rates"]) for cell in own} == {FIRST_SGD_RATES}
    assert {(cell.depth, cell.seed) for cell in own} == set(product((10, 20), range(FRESH_SEEDS)))


def test_where_nothing_is_known_every_measured_block_is_tuned():
    trained = partial(planned, "standard", "trainability", family="dense")
    for words in ({"depth": [4, 16]}, {"recipe": {"steps": 9}}, {"width": 8}, {"dataset": "digits"}):
        found = trained(**words)
        assert {cell.block for cell in found} == set(BLOCKS)
        assert {cell.recipe["rate"] for cell in found} == {"tuned"}
    found = trained(depth=[4, 16], recipe={"rate": 0.1, "steps": 120})
    assert {(cell.depth, cell.recipe["rate"]) for cell in found} == {(4, 0.1), (16, 0.1)}
    assert {cell.block for cell in trained(block="mhc", depth=4)} == {"mhc"}


def test_the_frontier_climbs_from_rung_to_rung():
    cells = set(plan_of("frontier").cells)
    assert {cell.task for cell in cells} == {"trainability"}
    assert max(cell.depth for cell in cells) == 1000
    assert {cell.recipe["steps"] for cell in cells} == {300, 1_200}
    assert {cell.start for cell in cells} == {"published", "depth-aware"}
    for cell in cells:
        ladder = cell.recipe["ladder"]
        assert cell.depth in ladder["depths"]
        assert cell.seed < ladder["seeds"] == 10
        assert ladder["rates"] == cell.recipe["rates"]
    for deep in (cell for cell in cells if cell.depth == 1000 and cell.seed == 0):
        assert set(tasks.get("trainability").needs(deep)) & cells == {deep.but(depth=500, seed=n) for n in range(10)}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_timed_widths_keep_budgets_equal_within_five_percent(device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: device == "cuda")
    cells = planned("standard", ("throughput", "memory"), block="*", device=device)
    as_trained = {one.width for one, _ in TIMED_AT}  # these widths do not snap; what they leave is in the rows
    for cell in (one for one in cells if one.nominal_width not in as_trained):
        most = 0.05 if cell.block in BLOCKS else 0.1  # no multiple of four heads may be nearer
        assert abs(budget_mismatch(cell).value or 0.0) <= most, cell


def test_heads_of_timed_attention_fit_a_gpus_fused_kernels(monkeypatch):
    """They take heads of a multiple of eight features. Trained and probed networks are as wide as on a CPU, so that
    their results are the same; their times are not compared."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    heads = {
        cell: cell.width / family.heads
        for cell in planned("standard", TIMED, block="*", device="cuda")
        if isinstance(family := make_family(cell.family, **cell.family_options), Attention | Transformer)
    }
    assert {cell.block for cell in heads} >= set(BLOCKS)
    assert {cell.family for cell in heads} == {"attention", "transformer"}
    assert [cell for cell, features in heads.items() if features % 8] == []


def test_standard_times_compiled_steps_next_to_eager_ones_on_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert {cell.mode for cell in plan_of("standard").cells} == {"eager"}
    modes = {}
    for cell in planned("standard", device="cuda"):
        if cell.phase == "forward-backward" and cell.family in ("dense", "transformer"):
            modes.setdefault((cell.block, cell.family), set()).add(cell.mode)
    assert modes == {(block, family): {"eager", "compile", "cudagraph"}
                     for block in BLOCKS for family in ("dense", "transformer")}  # fmt: skip


@pytest.fixture
def throwaways():
    """Families of each kind that nothing but their registration knows of."""
    names = []
    for base in (Mlp, Conv, Attention):
        names.append(f"throwaway-{base.__name__.lower()}")
        cls = type("Throwaway", (base,), {})
        register_family(names[-1], transform="H", summary="of a test", source="these tests")(cls)
    yield names
    for name in names:
        families.unregister(name)


@pytest.mark.parametrize("name", ["smoke", "standard"])
def test_a_family_is_in_the_profiles_by_being_registered(name, throwaways):
    cells = planned(name)
    for family in throwaways:
        own = [cell for cell in cells if cell.family == family]
        assert {cell.task for cell in own} >= {"throughput", "memory", "cost", "trainability", "propagation"}
        for cell in own:
            assert tasks.get(cell.task).cost(cell).seconds > 0
