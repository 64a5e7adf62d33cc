"""A package as a maintainer has one: three layers, a connection, a C extension, a version that its build generates, and
the commits of its life. ``python -m tests.history.own_package FOLDER`` makes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PYPROJECT = """[build-system]
requires = ["setuptools>=70", "setuptools-scm>=8"]
build-backend = "setuptools.build_meta"

[project]
name = "mine"
dynamic = ["version"]
requires-python = ">=3.11"
dependencies = ["torch"]

[project.entry-points."highway_bench.families"]
gated-mlp = "mine.layers:GatedMLP"
mixer = "mine.layers:Mixer"
scaled = "mine.scaled:Scaled"

[project.entry-points."highway_bench.blocks"]
damped = "mine.damped"

[tool.setuptools]
packages = ["mine"]

[tool.setuptools_scm]
version_file = "mine/_version.py"
fallback_version = "0"
"""
SETUP = """from setuptools import Extension, setup

setup(ext_modules=[Extension("mine._fast", ["mine/fast.c"])])
"""
FAST = """#include <Python.h>

static PyObject *factor(PyObject *self, PyObject *args) { return PyFloat_FromDouble(0.5); }
static PyMethodDef methods[] = {{"factor", factor, METH_NOARGS, "A factor."}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", NULL, -1, methods};
PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
"""
LAYERS = '''"""Layers that keep the shape of their input."""

import torch
from torch import nn
from torch.nn import functional

from mine._version import version


class GatedMLP(nn.Module):
    """y = V(act(W x) * U x), four times as wide inside."""

    def __init__(self, width):
        super().__init__()
        self.inner, self.gate, self.back = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return self.back(functional.silu(self.inner(x)) * self.gate(x))


class Mixer(nn.Module):
    """y = V relu(W x)."""

    def __init__(self, width):
        super().__init__()
        self.inner, self.back = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return self.back(torch.relu(self.inner(x)))
'''
SCALED = '''"""A layer that is scaled by a compiled factor."""

from torch import nn

from mine._fast import factor


class Scaled(nn.Module):
    """y = factor W x."""

    def __init__(self, width):
        super().__init__()
        self.map = nn.Linear(width, width)

    def forward(self, x):
        return factor() * self.map(x)
'''
DAMPED = '''"""A damped residual connection."""

from highway_bench.blocks import Block, register_block


@register_block("damped", equation="y = 0.9x + 1·H(x)", source="here", summary="a damped carry")
class Damped(Block):
    """y = 0.9x + 1·H(x)."""

    def __init__(self, site):
        super().__init__()
        self.carry = site.family.carry(site)
        self.transform = site.family.transform(site)

    def forward(self, x):
        return 0.9 * self.carry(x) + self.transform(x)
'''
START = {
    "pyproject.toml": PYPROJECT,
    "setup.py": SETUP,
    "mine/__init__.py": "",
    "mine/fast.c": FAST,
    "mine/layers.py": LAYERS,
    "mine/scaled.py": SCALED,
    "mine/damped.py": DAMPED,
    "README.md": "Mine.\n",
    ".gitignore": "__pycache__/\n*.so\n*.egg-info/\nbuild/\nmine/_version.py\n",
}
SILU, GELU = "functional.silu(self.inner(x))", "functional.gelu(self.inner(x))"
RELU, KEEPS = "torch.relu(self.inner(x))", "torch.relu(self.inner(x)).sigmoid()"
COMMITS = (  # message, file, what is replaced, by what
    ("A note", "README.md", "Mine.", "Mine, with a note."),
    ("Names", "mine/layers.py", "Layers that keep", "Layers, which keep"),
    ("A typing note", "mine/scaled.py", "A layer that is", "A layer, which is"),
    ("GELU", "mine/layers.py", SILU, GELU),
    ("Refactor", "mine/layers.py", "import torch\nfrom", "import torch\n\n\nfrom"),
    ("Sigmoid on top", "mine/layers.py", RELU, KEEPS),
    ("Broken import", "mine/layers.py", "from mine._version import version", "from mine._version import versions"),
    ("Mended", "mine/layers.py", "from mine._version import versions", "from mine._version import version"),
    ("C that does not compile", "mine/fast.c", "#include <Python.h>", "#include <Python.h>\nnot C;"),
    ("C again", "mine/fast.c", "#include <Python.h>\nnot C;", "#include <Python.h>"),
    ("Another note", "README.md", "with a note", "with two notes"),
)


class OwnPackage:
    """The package's repository in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def make(cls, root: Path) -> OwnPackage:
        """The repository in ``root``, which must not exist, with its commits: of them a branch of two that is squashed,
        and a merge."""
        root.mkdir(parents=True)
        one = cls(root)
        one.git("init", "-q", "-b", "main")
        for path, text in START.items():
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text)
        one.commit("Start")
        for message, path, before, after in COMMITS:
            one.change(message, path, before, after)
        one.git("checkout", "-q", "-b", "merged")
        one.change("On a branch", "mine/scaled.py", "is scaled by", "is scaled with")
        one.git("checkout", "-q", "main")
        one.git("merge", "-q", "--no-ff", "-m", "Merge", "merged")
        one.git("branch", "-q", "-D", "merged")
        return one

    def squash(self) -> tuple[str, str]:
        """Squash a branch of two commits into ``main``: its tip, and the commit that has its files."""
        self.git("checkout", "-q", "-b", "feature")
        self.change("Half", "mine/damped.py", "A damped residual", "A damped, residual")
        self.change("Whole", "mine/damped.py", "damped, residual", "damped and residual")
        tip = self.git("rev-parse", "HEAD")
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "--squash", "feature")
        self.git("commit", "-q", "-m", "Squashed")
        self.git("branch", "-q", "-D", "feature")
        return tip, self.git("rev-parse", "HEAD")

    def change(self, message: str, path: str, before: str, after: str) -> str:
        """Commit a replacement in a file, and return the commit."""
        text = (self.root / path).read_text()
        assert before in text
        (self.root / path).write_text(text.replace(before, after))
        return self.commit(message)

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def named(self, message: str) -> str:
        """The commit of a message."""
        return self.git("log", "--format=%H", f"--grep=^{message}$", "-1")

    def git(self, *words: str) -> str:
        who = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "advice.detachedHead=false"]
        done = subprocess.run(["git", "-C", str(self.root), *who, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()


if __name__ == "__main__":
    OwnPackage.make(Path(sys.argv[1]))
