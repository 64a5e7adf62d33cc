"""What measured a point, as its series say it: python and torch, without patch releases, builds and paths."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def requirements() -> dict[str, str]:
    """torch's version without patch release and build: what every environment says it measured with."""
    try:
        return {"torch": ".".join(version("torch").split("+")[0].split(".")[:2])}
    except PackageNotFoundError:
        return {}


def series_name() -> str:
    """The name of every environment, and so of its result files: measured again, a commit's point is replaced."""
    return "-".join([f"py{HERE}", *(name + number for name, number in requirements().items())])
