"""Ray itself: imported with the settings that this project needs; and what its errors say."""

from __future__ import annotations

import os
import re
from typing import Any

from highway_bench.errors import BadInput

ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",  # whoever reaches a port of a cluster without a token can run code on it
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_task_oom_retries": "3",  # Ray would repeat a job that is too large for the nodes without end
    "RAY_gcs_server_port_wait_time_s": "1",  # and try for ten minutes to reach a cluster that has ended
}

VERSIONS = re.compile(r"Version mismatch:.*?Ray: (\S+)\s+Python: (\S+).*?Ray: (\S+)\s+Python: (\S+)", re.DOTALL)


def imported_ray() -> Any:
    """The module ``ray``, with token authentication on and usage reports off unless the environment says otherwise.

    Raises ``BadInput`` where it is not installed.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError as error:
        raise BadInput("engine 'ray' needs Ray: install highway-bench[cluster]") from error
    return ray


def first_line(error: BaseException) -> str:
    """The message of Ray's ``error``, or of the exception on the node, in one line.

    Ray gives the versions of the cluster and of this process in lines of their own.
    """
    cause = getattr(error, "cause", None) or error
    if found := VERSIONS.search(str(cause)):
        ray, python, own_ray, own_python = found.groups()
        return (
            f"it has Ray {ray} with Python {python}, and this command Ray {own_ray} with Python {own_python}: "
            "install the same"
        )
    text = next((line.strip() for line in str(cause).splitlines() if line.strip()), "")
    return text or type(cause).__name__
