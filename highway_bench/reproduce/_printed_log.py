"""The lecture's printed log, and the claims that runs of the same network are compared with it by."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from highway_bench.report import columns as column
from highway_bench.reproduce.claims import Claim, Observation, RuleVersion
from highway_bench.reproduce.quantities import Region, Statistic, mean, prediction

# Epoch → (mean training loss during the epoch, test loss at its end), as printed
PRINTED = {1: (0.8074, 0.2227), 2: (0.1436, 0.1434), 3: (0.0870, 0.1224), 49: (0.0033, 0.1112), 50: (0.0023, 0.1144)}
PRINTED_ACCURACY = 0.9827
FIRST_EPOCHS = 3
STEPS_PER_EPOCH = 53  # ⌈52,500 / 1,000⌉: the last batch has 500

# A single published run has no spread: it is judged as one more run. To be reproduced, it must lie in the prediction
# interval of one more run, and the mean of runs must come within a factor of it, because a wide interval has everything
# in it: 2 in the first epochs, 5 at the end, where the training loss is near zero, and 1.5 for test losses. To be
# contradicted, that interval must lie outside of the factor. The band of the accuracy is four binomial standard errors
# at 17,500 images.
EARLY, LATE, TESTED, ACCURACY = 2.0, 5.0, 1.5, 0.4
SCATTER, SCATTER_OF_ACCURACY = 0.1, 0.1  # decades between runs in the first epochs; points
WHERE = "the lecture's log"


OURS, KERAS = "ours", "Keras's"

KERAS_EPOCHS = 3  # for which ``lecture-keras`` trains the lecture's own code

PrintedLoss = tuple[str, int]
"""A metric and an epoch."""
REACHED: frozenset[PrintedLoss] = frozenset()
"""The printed losses that the lecture's own code reaches here: what the committed rows of ``lecture-keras`` reproduce,
as a test checks. Our runs of the same network can contradict no other."""
UNREACHED_TEXT = "the lecture's own code is not seen to reach it here either (lecture-keras)"
UNKNOWN_TEXT = f"the lecture's own code has been run for {KERAS_EPOCHS} epochs only (lecture-keras)"


def losses_claims(
    epoch: int, *, n: int, least: int, version: RuleVersion, whose: str = OURS, needs: str = ""
) -> list[Claim]:
    """The claims on the two losses that are printed of ``epoch``, decided by ``n`` runs, at least ``least``."""
    train, test = PRINTED[epoch]
    factor = EARLY if epoch <= FIRST_EPOCHS else LATE
    return [
        printed_claim(text, metric, epoch, printed, band, n=n, least=least, version=version, whose=whose, needs=needs)
        for text, metric, printed, band in (
            (f"training loss of epoch {epoch}", "epoch_train_loss", train, factor),
            (f"test loss of epoch {epoch}", "epoch_test_loss", test, TESTED),
        )
    ]


def printed_claim(
    text: str,
    metric: str,
    epoch: int,
    printed: float,
    factor: float | None,
    *,
    n: int,
    least: int,
    version: RuleVersion,
    whose: str = OURS,
    needs: str = "",
) -> Claim:
    """A claim on one printed number: a loss within ``factor``, or an accuracy within ``ACCURACY`` points.

    The runs of ``whose`` code decide, ours or the lecture's own in Keras. Its data are rows with the columns
    ``metric``, ``index`` (the epoch) and ``value``."""
    unit = "×" if factor else "points"

    def observe(curves: pd.DataFrame, confidence: float) -> Observation:
        values = curves.loc[(curves["metric"] == metric) & (curves["index"] == epoch), "value"]
        data = values / printed if factor else 100 * (values - printed)
        more = prediction("one more run", data, confidence, unit)
        outside = not more.low <= (1 if factor else 0) <= more.high
        return Observation(
            decisive=[mean("mean", data, confidence, unit)],
            against=[more],
            unlike="the printed one lies outside of the prediction interval" if outside else "",
        )

    reaches = "the lecture's own code, run today, reaches its printed " if whose == KERAS else ""
    return Claim(
        statement=f"{reaches}{text}: {printed:.4f}",
        source=WHERE,
        quantity=f"{whose} {'over' if factor else 'minus'} the printed one, which must lie in the prediction interval "
        "of one more run (to contradict: that interval decides)",
        unit=unit,
        statistic=Statistic.MEAN,
        region=Region(1 / factor, factor) if factor else Region(-ACCURACY, ACCURACY),
        refuted=(Region(most=1 / factor), Region(least=factor))
        if factor
        else (Region(most=-ACCURACY), Region(least=ACCURACY)),
        observe=observe,
        n=n,
        least=least,
        scatter=SCATTER if factor else SCATTER_OF_ACCURACY,
        irrefutable=_irrefutable(metric, epoch) if whose == OURS else "",
        needs=needs,
        version=version,
    )


def _irrefutable(metric: str, epoch: int) -> str:
    """Why our runs cannot contradict a printed number; empty if the lecture's own code reaches it here."""
    if epoch > KERAS_EPOCHS:
        return UNKNOWN_TEXT
    return "" if (metric, epoch) in REACHED else UNREACHED_TEXT


def epochs_table(name: str, title: str, curves: pd.DataFrame, note: str = "") -> column.Shown:
    """One row per epoch: the printed losses, and the mean over seeds of each curve."""
    table = by_epoch(curves).reset_index().rename(columns={"index": "epoch"})
    for printed, index in (("printed_train", 0), ("printed_test", 1)):
        known: Mapping[int, tuple[float, float]] = PRINTED
        table[printed] = [known.get(int(epoch), (float("nan"),) * 2)[index] for epoch in table["epoch"]]
    columns = [
        column.whole("epoch", "epoch"),
        column.number("printed_train", "published training loss", "nat"),
        column.number("epoch_train_loss", "training loss", "nat", "mean during the epoch"),
        column.number("printed_test", "published test loss", "nat"),
        column.number("epoch_test_loss", "test loss", "nat", "at the epoch's end"),
        column.number("epoch_test_accuracy", "test accuracy"),
    ]
    return column.shown(name, title, table, columns, note=note)


def by_epoch(curves: pd.DataFrame) -> pd.DataFrame:
    """One row per epoch: the mean over seeds of each curve."""
    return curves.pivot_table(index="index", columns="metric", values="value", aggfunc="mean")
