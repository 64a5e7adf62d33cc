"""The process of one commit in a comparison: ``compare`` runs this file with the commit's package first on the path.

It reads a JSON object a line, and answers with JSON a line. It uses the package through its frozen entrance for asv
alone, and takes the cells' sizes from asv's benchmarks, so that a comparison times what the history records.
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
    """Answer until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what a commit prints must not be taken for an answer
    benches: Any = None
    current: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        answer: object
        if message["do"] == "prepare":
            if benches is None:
                os.environ["HIGHWAY_BENCH_HISTORY_DEVICE"] = message["device"]
                benches = load()
            try:
                current = benches.Steps(message["block"], message["family"], message["depth"])
                answer = {"ready": True}
            except NotImplementedError as reason:
                answer = {"ready": False, "reason": str(reason)}
        else:
            begin = time.perf_counter()
            current.work.step()
            answer = time.perf_counter() - begin
            current.work.restore()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def load() -> Any:
    """The module that says what asv's benchmarks measure."""
    spec = importlib.util.spec_from_file_location("history_cells", os.environ.get("HIGHWAY_BENCH_BENCHES", BENCHES))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
