"""The Ray engine on real clusters of several nodes on this machine: the files ``check_*.py``.

Each of them runs in a network namespace that has only the loopback device. Elsewhere Ray would listen on the address
that this machine has in its network.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
NAMESPACES = (["unshare", "-n"], ["unshare", "-rn"])  # as root, and in a namespace of users where these are allowed


@pytest.fixture(scope="module")
def namespace():
    """The command that creates a network namespace; the tests are skipped where none can be created."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install -e .[cluster]")
    reason = ""
    for command in NAMESPACES:
        try:
            subprocess.run([*command, "true"], check=True, capture_output=True, text=True)
        except OSError as error:
            reason = str(error)
        except subprocess.CalledProcessError as error:
            reason = error.stderr.strip()
        else:
            return command
    pytest.skip(f"no network namespace can be created: {reason}")


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(FOLDER.glob("check_*.py")), ids=lambda file: file.stem)
def test_in_a_namespace(namespace, file, tmp_path):
    pytest_command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'inside'}"]
    done = subprocess.run(
        [*namespace, sys.executable, str(FOLDER / "loopback.py"), *pytest_command, str(file)],
        capture_output=True,
        text=True,
        cwd=FOLDER.parents[1],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        timeout=3000,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
