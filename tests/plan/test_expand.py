"""Plans: what a selection makes of a profile, and what cannot be asked for."""

from collections import Counter
from dataclasses import replace
from itertools import product
from operator import attrgetter

import pytest

from highway_bench.blocks import blocks, register_block
from highway_bench.errors import BadInput, NothingMeasured, UnknownName
from highway_bench.execution.schedule import with_needs
from highway_bench.families import make_family
from highway_bench.matching import matched_width
from highway_bench.plan import checks, expand
from highway_bench.plan.expand import joins
from highway_bench.plan.grid import SGD_RATES, Grid, Sizes, skipping_ladder
from highway_bench.plan.plan import Plan
from highway_bench.plan.profiles import PROFILES, Profile
from highway_bench.plan.selection import Selection
from highway_bench.plan.settings import FIRST_SGD_RATES
from highway_bench.provenance.free_memory import Gpu
from highway_bench.tasks import tasks
from highway_bench.tasks.training_cells import SEARCH_SEED
from tests.combinations import TASKS

SIZES = Sizes({"vector": 16, "image": 8, "sequence": 8}, {"vector": 4, "image": 2, "sequence": 3})
RECIPE = {"rate": 0.1, "steps": 3}
UNASKED = {name for name in blocks if blocks.get(name).group in ("core", "own")}  # where no block is named
TINY = Profile(
    "tiny",
    "one grid a task",
    (
        Grid(task="throughput", on_cpu=SIZES, phases=("forward",), depths=(2, 3), recipe={"samples": 3}),
        Grid(task="memory", on_cpu=SIZES, phases=("train-step",), families=("dense*", "attention")),
        Grid(task="trainability", on_cpu=SIZES, families=("dense",), dataset="digits", recipe=RECIPE, seeds=(0, 1)),
    ),
)


def cells(profile=TINY, **selection):
    return list(Plan.of(profile, Selection.of(selection.pop("task", None), **{"device": "cpu", **selection})).cells)


def values(found, *fields):
    return set(map(attrgetter(*fields), found))


def profile_of(*grids):
    return Profile("of-a-test", "", grids)


def test_a_profile_as_it_is():
    found = cells()
    counts = Counter(cell.task for cell in found)
    times = {"throughput": 16, "memory": 3, "trainability": 2}
    assert counts == {name: count * len(UNASKED) for name, count in times.items()}
    assert values(found, "device", "dtype") == {("cpu", "float32")}


def test_tasks_blocks_and_families_are_chosen_by_wildcard():
    found = cells(task=["mem*"], block=["highway*", "plain"], family=["dense*"])
    named = product(["memory"], ["plain", "highway", "highway-free"], ["dense", "dense-pair"])
    assert values(found, "task", "block", "family") == set(named)


def test_a_block_that_needs_attention_is_planned_where_there_is_some():
    for named in ("value-residual", "*"):
        found = cells("standard", task=["memory"], block=[named], family=["dense", "transformer"])
        assert values([cell for cell in found if cell.block == "value-residual"], "family") == {"transformer"}


def test_a_control_is_measured_where_it_is_asked_for_by_name():
    assert values(cells(task=["memory"], block=["s*", "residual"]), "block") == {"residual", "sandwich-norm"}
    found = cells(task=["memory"], block=["scaled", "plain"], block_options={"skip": 0.5})
    assert {(cell.block, cell.block_options.get("skip")) for cell in found} == {("plain", None), ("scaled", 0.5)}
    named = Grid(task="memory", on_cpu=SIZES, families=("dense",), blocks=("shortcut-gate",))
    assert values(cells(profile_of(named)), "block") == {"shortcut-gate"}


def test_the_baseline_comes_first():
    assert cells(task=["memory"], family=["dense"])[0].block == "plain"
    named = cells(task=["memory"], family=["dense"], block=["residual", "plain"])
    assert [cell.block for cell in named] == ["plain", "residual"]


