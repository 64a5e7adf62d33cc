"""Plain values: an advice as JSON knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from highway_bench.studies.advice.connections import Connection
from highway_bench.studies.advice.finals import QualityVerdict
from highway_bench.terminal import finite

if TYPE_CHECKING:
    from highway_bench.studies.advice.answer import Advice, ConnectionResult


def plain_advice(advice: Advice) -> dict[str, Any]:
    """``advice`` as values that JSON knows. Differences of losses are relative: 0.12 is 12 % above the best."""
    return {
        **advice.about,
        "answer": advice.headline,
        "verdict": str(advice.verdict),
        "use": [plain_name(one) for one in advice.use],
        "cheapest": plain_name(advice.cheapest) if advice.cheapest else None,
        "seeds": advice.quality.seeds,
        "seeds_needed": advice.quality.needed if advice.verdict == QualityVerdict.UNDECIDED else None,
        "steps": list(advice.ladder),
        "timed_depth": advice.timed_depth,
        "connections": [plain_result(advice, one) for one in advice.results],
        "notes": list(advice.notes),
        "store": str(advice.store),
        "page": None if advice.page is None else str(advice.page),
    }


def plain_result(advice: Advice, one: ConnectionResult) -> dict[str, Any]:
    """What was measured of one connection, as values that JSON knows."""
    behind = advice.behind(one.connection)
    values = {
        **plain_name(one.connection),
        "width": one.width,
        "learning": str(one.learning),
        "reason": one.reason or None,
        "steps": one.steps,
        "rate": one.rate,
        "loss": one.loss,
        "runs": one.runs,
        "succeeded": one.succeeded,
        "test_accuracy": one.accuracy,
        "at_start": one.at_start or None,
        "step_ratio": one.cost.ratio,
        "step_ratio_low": one.cost.low,
        "step_ratio_high": one.cost.high,
        "step_ratio_decided": one.cost.decided,
        "saved_per_layer": one.cost.saved,
        "leader": one.connection in advice.use,
        "behind": None if behind is None else behind.difference,
        "behind_low": None if behind is None else behind.low,
        "behind_high": None if behind is None else behind.high,
    }
    return finite(values)


def plain_name(connection: Connection) -> dict[str, str]:
    """A connection as plain values."""
    return {"block": connection.block, "start": connection.start}
