"""Families: what the transform H is. One family a file; ``families`` is the registry, ``make_family`` its door."""

from highway_bench.families._base import Family, FamilySpec, Transform, families, register_family
from highway_bench.families._custom import family, make_family
from highway_bench.families._init import Activation, Init
from highway_bench.families._site import CHANGES, Change, Gate, Kind, Site

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