def test_widths_are_matched_to_plains():
    def widths(**selection):
        found = cells(task=["trainability"], width=[71], **selection)
        assert values(found, "nominal_width", "match") == {(71, selection.get("match", "params"))}
        return {cell.block: cell.width for cell in found}

    assert widths().items() >= {"plain": 71, "highway": 50, "residual": 71}.items()
    assert set(widths(match="width").values()) == {71}
    assert widths(match="flops").items() >= {"plain": 71, "post-norm": 71, "highway": 50}.items()


def test_every_task_says_which_words_its_cells_have():
    """A word that a cell has is never ignored, and one that it has no use for is never put into it."""
    asked = {
        "phase": ("phase", ["train-step"], "train-step"),
        "mode": ("mode", ["compile"], "compile"),
        "start": ("start", ["published"], "published"),
        "seed": ("seed", [5], 5),
        "dataset": ("dataset", "mnist-5k", "mnist-5k"),
    }
    assert {name: set(tasks.get(name).coordinates) for name in TASKS} == {
        "throughput": {"phase", "mode"},
        "memory": {"phase", "mode"},
        "trainability": {"start", "seed", "dataset"},
        "gates": {"start", "seed", "dataset"},
        "propagation": {"start", "seed", "dataset"},
        "cost": set(),
    }
    for name in TASKS:
        profile = profile_of(Grid(task=name, on_cpu=SIZES, families=("dense",), blocks=("plain",)))
        for field, (word, value, held) in asked.items():
            (cell,) = cells(profile, **{word: value})
            assert (getattr(cell, field) == held) == (field in tasks.get(name).coordinates), (name, word)


def test_a_ladder_has_the_rungs_that_were_asked_for():
    climbs = profile_of(skipping_ladder(families=("dense",), blocks=("plain",), depths=(10, 20, 50), seeds=3))

    def needed(**selection):
        return values(with_needs(cells(climbs, **selection)), "depth", "seed", "trial")

    assert {depth for depth, _, _ in needed()} == {10, 20, 50}
    narrow = needed(depth=[20], seed=[1], recipe={"rates": [0.3, 0.1]})
    assert narrow == {(20, 1, None), (20, SEARCH_SEED, 0), (20, SEARCH_SEED, 1)}
    assert needed(depth=[10, 20], seed=[1], recipe={"rate": 0.1}) == {(10, 1, None), (20, 1, None)}


def test_a_word_of_the_recipe_reaches_the_cells_that_have_it():
    """A longer sampling is a matter of throughput alone, more steps one of what trains."""
    as_they_are = cells("smoke")
    for word, value, having in (
        ("seconds", 7.0, {"throughput"}),
        ("gain", 0.7, {"propagation"}),
        ("steps", 7, {"trainability", "gates", "propagation"}),
    ):
        changed = cells("smoke", recipe={word: value})
        reached = {one for one in changed if one.recipe.get(word) == value}
        assert values(reached, "task") == having
        for before, after in zip(as_they_are, changed, strict=True):
            assert after.recipe == {**before.recipe, **({word: value} if after in reached else {})}


def trained(profile="standard", **words):
    """How the networks of a plan train: data, optimiser, rate and rates."""
    found = [cell for cell in cells(profile, **words) if "optimiser" in cell.recipe]
    recipes = [(cell.dataset, *(cell.recipe.get(word) for word in ("optimiser", "rate", "rates"))) for cell in found]
    return {(*rest, tuple(rates or ())) for *rest, rates in recipes}


def test_a_rate_belongs_to_its_optimiser():
    gates = {"task": ["gates"], "family": ["dense"]}
    assert trained(**gates) == {("digits", "adam", 0.003, ())}
    assert trained(**gates, recipe={"optimiser": "adam"}) == {("digits", "adam", 0.003, ())}
    assert trained(**gates, recipe={"optimiser": "sgd"}) == {("digits", "sgd", "tuned", SGD_RATES)}
    assert trained(**gates, recipe={"optimiser": "sgd", "rate": 0.1}) == {("digits", "sgd", 0.1, ())}
    assert trained(**gates, recipe={"rates": [0.1, 0.01]}) == {("digits", "adam", "tuned", (0.1, 0.01))}
    with pytest.raises(BadInput, match="learning rate"):
        cells("smoke", task=["propagation"], recipe={"optimiser": "adam"})


