"""Start a history in a package of one's own: what asv needs, which follows that package's blocks and layers."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from highway_bench.errors import BadInput
from highway_bench.history.files import write_text
from highway_bench.history.paths import CONFIGURATION

GROUPS = ("highway_bench.blocks", "highway_bench.families")  # of entry points
FURTHER = ("conv", "transformer")  # families in which a package's blocks are followed, besides dense
BASELINES = ("plain", "residual", "pre-norm")  # the blocks in which a package's layers are followed
BENCHMARKS = '''"""What asv follows at this package's commits. asv imports this module, so it must not import torch."""

from highway_bench.history.suite.benchmarks import benchmarks
from highway_bench.history.suite.series import Suite

SUITE = Suite(
    core={core!r},
    families={families!r},
{more})
globals().update(benchmarks(SUITE))
'''
CONFIG = """{{
    "version": 1,
    "project": {project},
    "repo": ".",
    "dvcs": "git",
    "branches": ["HEAD"],
    "benchmark_dir": "benches/history",
    "plugins": [".highway_bench.history.asv_plugin"],
    "environment_type": "current",
    "launch_method": "forkserver",
    "build_command": ["python -m pip wheel --no-deps --no-build-isolation -w {{build_cache_dir}} {{build_dir}}"],
    "install_command": ["in-dir={{env_dir}} python -m pip install --no-deps --force-reinstall {{wheel_file}}"],
    "install_timeout": 600,
    "env_dir": "reports/asv/.working/env",
    "results_dir": "reports/asv/results",
    "html_dir": "reports/asv/html",
    // Rises that were meant: a pattern of series, and the commit that rose. Say why in a comment.
    "regressions_first_commits": {{}}
}}
"""
IGNORED = ("/reports/asv/.working/", "/reports/asv/html/", "/reports/asv/results/benchmarks.json", "/reports/site/")


def write_history(root: Path) -> list[Path]:
    """Write the configuration, the module of benchmarks, and the ignored folders of a history at ``root``.

    Its blocks and families are those that ``pyproject.toml`` names as entry points. Returns the written files. Raises
    ``BadInput`` where one of them exists already, and without a ``pyproject.toml`` or such an entry point.
    """
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        name, points = project["name"], project.get("entry-points", {})
        blocks, families = (tuple(sorted(points.get(group, {}).keys())) for group in GROUPS)  # text has no keys
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise BadInput(
            f"no pyproject.toml with a named [project] here: run this at the top of your package ({error})"
        ) from None
    if not blocks and not families:
        tables = " or ".join(f'[project.entry-points."{group}"]' for group in GROUPS)
        raise BadInput(f"pyproject.toml names no block and no layer: add {tables}")
    files = {
        CONFIGURATION: CONFIG.format(project=json.dumps(name)),
        "benches/history/__init__.py": "",
        "benches/history/blocks.py": BENCHMARKS.format(
            core=blocks or BASELINES,
            families=families or ("dense", *FURTHER),
            more="" if families else f"    timed={FURTHER!r},\n",
        ),
    }
    if there := [name for name in files if (root / name).exists()]:
        raise BadInput(f"{' and '.join(there)} would be overwritten: remove what is no longer needed")
    for name, text in files.items():
        write_text(root / name, text)
    ignored = root / ".gitignore"
    before = ignored.read_text(encoding="utf-8") if ignored.is_file() else ""
    before += "\n" if before and not before.endswith("\n") else ""
    write_text(ignored, before + "".join(f"{line}\n" for line in IGNORED if line not in before.splitlines()))
    return [root / name for name in (*files, ".gitignore")]
