"""Families: what the transform H is. One family a file; ``make_family`` builds one by its name in ``families``."""

from highway_bench.families._custom import AnyLayer, as_family, family, make_family, select_families
from highway_bench.families._site import CHANGES, Change, Gate, InitialBias, Kind, Site
from highway_bench.families.base import Family, FamilySpec, TrainCost, Transform, families, register_family
from highway_bench.families.causality import is_causal, reads_ahead
from highway_bench.families.init import Activation, Init

__all__ = [
    "CHANGES",
    "Activation",
    "AnyLayer",
    "Change",
    "Family",
    "FamilySpec",
    "Gate",
    "Init",
    "InitialBias",
    "Kind",
    "Site",
    "TrainCost",
    "Transform",
    "as_family",
    "families",
    "family",
    "is_causal",
    "make_family",
    "reads_ahead",
    "register_family",
    "select_families",
]
