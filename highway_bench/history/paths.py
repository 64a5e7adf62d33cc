"""The history's folders: asv's configuration, the points, and an ignored working folder; and asv's commands on them."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from filelock import Timeout

import highway_bench
from highway_bench.errors import USER_ERRORS, BadInput, HighwayBenchError, writing
from highway_bench.history.suite.series import Suite
from highway_bench.pages import HISTORY
from highway_bench.provenance.lock import file_lock, holder

SOURCE = Path(highway_bench.__file__).resolve().parents[1]
CONFIGURATION = "asv.conf.json"
FOLDER_SETTINGS = ("benchmark_dir", "env_dir", "results_dir", "html_dir", "repo")

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class AsvFailed(HighwayBenchError):
    """asv itself failed, which is neither a regression nor a lack of values."""

    exit_status = 4


@dataclass(frozen=True)
class Paths:
    """The folders of a checkout's history.

    ``results`` holds the points of commits, for git. git ignores the others: ``scratch`` is what asv writes during a
    run, ``uncommitted`` the point of a tree with uncommitted changes, ``shown`` what was last published.
    """

    root: Path

    @classmethod
    def of(cls, root: Path | str = ".") -> Paths:
        """The paths of the checkout at ``root``; raises ``BadInput`` where there is no configuration of asv."""
        folder = Path(root).resolve()
        if not (folder / CONFIGURATION).is_file():
            raise BadInput(f"{folder.name}: no {CONFIGURATION} here; run this at the top of a checkout that has one")
        return cls(folder)

    @property
    def results(self) -> Path:
        return self.root / "reports/asv/results"

    @property
    def working(self) -> Path:
        return self.root / "reports/asv/.working"

    @property
    def scratch(self) -> Path:
        return self.working / "scratch"

    @property
    def uncommitted(self) -> Path:
        return self.working / "uncommitted"

    @property
    def shown(self) -> Path:
        return self.working / "shown"

    @property
    def html(self) -> Path:
        return self.root / "reports" / HISTORY

    @property
    def benchmarks(self) -> Path:
        """The folder of asv's benchmarks."""
        return self.root / str(self.configuration()["benchmark_dir"])

    def suite(self) -> Suite:
        """What this checkout follows: the ``SUITE`` of the first module in the folder of benchmarks that has one.

        Raises ``BadInput`` where there is none.
        """
        for path in sorted(self.benchmarks.glob("[!_]*.py")):
            try:
                module = runpy.run_path(str(path))
            except USER_ERRORS as error:
                raise BadInput(f"{path.relative_to(self.root)}: {type(error).__name__}: {error}") from error
            if "SUITE" in module:
                return Suite(*module["SUITE"])
        raise BadInput(f"no module in {self.benchmarks} has a SUITE")

    def configuration(self) -> dict[str, Any]:
        """asv's configuration from its file; raises ``BadInput`` where it cannot be read or lacks a setting."""
        path = self.root / CONFIGURATION
        try:
            import json5  # of the extra "history", which the report and its server do not need
        except ModuleNotFoundError:
            raise BadInput("json5 is not installed: pip install highway-bench[history]") from None
        try:
            configuration = json5.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadInput(f"{path.name} cannot be read: {error}") from error
        if not isinstance(configuration, dict):
            raise BadInput(f"{path.name} is not an object of settings")
        if lacking := [key for key in ("project", *FOLDER_SETTINGS) if not isinstance(configuration.get(key), str)]:
            raise BadInput(f"{path.name} must give as text: {', '.join(lacking)}")
        accepted = configuration.setdefault("regressions_first_commits", {})
        if not (isinstance(accepted, dict) and all(isinstance(one, str | None) for one in accepted.values())):
            raise BadInput(f"{path.name}: regressions_first_commits is no object of patterns and commits")
        return configuration

    @property
    def is_read_by_asv(self) -> bool:
        """Whether asv's own commands read the points: where the configuration names their folder."""
        return (self.root / str(self.configuration()["results_dir"])).resolve() == self.results

    def list_benchmarks(self, listed: Path) -> None:
        """Put asv's list of benchmarks next to the points, if its own commands read them."""
        if self.is_read_by_asv:
            with writing(self.results):
                self.results.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(listed, self.results / listed.name)

    def configured(self, name: str, **changes: Any) -> Path:
        """Write asv's configuration with absolute folders, and with ``changes``, as ``name`` into the working folder.

        asv reads relative paths as relative to the configuration file.
        """
        configuration = self.configuration()
        for key in FOLDER_SETTINGS:
            configuration[key] = str((self.root / configuration[key]).resolve())
        configuration |= {key: str(value) if isinstance(value, Path) else value for key, value in changes.items()}
        path = self.working / f"asv-{name}.conf.json"
        with writing(path):
            self.working.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(configuration, indent=1), encoding="utf-8")
        return path


def exclusive(
    function: Callable[Concatenate[Paths, Arguments], Returned],
) -> Callable[Concatenate[Paths, Arguments], Returned]:
    """Decorator: hold the working folder's lock while ``function`` runs, which may call other such functions.

    A second command would remove files that the first one reads. If another process holds the lock, a line on stderr
    names that process, and the call waits.
    """

    @functools.wraps(function)
    def locked(paths: Paths, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        path = paths.working / "lock"
        lock = file_lock(path, reentrant=True)
        with writing(paths.working):
            paths.working.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                sys.stderr.write(f"waiting for process {holder(path)}, which is using {paths.working}\n")
                lock.acquire()
        try:
            return function(paths, *args, **kwargs)
        finally:
            lock.release()

    return locked


def asv(
    paths: Paths,
    command: str,
    arguments: Sequence[str],
    changes: Mapping[str, object],
    environment: Mapping[str, str] | None = None,
    *,
    quiet: bool = False,
) -> None:
    """Run an asv command on this checkout, with its own configuration but ``changes``, and one thread.

    ``quiet`` prints asv's output only if it fails. Raises ``AsvFailed``, and ``BadInput`` if asv is not installed.
    """
    if importlib.util.find_spec("asv") is None:
        raise BadInput("asv is not installed: pip install highway-bench[history]")
    before = os.environ.get("PYTHONPATH")
    done = subprocess.run(
        [sys.executable, "-m", "asv", command, "--config", str(paths.configured(command, **changes)), *arguments],
        check=False,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "PYTHONPATH": str(SOURCE) + (os.pathsep + before if before else ""),
            "HIGHWAY_BENCH_HISTORY_ROOT": str(paths.root),
            **(environment or {}),
        },
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
    )
    if done.returncode not in (0, 2):  # 2: some benchmark failed, and the result file says which
        sys.stderr.write(done.stdout or "")
        raise AsvFailed(f"asv {command} ended with status {done.returncode}; its output is above")