def test_a_call_with_a_rate_and_a_layer_of_ones_own_have_one_recipe(layer):
    own = {"task": ["trainability"], "family": [layer]}
    assert trained(**own) == {("mnist-5k", "sgd", "tuned", FIRST_SGD_RATES)}
    assert trained(**own, recipe={"rate": 0.1, "steps": 9}) == {("mnist-5k", "sgd", 0.1, FIRST_SGD_RATES)}
    recurrent = {"profile": "smoke", "task": ["trainability"], "family": ["bilstm"]}
    assert {data for data, *_ in trained(**recurrent)} == {"digits", "adding"}
    assert {data for data, *_ in trained(**recurrent, recipe={"rate": 0.1})} == {"digits"}


def test_steps_do_not_make_an_untrained_start_train():
    for dataset in (None, "digits"):
        starts = [cell for cell in cells("smoke", task=["propagation"], dataset=dataset) if "steps" not in cell.recipe]
        changed = cells("smoke", task=["propagation"], dataset=dataset, recipe={"steps": 3, "rate": 0.7})
        assert starts
        assert set(starts) < set(changed)
        assert {cell.recipe["steps"] for cell in set(changed) - set(starts)} == {3}


@pytest.mark.parametrize("profile", PROFILES)
def test_profiles_use_words_that_their_tasks_declare(profile):
    for grid in PROFILES[profile].grids:
        words = tasks.get(grid.task).words_for(grid.recipe, grid.dataset)
        assert grid.recipe.keys() <= words.keys()
        for name, value in grid.recipe.items():
            words[name].check(name, value)


@pytest.mark.parametrize(
    ("task", "recipe", "says"),
    [
        ("memory", {"steps": 3}, "steps"),
        ("throughput", {"second": 3}, "did you mean seconds"),
        ("*", {"stepz": 3}, "did you mean steps"),
    ],
)
def test_a_word_that_no_chosen_task_has(task, recipe, says):
    with pytest.raises(BadInput, match=says):
        cells("smoke", task=[task], recipe=recipe)


def test_threads_are_for_what_runs_alone(monkeypatch):
    monkeypatch.setattr(expand, "cores", lambda: 6)
    for threads, of_grid, timed in ((4, 1, 4), (None, 1, 1), (None, None, 6)):
        profile = profile_of(Grid(task="throughput", threads=of_grid), Grid(task="memory", threads=of_grid))
        chosen = cells(profile, threads=threads, block="plain", family="dense", device=None)
        assert [(cell.task, cell.threads) for cell in chosen] == [("throughput", timed), ("memory", 1)]


def test_repeated_values_give_a_cell_once():
    assert len(cells(task=["memory"], depth=[2, 2], family=["dense", "dense"], block=["plain", "plain"])) == 1


LAYER = "from torch import nn\ndef make_layer(width):\n    return nn.Sequential(nn.Linear(width, width), nn.Tanh())\n"


@pytest.fixture
def layer(module_of):
    return f"{module_of(LAYER)}:make_layer"


KINDS = """
import torch
def vector(width):
    return nn.Sequential(nn.Flatten(), nn.Linear(width, width))
def image(width):
    return nn.Conv2d(width, width, 3, padding=1)
class Lstm(nn.LSTM):
    def forward(self, x):
        return super().forward(x)[0]
def sequence(width):
    return Lstm(width, width, batch_first=True)
"""


MIXER = """
from torch import nn
class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.map = nn.Linear(6, 6)
    def forward(self, x):
        return self.map(x.transpose(1, 2)).transpose(1, 2)
"""


