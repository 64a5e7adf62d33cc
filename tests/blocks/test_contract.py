"""The contract, over both registries: a new block or family is tested by being registered.

The first test is what ``highway-bench check`` runs; the second puts a stem and a head on each combination and trains it
on real digits.
"""

import math

import pytest

from highway_bench.block_check import CHECKS, Subject, carries_signal, compiles
from highway_bench.blocks import blocks
from highway_bench.families import families, make_family
from highway_bench.matching import baseline
from highway_bench.tasks import tasks
from tests.cells import on_digits
from tests.combinations import combinations, families_of

STATES_IN_RECURRENT_LAYERS = [("hc-static", "bilstm"), ("dense-average", "bilstm")]


@pytest.mark.parametrize(("block", "family"), combinations("conv"))
def test_keeps_the_contract(block, family):
    """Tracing takes most of the time, so ``highway`` is compiled in every family, and each other block in one. Those
    that are another block from another start are not compiled. The fifty layers of a signal, which is no verdict, are
    built in one family."""
    spec, first = blocks.get(block), families_of(block)[0]
    compiled = (family == first or block == "highway") and not differs_in_start_alone(spec)
    left_out = {*(() if compiled else (compiles,)), *(() if family == first else (carries_signal,))}
    subject = Subject(spec, make_family(family))
    for check in CHECKS:
        if check not in left_out:
            check(subject)


def differs_in_start_alone(spec):
    base = spec.cls.spec
    return spec.starts != base.starts and (spec.equation, spec.extra_flops) == (base.equation, base.extra_flops)


@pytest.mark.parametrize(("block", "family"), [*combinations(), *STATES_IN_RECURRENT_LAYERS])
def test_learns_on_digits_with_a_stem_and_a_head(block, family):
    words = {"optimiser": "adam", "rate": 0.01, "decay": 1.0, "steps": 12, "batch_size": 32}
    work = tasks.get("trainability").prepare(on_digits(block, family, **words))
    work.training.run()
    losses = work.training.history()
    assert len(losses) == 12
    assert all(map(math.isfinite, losses))
    assert sum(losses[-3:]) < sum(losses[:3])


def test_every_entry_says_what_it_is():
    for name in blocks.names():
        spec = blocks.get(name)
        assert all((spec.equation, spec.source, spec.summary, spec.cls.__doc__)), name
        assert spec.name == name
    for name in families.names():
        family = families.get(name)
        assert all((family.transform, family.summary, family.source, family.cls.__doc__)), name


def test_one_block_is_the_baseline():
    assert [name for name in blocks.names() if blocks.get(name).baseline] == [baseline().name] == ["plain"]
