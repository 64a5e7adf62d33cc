"""Precision: float32 is IEEE float32 wherever something is measured, whatever torch and the environment prefer."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from highway_bench.errors import BadInput
from highway_bench.measure.precision import cast, ieee_float32, precision, repeatable, torch_dtype, use_precision

ROOT = Path(__file__).parents[2]
CHECK = """
import torch
cudnn = torch.backends.cudnn
assert not torch.backends.cuda.matmul.allow_tf32 and not cudnn.allow_tf32
assert torch.get_float32_matmul_precision() == "highest"
if hasattr(torch.backends, "fp32_precision"):
    assert "tf32" not in (torch.backends.fp32_precision, cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision)
"""
NEWER = {  # torch 2.9
    "newer interface": "torch.backends.fp32_precision = 'tf32'",
    "newer interface, convolutions": "torch.backends.cudnn.conv.fp32_precision = 'tf32'",
    "newer interface, recurrent layers": "torch.backends.cudnn.rnn.fp32_precision = 'tf32'",
}
SETTINGS = {
    "defaults": "",
    **(NEWER if hasattr(torch.backends, "fp32_precision") else {}),
    "older interface": "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True",
    "products alone": "torch.set_float32_matmul_precision('high')",
}
STARTS = {
    "worker": "from highway_bench.execution.worker import start; start('memory', 1, ())",
    "history": "from highway_bench.history.suite.requests import Requests; Requests('cpu')",
    "step benches": "import benches.conftest",
}

EACH_IN_A_FORK = """
import os, sys, torch
for script in {scripts}:
    child = os.fork()
    if not child:
        exec(script)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(script)
"""


def test_float32_is_ieee_and_products_are_repeatable_where_something_is_measured():
    """Although the environment asks for TF32; torch reads the variable of products at the process's first one."""
    repeatable = "\nimport os\nassert os.environ['CUBLAS_WORKSPACE_CONFIG'] == ':4096:8'"
    run([start + CHECK + repeatable for start in STARTS.values()], override="1")


def test_what_a_users_module_has_set_is_overruled():
    set_up = "from highway_bench.measure.precision import ieee_float32; ieee_float32()"
    run([f"{setting}\n{set_up}{CHECK}" for setting in SETTINGS.values()], override="0")


def settings():
    backends = torch.backends
    return backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()


IEEE, IN_TF32 = (False, False, "highest"), (True, True, "high")


def test_tf32_is_in_products_convolutions_and_recurrent_layers_alike():
    ieee_float32()
    with precision("tf32"):
        assert settings() == IN_TF32
    assert settings() == IEEE
    use_precision("tf32")
    assert settings() == IN_TF32
    with precision("float32"):
        assert settings() == IEEE
    assert settings() == IN_TF32
    use_precision("bfloat16")
    assert settings() == IEEE


@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="this torch has the older interface alone")
def test_the_newer_interface_of_torch_may_have_been_used_before():
    newer = torch.backends.cudnn.conv
    newer.fp32_precision = "tf32"
    with precision("float32"):
        assert settings() == IEEE
    ieee_float32()
    assert settings() == IEEE


def test_dtypes_by_name():
    assert [torch_dtype(name) for name in ("tf32", "float32", "bfloat16")] == [torch.float32] * 2 + [torch.bfloat16]
    for wrong in ("int64", "nonsense", "nn"):
        with pytest.raises(BadInput, match="floating"):
            torch_dtype(wrong)


def test_operators_without_a_repeatable_kernel_are_named(monkeypatch):
    """Deterministic kernels count on a CPU too, so torch's own warning can be seen there."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    with repeatable(torch.device("cpu")) as lacking:
        assert not torch.are_deterministic_algorithms_enabled()
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always")
        with repeatable(torch.device("cuda")) as lacking:
            assert torch.are_deterministic_algorithms_enabled()
            assert torch.is_deterministic_algorithms_warn_only_enabled()
            assert torch.backends.cudnn.deterministic
            for _ in range(2):
                torch.zeros(4).put_(torch.tensor([0]), torch.ones(1))
            warnings.warn("Memory Efficient attention defaults to a non-deterministic algorithm.", stacklevel=1)
            warnings.warn("another", stacklevel=1)
    assert lacking == {"put_", "Memory Efficient attention"}
    assert [str(one.message) for one in left] == ["another"]
    assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.deterministic
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


def run(scripts, *, override):
    """Run each script, which checks what is set, in a fork of a process where torch reads the variable at its import:
    torch takes no two interfaces in one process."""
    environment = os.environ | {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": override, "PYTHONPATH": str(ROOT)}
    environment.pop("CUBLAS_WORKSPACE_CONFIG", None)
    done = subprocess.run(
        [sys.executable, "-c", EACH_IN_A_FORK.format(scripts=scripts)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_cast_keeps_imaginary_parts_and_integers():
    network = nn.Module()
    network.real, network.filter = (nn.Parameter(torch.randn(3, dtype=one)) for one in (torch.float32, torch.cfloat))
    network.register_buffer("turn", torch.full((2,), 1j))
    network.register_buffer("order", torch.arange(3))
    start = {name: value.clone() for name, value in network.state_dict().items()}
    parameters = list(network.parameters())
    double = cast(network, torch.float64).state_dict()
    dtypes = {"real": torch.float64, "filter": torch.complex128, "turn": torch.complex128, "order": torch.int64}
    assert {name: value.dtype for name, value in double.items()} == dtypes
    assert all(torch.equal(value, start[name].to(value.dtype)) for name, value in double.items())
    assert all(one is other for one, other in zip(network.parameters(), parameters, strict=True))
