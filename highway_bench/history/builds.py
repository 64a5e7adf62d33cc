"""Build and install commits, as asv does for a range, and check that they import.

The files of a commit are no package yet: versions are generated, extensions compiled. So each commit is checked out in
a local clone, and built and installed by the commands in asv's configuration, in an environment of this interpreter's
packages.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from highway_bench.errors import HighwayBenchError, writing
from highway_bench.history import git
from highway_bench.history.machine import PYTHON
from highway_bench.history.paths import Paths
from highway_bench.history.suite.process import CellLacking, PackageProcess, RequestFailed

SIDES = ("first", "second")  # environments of the commits that are compared
LOG = "build.log"
ERROR = re.compile(r"^.*\b(?:\w*(?:Error|Exception)|error|ERROR): .*$", re.MULTILINE)
PIPS_OWN = "subprocess-exited-with-error"  # what pip prints before the build's own output


class NotBuilt(HighwayBenchError):
    """A commit cannot be built or installed."""

    exit_status = 4


class NotImported(HighwayBenchError):
    """A commit's package fails to import."""


def build(paths: Paths, commit: str, name: str = "env") -> Path:
    """Install a commit into an environment of the working folder, unless it is there already; its folder of packages.

    Raises ``NotBuilt`` with the commit and the first line of the error; all output is in the working folder.
    """
    from asv.config import Config
    from asv.repo import get_repo
    from asv.util import ProcessError, UserError

    from highway_bench.history.asv_plugin import Commits

    configuration = Config.load(str(paths.configured("build", env_dir=paths.working / name)))
    environment = Commits(configuration, PYTHON, {}, {})
    logging.disable(logging.ERROR)  # asv logs all that a failed command wrote
    try:
        environment.create()
        environment.install_project(configuration, get_repo(configuration), commit)
    except (ProcessError, UserError) as error:
        output = f"{getattr(error, 'stdout', '')}{getattr(error, 'stderr', '')}" or str(error)
        with writing(paths.working / LOG):
            (paths.working / LOG).write_text(output, encoding="utf-8")
        errors = [line.strip() for line in ERROR.findall(output) if PIPS_OWN not in line]
        raise NotBuilt(
            f"{commit[:8]} cannot be built: {(errors or output.strip().splitlines() or [str(error)])[0]} "
            f"({(paths.working / LOG).relative_to(paths.root)})"
        ) from None
    finally:
        logging.disable(logging.NOTSET)
    return environment.packages


def build_sides(paths: Paths, first: str, second: str, device: str) -> list[Path]:
    """The folders of packages of two commits, one of them for two of the same; raises ``NotImported`` too."""
    commits = [git.commit_of(paths.root, name) for name in (first, second)]
    names = dict(zip(reversed(commits), reversed(SIDES), strict=True))
    folders = {commit: build(paths, commit, names[commit]) for commit in dict.fromkeys(commits)}
    for commit, folder in folders.items():
        check_import(paths, commit, device, path_of(folder), folder)
    return [folders[commit] for commit in commits]


def check_import(paths: Paths, commit: str, device: str, path: Sequence[str], tree: Path | None = None) -> None:
    """Raise ``NotImported`` where nothing of the suite can be imported from ``path``."""
    suite = paths.suite()
    with PackageProcess(path, device, 0, tree) as process:
        try:
            process.ask("load", blocks=suite.core, families=suite.families)
        except CellLacking:  # it predates the benchmarks
            pass
        except RequestFailed as error:
            raise NotImported(f"{commit[:8]} does not import: {' '.join(str(error).split())}") from None


def path_of(folder: Path) -> list[str]:
    """The path of a process that measures the package in ``folder``, which comes before what is installed."""
    return [str(one) for one in (folder / "src", folder) if one.is_dir()] + sys.path
