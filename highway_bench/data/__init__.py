"""Data sets: real ones from packages and folders, sequence tasks made on the spot. One data set a file."""

from highway_bench.data._base import (
    Data,
    DataSet,
    DataSetSpec,
    InputKind,
    Split,
    TargetKind,
    datasets,
    make_dataset,
    register_dataset,
)
from highway_bench.data._folder import cache_folder, data_folder
from highway_bench.data._vader import fetch_sentiment

__all__ = [
    "Data",
    "DataSet",
    "DataSetSpec",
    "InputKind",
    "Split",
    "TargetKind",
    "cache_folder",
    "data_folder",
    "datasets",
    "fetch_sentiment",
    "make_dataset",
    "register_dataset",
]
