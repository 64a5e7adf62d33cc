"""Which order of connections carries over: pairs that differ in one thing, τ as SciPy has it, and who changes sides."""

import pandas as pd
import pytest

from highway_bench.studies.decide.transfer import transfer

LOSSES = {"plain": 3.0, "pre-norm": 1.0, "residual": 2.0, "highway": 1.5}


def column(losses, words=None, *, depth=10, steps=600, data="digits", optimiser="adamw"):
    """The answers and the finals, three seeds each, of one setting."""
    identity = {
        "kind": "dense",
        "data": data,
        "depth": depth,
        "start": "published",
        "protocol": f"equal params, {steps} steps, {optimiser}",
    }
    answers, finals = [], []
    for name, loss in losses.items():
        word = (words or {}).get(name)
        answers.append(
            identity
            | {"connection": name, "steps": steps, "plain_width": 64, "optimiser": optimiser}
            | {"held_out_word": word, "outcome": "trains"}
        )
        finals += [
            identity | {"connection": name, "seed": seed, "held_out": None if loss is None else loss + 0.001 * seed}
            for seed in range(3)
        ]
    return answers, finals


def transferred(*columns):
    answers, finals = ([row for own in kind for row in own] for kind in zip(*columns, strict=True))
    finals = pd.DataFrame(finals)
    return transfer(pd.DataFrame(answers), finals.assign(held_out=finals["held_out"].astype("float64")))


def test_tau_is_that_of_both_orders_and_those_that_change_sides_are_named():
    swapped = LOSSES | {"residual": 0.9}  # before pre-norm now: 2 of 6 pairs are in another order
    table = transferred(
        column(LOSSES, {"residual": "worse", "highway": "worse"}),
        column(swapped, {"residual": "better", "highway": "worse"}, steps=2400),
    )
    (row,) = table.to_dict("records")
    assert (row["differs"], row["of"], row["to"], row["connections"]) == ("steps", 600, 2400, 4)
    assert row["tau"] == pytest.approx(1 - 2 * 2 / 6)
    assert row["tau_low"] == row["tau_high"] == row["tau"]  # no seed is near another connection's
    assert row["change"] == "residual"


def test_pairs_differ_in_one_thing_and_only_the_ends_of_a_ladder_are_compared():
    by_depth = [column(LOSSES, depth=depth) for depth in (10, 20, 50)]
    table = transferred(*by_depth, column(LOSSES, depth=50, optimiser="sgd"), column(LOSSES, depth=20, data="mnist"))
    found = {(row["differs"], row["of"], row["to"]) for row in table.to_dict("records")}
    assert found == {("depth", 10, 50), ("optimiser", "adamw", "sgd"), ("data", "digits", "mnist")}


def test_a_connection_that_diverged_comes_last():
    table = transferred(column(LOSSES), column(LOSSES | {"pre-norm": None}, depth=20))
    assert table["tau"].item() == pytest.approx(0)  # behind all three others: 3 of 6 pairs


def test_a_connection_of_which_every_tuning_run_diverged_comes_last_too():
    answers, finals = column(LOSSES, depth=20)
    answers[1]["outcome"] = "diverges"  # pre-norm has no finals there
    finals = [one for one in finals if one["connection"] != "pre-norm"]
    table = transferred(column(LOSSES), (answers, finals))
    assert table["tau"].item() == pytest.approx(0)
