"""Families: what the transform H is. One family a file; ``families`` is the registry, ``make_family`` its door."""

from highway_bench.families._base import (
    CHANGES,
    Change,
    Family,
    FamilySpec,
    Gate,
    Kind,
    Site,
    Transform,
    families,
    register_family,
)
from highway_bench.families._custom import family, make_family
from highway_bench.families._init import Activation, Init

__all__ = [
    "CHANGES",
    "Activation",
    "Change",
    "Family",
    "FamilySpec",
    "Gate",
    "Init",
    "Kind",
    "Site",
    "Transform",
    "families",
    "family",
    "make_family",
    "register_family",
]
