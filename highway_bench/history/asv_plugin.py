"""Extensions of asv: two environments whose points form the same series, and a repository without git.

asv imports this by the name in asv.conf.json. An environment's python and requirements are part of a series' identity,
so both environments give the same strings, and no path: a checkout in another folder, or a commit built on its own,
continues the series. A newer torch starts a new one.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from asv import util
from asv.environment import ExistingEnvironment
from asv.plugins.virtualenv import Virtualenv
from asv.repo import NoRepository

from highway_bench.history.machine import PYTHON, pinned, requirements, series_name
from highway_bench.history.paths import SOURCE

COMMIT = "HIGHWAY_BENCH_HISTORY_COMMIT"
TIME = "HIGHWAY_BENCH_HISTORY_TIME"
ROOT = "HIGHWAY_BENCH_HISTORY_ROOT"


class Current(ExistingEnvironment):  # type: ignore[misc]
    """This interpreter and this checkout, whatever their folders are."""

    tool_name = "current"

    def __init__(self, conf: Any, python: str, given: dict[str, str], tagged_env_vars: dict[Any, str]) -> None:
        super().__init__(conf, "same", given | requirements(), tagged_env_vars)
        self._python = PYTHON
        self._root = os.path.abspath(os.environ.get(ROOT) or conf.repo)

    @classmethod
    def matches(cls, python: str) -> bool:
        return python in ("same", PYTHON)

    @property
    def name(self) -> str:
        return series_name()

    def run(self, args: list[str], **options: Any) -> Any:
        """Run python with this checkout first on its path: what is installed may be another one."""
        environment = dict(options.pop("env", os.environ))
        # asv removes the folders of PYTHONPATH from the path again: this checkout too, even where it is installed.
        before = environment.pop("PYTHONPATH", None)
        folders = [os.path.join(self._root, "src"), self._root, *([before] if before else [])]
        environment["ASV_PYTHONPATH"] = os.pathsep.join(folders)
        return super().run(args, env=environment, **options)


class Commits(Virtualenv):  # type: ignore[misc]
    """A virtual environment in which asv installs one commit after the other, on top of the packages installed here.

    It sees the packages of this interpreter, so torch (several GB) is installed once. asv builds each commit, with the
    commit's own requirements, and measures the commit's package, not this checkout.
    """

    tool_name = "commits"

    def __init__(self, conf: Any, python: str, given: dict[str, str], tagged_env_vars: dict[Any, str]) -> None:
        super().__init__(conf, python, given | requirements(), tagged_env_vars)
        self._executable = sys.executable

    @classmethod
    def matches(cls, python: str) -> bool:
        return python == PYTHON

    @property
    def name(self) -> str:
        return series_name()

    @property
    def dir_name(self) -> str:
        """A folder for each interpreter, since the environment refers to the interpreter's packages."""
        return hashlib.md5(f"{self.name} {sys.prefix}".encode()).hexdigest()

    def _setup(self) -> None:
        util.check_call([sys.executable, "-m", "virtualenv", "--no-periodic-update", "-p", sys.executable, self._path])
        here = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        # Only paths are written. An editable install's own .pth file is not followed, so this checkout stays hidden;
        # highway-bench, which may be one, comes last.
        paths = dict.fromkeys([*here, str(SOURCE)])
        target = self.packages / "packages_of_the_creator.pth"
        target.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")

    @property
    def packages(self) -> Path:
        """The folder in which the commit is installed."""
        return Path(self._path, "lib", f"python{PYTHON}", "site-packages")

    def _build_project(self, repo: Any, commit_hash: str, build_dir: str) -> None:
        file = Path(build_dir, "pyproject.toml")
        project = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        self._add(project.get("build-system", {}).get("requires", ["setuptools"]))
        super()._build_project(repo, commit_hash, build_dir)

    def _install_project(self, repo: Any, commit_hash: str, build_dir: str) -> None:
        super()._install_project(repo, commit_hash, build_dir)
        installed = distributions(name=self._project, path=[str(self.packages)])
        self._add(one for found in installed for one in found.requires or () if "extra ==" not in one)

    def _add(self, needed: Iterable[str]) -> None:
        """Install what is not here already, but no other torch or highway-bench."""
        packages = [one for one in needed if re.split(r"[^\w.-]", one)[0] not in pinned()]
        constraints = Path(self._path, "constraints.txt")
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in pinned().items()), encoding="utf-8")
        if packages:
            self._run_pip(["install", "--quiet", "-c", str(constraints), *packages])


class WithoutGit(NoRepository):  # type: ignore[misc]
    """A checkout without git, such as a copy of the files on a GPU machine: environment variables name its commit."""

    dvcs = "given"

    def get_hash_from_name(self, name: str) -> str:
        return os.environ.get(COMMIT, "0" * 40)

    def get_date(self, hash: str | None) -> int:  # noqa: A002 (the base class's name)
        return int(os.environ.get(TIME, "0"))

    def get_decorated_hash(self, commit_hash: str, hash_length: int = 8) -> str:
        return commit_hash[:hash_length]
