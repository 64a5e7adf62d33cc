"""Small cells, and what their tasks measure of them."""

from highway_bench.cell import Cell
from highway_bench.tasks import tasks

WITH_A_PHASE = ("memory", "throughput")


def cell(task, block="highway", family="dense", *, width=8, **changes):
    """A small cell; a keyword that is no field of a cell is a word of its recipe."""
    fields = {name: changes.pop(name) for name in list(changes) if name in Cell.__dataclass_fields__}
    defaults = {
        "depth": 2,
        "batch_size": 4,
        "nominal_width": width,
        "match": "width",
        "phase": "forward-backward" if task in WITH_A_PHASE else None,
    }
    recipe = {**fields.get("recipe", {}), **changes}
    return Cell(task=task, block=block, family=family, width=width, **{**defaults, **fields, "recipe": recipe})


def on_digits(block="highway", family="dense", *, task="trainability", **changes):
    """A cell that trains on the digits of scikit-learn."""
    return cell(task, block, family, **{"dataset": "digits", "batch_size": 50, "steps": 20, **changes})


def run(one, work=None):
    """What the cell's task measures, of ``work`` or of what it prepares."""
    task = tasks.get(one.task)
    return list(task.measurements(work or task.prepare(one), one))


def scalars(measurements):
    return {one.metric: one.value for one in measurements if not one.axis}


def by_layer(measurements, metric):
    return {int(one.index): one.value for one in measurements if one.metric == metric and one.axis == "layer"}


def by_place(measurements):
    """The values by metric, axis and index; those of seconds are left out, as no two are equal."""
    return {(one.metric, one.axis, one.index): one.value for one in measurements if "seconds" not in one.metric}
