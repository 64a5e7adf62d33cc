"""The process of one commit in a comparison: ``compare`` runs this file with the commit's package first on the path.

A request is a JSON object on a line, and so is its response. This file uses the package only through ``asv_api``, which
does not change, and takes the cells' sizes from asv's benchmarks, so that a comparison times what the history records.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

BENCHES = Path(__file__).resolve().parents[2] / "benches" / "history" / "cells.py"


def main() -> None:
    """Respond to requests until the input is closed."""
    responses, sys.stdout = sys.stdout, sys.stderr  # a commit's printed text must not be read as a response
    benches: Any = None
    current: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        response: object
        if message["do"] == "prepare":
            if benches is None:
                os.environ["HIGHWAY_BENCH_HISTORY_DEVICE"] = message["device"]
                benches = load()
            try:
                current = benches.Steps(message["block"], message["family"], message["depth"])
                response = {"ready": True}
            except NotImplementedError as reason:
                response = {"ready": False, "reason": str(reason)}
        else:
            begin = time.perf_counter()
            current.work.step()
            response = time.perf_counter() - begin
            current.work.restore()
        responses.write(json.dumps(response) + "\n")
        responses.flush()


def load() -> Any:
    """The module with the cells of asv's benchmarks."""
    spec = importlib.util.spec_from_file_location("history_cells", os.environ.get("HIGHWAY_BENCH_BENCHES", BENCHES))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
