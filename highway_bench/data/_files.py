"""Where data come from: the user's data folder and the package's own cache, files, and Hugging Face's library.

``HIGHWAY_BENCH_DATA`` names the user's folder. The library is an optional extra, imported when it is needed.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput

VARIABLE = "HIGHWAY_BENCH_DATA"
MOST_NAMED = 8  # entries of a folder in a message
GZIP = b"\x1f\x8b"
INSTALL = "pip install highway-bench[text]"


def data_folder() -> Path | None:
    """The folder that ``HIGHWAY_BENCH_DATA`` names, as an absolute path; ``None`` where it is unset or empty.

    Raises ``BadInput`` where it names something that is not a folder. A run without the user's data would measure
    something else.
    """
    value = os.environ.get(VARIABLE, "")
    if not value:
        return None
    folder = Path(value).expanduser().absolute()
    if not folder.is_dir():
        raise BadInput(f"{VARIABLE} names {str(folder)!r}, which is not a folder")
    return folder


def cache_folder() -> Path:
    """The folder for what the package itself downloads; it may not exist yet.

    ``$XDG_CACHE_HOME/highway_bench``, or ``~/.cache/highway_bench`` where that variable is unset or relative (XDG base
    directory specification).
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "highway_bench"


def searched_folders(name: str) -> list[Path]:
    """Where the files of the data set ``name`` are looked for: its folder in the data folder, the data folder itself,
    its folder in the cache."""
    given = data_folder()
    return [*([given / name, given] if given else []), cache_folder() / name]


def find_folder(name: str, files: Iterable[str]) -> Path | None:
    """The first of the searched folders that holds any of ``files``, or ``None``.

    One file is enough: the caller then reports which files of the folder are missing.
    """
    files = list(files)
    return next((folder for folder in searched_folders(name) if any((folder / file).is_file() for file in files)), None)


def how_to_give(name: str, files: str) -> str:
    """How to give the ``files`` of the data set ``name``, which folders were searched for them, and what is there."""
    there = "; ".join(f"{folder} {held_by(folder)}" for folder in searched_folders(name))
    given = data_folder()
    cure = f"put {files} in {given / name}" if given else f"set {VARIABLE} to a folder with {files}"
    return f"{cure}; searched: {there}"


def held_by(folder: Path) -> str:
    """What ``folder`` holds, in words that follow its name: at most ``MOST_NAMED`` names."""
    if not folder.is_dir():
        return "is not there"
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"has {', '.join(names[:MOST_NAMED]) or 'nothing'}{more}"


def contents_of(path: Path) -> bytes:
    """The bytes of a file, unpacked where it is a gzip file. Raises ``BadInput``, which names it, where it cannot be
    read or unpacked."""
    try:
        packed = path.read_bytes()
        return gzip.decompress(packed) if packed.startswith(GZIP) else packed
    except EOFError:
        raise BadInput(f"{path}: truncated, its gzip stream is incomplete") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"{path}: damaged gzip file ({error})") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None


def library_missing() -> str | None:
    """What to install, in one line; ``None`` where the library is installed."""
    return None if find_spec("datasets") else f"Hugging Face's library is missing: {INSTALL}"


def read_columns(
    dataset: str, path: str, config: str | None, split: str, columns: Sequence[str]
) -> tuple[list[Any], ...]:
    """The values of ``columns`` in one split of the set ``path``, the first column as texts.

    ``dataset`` is the name of our data set, for messages. Raises ``BadInput`` where the library, the set, the split or
    a column is missing, the split is empty, or the first column is not all text.
    """
    try:
        library = import_module("datasets")
    except ImportError as error:
        raise BadInput(f"data set {dataset!r} needs Hugging Face's library ({error}): {INSTALL}") from error
    try:
        table = library.load_dataset(path, config, split=split)
    except Exception as error:  # the library's and its network layer's errors have no base class in common
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(f"{dataset} {path!r}, split {split!r}: {reason}") from error
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise BadInput(
            f"{dataset} {path!r} has no column {', '.join(map(repr, missing))}; its columns: "
            f"{', '.join(table.column_names)}"
        )
    if not len(table):
        raise BadInput(f"{dataset} {path!r}: split {split!r} is empty")
    values = tuple(list(table[name]) for name in columns)
    if not all(isinstance(text, str) for text in values[0]):
        raise BadInput(f"{dataset} {path!r}: column {columns[0]!r} of split {split!r} is not all text")
    return values
