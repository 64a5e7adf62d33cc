"""The environment in a series' identity: the minor versions of python and torch, without builds and paths."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def requirements() -> dict[str, str]:
    """torch's minor version, which is part of every series' identity."""
    try:
        return {"torch": ".".join(version("torch").split("+")[0].split(".")[:2])}
    except PackageNotFoundError:
        return {}


def series_name() -> str:
    """The environment's name. Result files have it in their names, so a commit that is measured again is replaced."""
    return "-".join([f"py{HERE}", *(name + number for name, number in requirements().items())])