def test_a_layer_of_one_length_is_measured_at_that(module_of):
    name = f"{module_of(MIXER)}:Mixer"
    assert make_family(name).example_positions() == (6,)
    plan = Plan.of("standard", Selection.of("throughput", family=name))
    assert values(plan.cells, "seq_len") == {None, 6}
    assert any("14 steps, and is measured at 6" in remark for remark in plan.remarks)
    assert values(cells("standard", task=["throughput"], family=[name], seq_len=[8]), "seq_len") == {8}  # as asked


def test_fewer_steps_have_a_shorter_warm_up():
    found = cells("standard", task=["trainability"], family=["bilstm"], recipe={"steps": 20})
    assert {cell.recipe.get("warm_up", 2) for cell in found} == {2}


OF_ALL_FAMILIES = ("smoke", "standard")


@pytest.mark.parametrize("kind", ["vector", "image", "sequence"])
@pytest.mark.parametrize("profile", OF_ALL_FAMILIES)
def test_a_layer_of_each_kind_takes_part_in_its_kinds_grids(profile, kind, module_of):
    """A profile's controls are of named families, and a layer gets no ladder that is made for another kind."""
    name = f"{module_of(LAYER + KINDS)}:{kind}"
    found = cells(profile, family=[name])
    takes_part = set(TASKS) - ({"gates"} if kind != "vector" and profile == "smoke" else set())
    assert values(found, "task", "family") == {(task, name) for task in takes_part}
    trained = [cell for cell in found if cell.task == "trainability"]
    layer = make_family(name)
    modern = {name for name in blocks if blocks.get(name).group == "modern" and joins(name, layer)}
    assert values(trained, "block") == UNASKED | (modern if (profile, kind) == ("smoke", "sequence") else set())
    tuned = values([cell for cell in trained if cell.recipe["rate"] == "tuned"], "depth")
    rungs = {"vector": {10, 20}}.get(kind, {5}) if profile == "standard" else {2} if kind == "vector" else set()
    assert tuned == rungs


WORDS = {
    "a length": ({"seq_len": [16], "family": ["attention"]}, "seq_len", {16, None}),
    "a length of data": ({"seq_len": [24], "dataset": "adding", "family": ["bilstm"]}, "seq_len", {24}),
    "bfloat16": ({"dtype": ["bfloat16"]}, "dtype", {"bfloat16"}),
    "a gate's bias": ({"block_options": {"gate_bias": -2}}, "block_options", [{}, {"gate_bias": -2}]),
    "a carry's bias": (
        {"block_options": {"gate_bias": -2, "carry_bias": 1}, "block": ["highway*", "plain"]},
        "block_options",
        [{}, {"gate_bias": -2}, {"gate_bias": -2, "carry_bias": 1}],
    ),
    "a kernel": (
        {"family_options": {"kernel": 5, "norm_kind": "batch"}, "family": ["conv*", "mlp"]},
        "family_options",
        [{}, {"kernel": 5, "norm_kind": "batch"}],
    ),
    "an init": (
        {"family_options": {"init": "small"}, "family": ["mlp", "bilstm"]},
        "family_options",
        [{}, {"init": "small"}],
    ),
}


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("profile", OF_ALL_FAMILIES)
def test_words_apply_where_they_mean_something(profile, words):
    selection, field, expected = WORDS[words]
    found = [getattr(cell, field) for cell in cells(profile, **selection)]
    assert all(value in expected for value in found)
    assert all(value in found for value in expected)


def test_flops_are_matched_at_the_steps_of_the_data():
    """Attention's cost does not grow with the steps as a gate's does, so the width hangs on them."""
    grid = Grid(task="trainability", families=("attention",), dataset="digits", recipe=RECIPE)
    (one,) = cells(profile_of(grid), block=["highway"], width=[64], match="flops")
    attention, highway = make_family("attention"), blocks.get("highway")
    assert one.width == matched_width(highway, attention, 64, "flops", positions=8)
    assert one.width != matched_width(highway, attention, 64, "flops", positions=1_000)


