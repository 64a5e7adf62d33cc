"""Rows of a dot plot: a family at a depth and size, named by what tells it from its neighbours."""

from __future__ import annotations

import math
from typing import Final, TypeVar

ROWS: Final = ("family_label", "depth", "nominal_width", "batch_size", "seq_len", "dataset")
MOST: Final = 12
"""Rows in one picture; more go into the next."""

WORDS: Final = {"depth": "depth", "nominal_width": "width", "batch_size": "batch", "seq_len": "length", "dataset": ""}

P = TypeVar("P")


def place_names(places: list[dict[str, object]]) -> list[str]:
    """A name a place: its family, its depth where several are drawn, and what else differs between places of that
    family."""
    by_family: dict[object, list[dict[str, object]]] = {}
    for place in places:
        by_family.setdefault(place["family_label"], []).append(place)
    deep = len({place["depth"] for place in places}) > 1
    return [_name(place, by_family[place["family_label"]], deep) for place in places]


def in_pictures(places: list[P]) -> list[list[P]]:
    """``places`` cut into as few pictures as hold them, of about equal length."""
    pictures = math.ceil(len(places) / MOST)
    size = math.ceil(len(places) / pictures)
    return [places[start : start + size] for start in range(0, len(places), size)]


def _name(place: dict[str, object], family: list[dict[str, object]], deep: bool) -> str:
    telling = [key for key in WORDS if (key == "depth" and deep) or len({other[key] for other in family}) > 1]
    parts = [f"{WORDS[key]} {_shown(place[key])}".strip() for key in telling if place[key] is not None]
    return ", ".join([str(place["family_label"]), *parts])


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)
