"""The lecture's own code in Keras: does it reach the log that it printed, and is it the network that we train?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.reproduce._printed_log import KERAS, KERAS_EPOCHS, epochs_table, losses_claims
from highway_bench.reproduce.base import Conclusion, Reproduction, register_reproduction
from highway_bench.reproduce.claims import Claim, Evidence, Observation, RuleVersion
from highway_bench.reproduce.lecture import ADAM, BATCH, DEPTH, WIDTH
from highway_bench.reproduce.quantities import Quantity, Region, Statistic
from highway_bench.reproduce.request import Request

SEEDS = 6
COMPARED_STEPS = 20
# Version 1 compared Keras's loss, which clips probabilities at 1e-7, with ours, which does not. They were equal at seed
# 10. At seed 16, probabilities came within 1e-7 of 1 in step 4, and in 20 steps the losses came to differ by 1.3 %
SAME = RuleVersion(2, "2026-11-25", seen=17)
EQUAL = 1e-12  # relative: losses that differ by less are equal in float64 but for rounding


@register_reproduction(
    "lecture-keras",
    title="The lecture's highway network as its own code writes and trains it, in Keras",
    source="a lecture's highway network and its printed log",
)
class LectureInKeras(Reproduction):
    """20 layers of two ``Dense`` each in Keras 3 on torch: ``fit`` with Keras's Adam in batches of 1,000.

    The extra ``peers`` installs Keras; without it the runs are skipped with that reason. The printed log is one run,
    so it is compared with the prediction interval of six. The same network is also trained by our code and by Keras
    from the same weights on the same batches, in float64 and with Keras's loss.
    """

    takes = frozenset({"epochs", "seeds"})
    # In version 1 the prediction interval could only contradict; version 2 trained for two epochs
    version = RuleVersion(3, "2026-11-25", seen=16)
    plugins = ("highway_bench.published_code.lecture",)

    def cells(self, request: Request) -> list[Cell]:
        fit = {"epochs": request.epochs or KERAS_EPOCHS, "dataset": {"test_share": 0.25}}
        fitted = [cell_of("float32", fit, seed, request) for seed in self.seeds(request, SEEDS)]
        both = {**ADAM, "steps": COMPARED_STEPS, "layout": "stemless", "dataset": {"test_share": 0.25}}
        return [*fitted, cell_of("float64", both, SAME.seen, request)]

    def claims(self, request: Request) -> Sequence[Claim]:
        n = len(self.seeds(request, SEEDS))
        trained = request.epochs or KERAS_EPOCHS
        needs = {epoch: f"--epochs {epoch}" if epoch > trained else "" for epoch in range(1, KERAS_EPOCHS + 1)}
        printed = [
            claim
            for epoch in range(1, KERAS_EPOCHS + 1)
            for claim in losses_claims(epoch, n=n, least=SEEDS, version=self.version, whose=KERAS, needs=needs[epoch])
        ]
        return [*printed, _same_network()]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        curves = self.fresh(rows[rows["axis"] == "epoch"])
        differences = rows[(rows["metric"] == "loss_difference") & rows["value"].notna() & rows["seed"].ge(SAME.seen)]
        *printed, same = self.claims(request)
        findings = [*(claim.judge(curves) for claim in printed), same.judge(differences)]
        note = f"Means over {curves['seed'].nunique()} seeds."
        table = epochs_table("lecture-keras-epochs", "Loss by epoch, trained by Keras", curves, note)
        return Conclusion(findings=findings, tables=[table] if curves["value"].notna().any() else [])


def cell_of(dtype: str, recipe: dict[str, object], seed: int, request: Request) -> Cell:
    """A training by Keras."""
    from highway_bench.published_code import lecture  # registers its task, which no other command lists

    lecture.register()
    return Cell(
        task=lecture.NAME,
        block="highway",
        block_options={"gate_bias": 0.0},
        family="dense",
        depth=DEPTH,
        width=WIDTH,
        nominal_width=WIDTH,
        match="width",
        batch_size=BATCH,
        dataset="mnist",
        dtype=dtype,
        recipe=recipe,
        device=request.device,
        seed=seed,
    )


def _same_network() -> Claim:
    def observe(differences: pd.DataFrame, _: float) -> Observation:
        values = list(differences["value"])
        largest = [Quantity.exact("largest relative difference", float(value)) for value in values]
        return Observation(decisive=largest)

    return Claim(
        statement="our network is the lecture's: with its loss, from the same weights and batches, it trains alike",
        source="the lecture's code",
        evidence=Evidence.COMPUTED,
        quantity=f"largest relative difference of the loss in {COMPARED_STEPS} steps of float64",
        statistic=Statistic.EXACT,
        region=Region(most=EQUAL),
        observe=observe,
        version=SAME,
    )
