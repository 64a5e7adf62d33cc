"""The environment in a series' identity: the minor versions of python and torch, without builds and paths."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def pinned() -> dict[str, str]:
    """The packages that no commit replaces, with their versions here."""
    found = {}
    for name in ("torch", "highway-bench"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def requirements() -> dict[str, str]:
    """torch's minor version, which is part of every series' identity."""
    return {name: ".".join(known.split("+")[0].split(".")[:2]) for name, known in pinned().items() if name == "torch"}


def series_name() -> str:
    """The environment's name. Result files have it in their names, so a commit that is measured again is replaced."""
    return "-".join([f"py{HERE}", *(name + number for name, number in requirements().items())])