def test_a_family_object_that_a_worker_can_make_again(layer):
    made = make_family(layer, kind="sequence")
    (one,) = cells(task=["memory"], block=["plain"], family=[made])
    assert make_family(one.family, **one.family_options) == made
    assert one.batch_size == 3  # a sequence's
    options = make_family("attention", heads=2)
    (other,) = cells(task=["memory"], block=["plain"], family=[options])
    assert (other.family, other.family_options) == ("attention", {"heads": 2})


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        ({"task": ["memry"]}, "did you mean memory"),
        ({"dataset": "digit"}, "did you mean digits"),
        ({"mode": ["compiled"]}, "did you mean compile"),
        ({"match": "param"}, "did you mean params"),
        ({"block": ["zzz*"]}, "known: "),
    ],
)
def test_unknown_names_list_near_ones(selection, says):
    with pytest.raises(UnknownName, match=says):
        cells(**selection)


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        ({"depth": [4, -1]}, "depth"),
        ({"batch_size": 0}, "batch size"),
        ({"family": ["attention"], "width": [18]}, "4 divides"),
        ({"family": ["attention"], "family_options": {"heads": 3}}, "3 divides"),
        ({"dtype": ["float8"]}, "float8"),
        ({"device": "tpu"}, "tpu"),
        ({"block_options": {"gate_bias": "x"}}, "'x'"),
        ({"family_options": {"kernel": 5}, "family": ["dense"]}, "kernel"),
    ],
)
def test_what_cannot_be(selection, says):
    with pytest.raises(BadInput, match=says) as caught:
        cells(**selection)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2


def test_a_selection_that_leaves_nothing():
    with pytest.raises(NothingMeasured, match="tiny"):
        cells(task=["memory"], family=["conv"])


def test_a_pair_that_makes_no_sense_stays_in_the_plan():
    """Its row says skipped, and why: never a hole."""
    assert values(cells(task=["trainability"], dataset="adding"), "dataset", "family") == {("adding", "dense")}


def test_a_gpu_has_further_modes_unless_some_are_asked_for(monkeypatch):
    grid = Grid(task="throughput", on_cpu=SIZES, modes=("eager", "compile"), gpu_modes=("cudagraph",))

    def modes(**selection):
        return {cell.mode for cell in expand.expand(grid, Selection.of(None, **selection))}

    assert modes(device="cpu") == {"eager", "compile"}
    assert modes(device="cuda") == {"eager", "compile", "cudagraph"}
    assert modes(device="cuda", mode="compile") == {"compile"}
    assert modes(device="cpu", mode="cudagraph") == {"cudagraph"}


def test_tf32_is_for_gpus_that_have_it(monkeypatch):
    with pytest.raises(BadInput, match="tf32"):
        cells(dtype="tf32")
    monkeypatch.setattr(checks, "check_device", lambda _: None)
    gpu = Gpu("a GPU", 2**30, 2**30, bfloat16=True, tf32=True)
    monkeypatch.setattr(checks, "gpu", lambda _: gpu)
    assert values(cells(dtype="tf32", device="cuda"), "dtype") == {"tf32"}
    monkeypatch.setattr(checks, "gpu", lambda _: replace(gpu, tf32=False))
    with pytest.raises(BadInput, match="tf32"):
        cells(dtype="tf32", device="cuda")


def test_a_block_without_a_depth_aware_start_meets_the_others_published_ones():
    class Halved(blocks.get("residual").cls):
        pass

    register_block("halved", equation="y", source="a test", summary="one start")(Halved)
    try:
        words = {"task": ["trainability"], "family": ["conv"]}
        plan = Plan.of("standard", Selection.of(**words))
    finally:
        blocks.unregister("halved")
    starts = values(plan.cells, "block", "start")
    assert {start for block, start in starts if block == "halved"} == {"published"}
    assert {start for block, start in starts if block == "residual"} == {"published", "depth-aware"}
    assert "halved" in plan.remarks[0]
    assert {cell.start for cell in cells("standard", **words) if cell.block == "residual"} == {"depth-aware"}
