"""What the proofs by faults share: the fake tasks of the runner's tests."""

from tests.execution.conftest import fakes

__all__ = ["fakes"]
