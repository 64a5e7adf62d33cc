"""Data sets: real ones from packages and folders, generated sequence problems. One data set a file."""

from highway_bench.data._files import cache_folder, data_folder
from highway_bench.data._own import read_own
from highway_bench.data._texts import read_text
from highway_bench.data.base import (
    Data,
    DataSet,
    DataSetSpec,
    Split,
    datasets,
    fingerprint,
    make_dataset,
    register_dataset,
)

__all__ = [
    "Data",
    "DataSet",
    "DataSetSpec",
    "Split",
    "cache_folder",
    "data_folder",
    "datasets",
    "fingerprint",
    "make_dataset",
    "read_own",
    "read_text",
    "register_dataset",
]
