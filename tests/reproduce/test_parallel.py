"""Step time by length: the verdicts for given times."""

import json
import math

import numpy as np
import pytest

from highway_bench.studies.reproduce import parallel
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.request import Request
from tests.reproduce import conftest
from tests.reproduce.conftest import C, N, R, U, verdicts

PARALLEL = reproductions.get("parallel")


def rows_of(attention, bilstm, device="cpu", noise=0.02):
    """Rows with random samples around the times (s) of two laws."""
    rng = np.random.default_rng(0)
    cells = PARALLEL.cells(Request(device=device))
    rows = conftest.rows_of({cell: {"step_time": 0.0, "roofline_share": 0.2} for cell in cells})
    laws = {"attention": attention, "bilstm": bilstm}
    samples = [laws[cell.family](cell.seq_len or 0) * rng.lognormal(0, noise, 15) for cell in cells]
    return rows.assign(samples=[json.dumps(list(own)) for own in samples for _ in range(2)])


def outcome(attention, bilstm, device="cpu", noise=0.02):
    return PARALLEL.outcome(rows_of(attention, bilstm, device, noise), Request(device=device))


def work(n):
    """The paper's work: n·d² and n²·d at d = 64, equal at n = d."""
    return 1e-5 * (n + n * n / 64) / 2


def linear(n):
    return 1e-5 * n


def test_time_that_follows_the_work():
    result = outcome(work, linear)
    assert verdicts(result) == [R] * 3 + [N]
    assert "n ≈ 6" in result.findings[2].measured
    (table,) = result.tables
    assert len(table.entries) == len(parallel.LENGTHS)


def test_one_length_below_the_width_at_which_attention_is_slower_contradicts():
    finding = outcome(lambda n: 1e-5 * n * (n / 40) ** 0.5, linear).findings[2]
    assert (finding.verdict, finding.quantities[0].name) == (C, "n = 48")


@pytest.mark.parametrize(
    ("attention", "bilstm", "noise", "expected"),
    [
        (lambda n: 1e-3 * n**0.5, lambda n: 1e-5 * n**1.5, 0.02, C),
        (linear, linear, 0.5, U),
    ],
)
def test_opposite_times_contradict_and_noise_decides_nothing(attention, bilstm, noise, expected):
    assert verdicts(outcome(attention, bilstm, noise=noise)) == [expected] * 3 + [N]


@pytest.mark.parametrize(("attention", "verdict"), [(lambda n: 1e-4 + 1e-9 * n * n, R), (work, C)])
def test_on_a_gpu_a_flat_step_is_the_claim(attention, verdict):
    assert verdicts(outcome(attention, linear, device="cuda"))[3] == verdict


def test_the_crossing():
    def table(attention, bilstm):
        return parallel.times(rows_of(attention, bilstm, noise=1e-6))

    assert parallel.crossing(table(work, linear)) == pytest.approx(64, abs=1)
    assert parallel.crossing(table(lambda n: linear(n) / 2, linear)) is None
    assert parallel.crossing(table(lambda n: linear(n) * 2, linear)) == 0.0
    assert math.isnan(parallel.crossing(table(work, linear)[:0]) or 0.0)


def test_lengths_that_failed_are_left_out():
    rows = rows_of(work, linear)
    rows.loc[(rows["family"] == "attention") & (rows["seq_len"] == 16), ["status", "value"]] = ["oom", float("nan")]
    result = PARALLEL.outcome(rows, Request())
    assert verdicts(result)[:2] == [R] * 2
    assert verdicts(result)[2] == N  # n = 32 alone is not enough
