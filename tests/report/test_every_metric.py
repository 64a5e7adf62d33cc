"""Every metric of every task that has a value in the rows is shown: on the page, or in a table of it."""

import re

import pandas as pd
import pytest

from highway_bench.cell import canonical
from highway_bench.execution.runner import run_cells
from highway_bench.frames.rows import prepared
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection
from highway_bench.report.page import write_report
from highway_bench.results import Store
from highway_bench.tasks import tasks
from tests.combinations import TASKS
from tests.inline_engine import InlineEngine
from tests.rows import frame_of

MIXINGS = ("mixing_start", "mixing_end", "mixing_share_start", "mixing_share_end")
NOT_SHOWN = {
    **dict.fromkeys(MIXINGS, "a row of a matrix, which is read from the store"),
    "mistaken_for": "the class that a single test item was taken for",
    "loss": "a curve, which is read from the store",
    **dict.fromkeys(("matmul_rate", "conv_rate", "copy_rate"), "the machine's, which is read from the store"),
}
"""Metrics that are in no table, and why."""

THRESHOLD = {"steps_to_threshold": "plain", "seconds_to_threshold": "plain"}
EPOCHS = {"epoch_train_loss": "plain", "epoch_test_loss": "plain", "epoch_test_accuracy": "plain"}
BYTES = {"test_bits": "plain"}  # smoke has no text
LACKING = {
    "throughput": {  # smoke compiles nothing, and runs on a CPU here
        **dict.fromkeys(("compile_time", "graph_breaks"), "plain"),
        **dict.fromkeys(("gpu_time", "gpu_ratio", "clock_rate", "capped"), "plain"),
    },
    "trainability": THRESHOLD | EPOCHS | BYTES,  # its runs are of twenty steps at most, and looked at once
    "gates": THRESHOLD | EPOCHS | BYTES,
    "propagation": {  # its networks have two layers, in which nothing vanishes, settles or stands still
        "signal_vanishes_at": "plain",
        "gradient_vanishes_at": "plain",
        "signal_explodes_at": "highway-free",
        "gradient_explodes_at": "highway-free",
        "depth_scale": "plain",
        "still_first": "plain",
        "still_last": "plain",
    },
}
"""By task, the metrics that the profile ``smoke`` need not give: rows of them are made up for this block."""


BLOCKS = ("plain", "highway-free")
"""The baseline, and the block with all that there is to measure: two gates."""

NARROW = Selection(family=("dense", "mlp", "bilstm"), block=(*BLOCKS, "highway"))
"""Every grid of ``smoke`` has cells of these."""


def cells():
    """Of the cells of ``smoke`` one a task, phase, data set and recipe, in its first family or ``dense``, under each of
    ``BLOCKS``."""
    kinds = {}
    for cell in Plan.of("smoke", NARROW).cells:
        kinds.setdefault((cell.task, cell.phase, cell.dataset, canonical(cell.recipe)), []).append(cell)
    for kind in kinds.values():
        family = "dense" if any(cell.family == "dense" for cell in kind) else kind[0].family
        alike = [cell for cell in kind if (cell.family, cell.seed) == (family, kind[0].seed)]
        first = [cell for cell in alike if cell.seq_len == alike[0].seq_len]
        yield from [cell for cell in first if cell.block in BLOCKS] or first[:1]


@pytest.fixture(scope="session")
def smoke(tmp_path_factory):
    """Rows of cells of the profile ``smoke``, measured here."""
    folder = tmp_path_factory.mktemp("smoke")
    with Store(folder / "store.sqlite") as store:
        run_cells(cells(), store, engine=InlineEngine(folder))
        return frame_of(store.rows())


@pytest.fixture(scope="session")
def real(smoke):
    """Those rows, and one made up of every metric of ``LACKING``: after a scalar of the same cell."""
    rows = []
    for task, lacking in LACKING.items():
        for metric, block in lacking.items():
            like = smoke[(smoke["task"] == task) & (smoke["block"] == block) & smoke["trial"].isna()]
            if metric.startswith("still"):
                like = like[like["dataset"].fillna("").ne("")]
            base = like[like["axis"].fillna("").eq("") & like["value"].notna()].iloc[0].to_dict()
            base |= {"metric": metric, "unit": tasks.get(task).metric(metric).unit, "value": 1.0, "samples": None}
            rows.append(base | ({"axis": "epoch", "index": 1.0} if metric in EPOCHS else {}))
    given = {(task, metric) for task, metrics in LACKING.items() for metric in metrics}
    keys = pd.MultiIndex.from_frame(smoke[["task", "metric"]])
    frame = pd.concat([smoke[~keys.isin(list(given))], frame_of(rows)], ignore_index=True)
    frame.loc[frame["task"].eq("gates") & frame["metric"].eq("success"), "value"] = 1.0  # others' gates are not shown
    return frame


def with_digits(frame):
    """``frame`` with the values of each metric replaced by three digits of its own; and these digits."""
    frame = frame.copy()
    known = frame["value"].notna() & ~frame["metric"].isin(NOT_SHOWN)
    pairs = sorted(set(zip(frame.loc[known, "task"], frame.loc[known, "metric"], strict=True)))
    fit = (number for number in range(113, 1000, 7) if number % 10)  # a last zero would be lost among others
    digits = {pair: str(number) for pair, number in zip(pairs, fit, strict=False)}
    assert len(digits) == len(pairs)
    for (task, metric), number in digits.items():
        of = known & (frame["task"] == task) & (frame["metric"] == metric)
        frame.loc[of, ["value", "low", "high"]] = float(number)
    return frame, digits


@pytest.fixture(scope="session")
def page(real, tmp_path_factory):
    """The page of the rows with digits of their own."""
    return write_report(with_digits(real)[0], tmp_path_factory.mktemp("page")).page.read_text(encoding="utf-8")


def test_every_metric_is_shown(real, page):
    _, digits = with_digits(real)
    text = re.sub(r"(?s)<style.*?</style>|<[^>]+>", " ", page)
    numbers = {re.sub(r"[.,]", "", number).strip("0") for number in re.findall(r"\d[\d.,]*", text)}
    hidden = [f"{task}: {metric}" for (task, metric), number in digits.items() if number not in numbers]
    assert not hidden


def test_smoke_gives_every_other_metric(smoke):
    """What the test above can see: a new metric needs a cell in ``smoke``, or a reason in ``LACKING``."""
    assert set(smoke["task"]) == set(TASKS), "a task without a cell in smoke"
    have = {(row.task, row.metric) for row in smoke[smoke["value"].notna()].itertuples()}
    every = {(name, metric.name) for name in TASKS for metric in tasks.get(name).metrics}
    known = {(task, metric) for task, metrics in LACKING.items() for metric in metrics}
    assert known <= every
    assert {pair for pair in every - have - known if pair[1] not in NOT_SHOWN} == set()


def test_a_task_of_a_plug_in_has_a_table(real, tmp_path):
    mine = real[real["task"] == "cost"].assign(task="my-task")
    mine["metric"] = "my_metric"
    frame = prepared(pd.concat([real, mine[mine["value"] > 100].drop_duplicates("digest")]))
    page = write_report(frame, tmp_path).page.read_text(encoding="utf-8")
    assert "Task my-task" in page
    assert "my metric" in page
