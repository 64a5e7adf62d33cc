"""Rows as the tasks would write them, from closed forms, so that no measurement is needed."""

import json
import math
import random

import pandas as pd

from highway_bench.measure.statistics import ratio_over_processes
from highway_bench.results.schema import COLUMNS, row

BLOCKS = ("plain", "highway", "highway-free", "residual", "pre-norm", "post-norm")
FAMILIES = ("dense", "dense-pair", "conv", "conv-pair", "bilstm", "mlp", "attention", "transformer")
COST = {"plain": 1.0, "highway": 1.32, "highway-free": 1.61, "residual": 1.04, "pre-norm": 1.19, "post-norm": 1.22}
REACH = {"plain": 10, "highway": 60, "highway-free": 30, "residual": 100, "pre-norm": 100, "post-norm": 20}
LADDER = {
    "steps": 500,
    "optimiser": "sgd",
    "rate": "tuned",
    "rates": [0.003, 0.01, 0.03, 0.1, 0.3],
    "threshold": 0.1,
    "verdict": True,
}
PLAIN = [1.0, 1.1, 1.2, 1.1, 1.0, 1.1, 1.2, 1.0]
SHORT = {"steps": 120, "optimiser": "sgd", "rate": 0.03, "threshold": 0.1, "verdict": False}


def frame_of(rows):
    """Rows as ``Store.frame()`` gives them."""
    kinds = {"INTEGER": "Int64", "REAL": "float64", "TEXT": "object"}
    frame = pd.DataFrame.from_records(rows, columns=list(COLUMNS))
    return frame.astype({name: kinds[kind] for name, (kind, _) in COLUMNS.items()})


def cell(task, block, family, depth, **values):
    """A row's columns for one cell; ``recipe`` may be a dictionary."""
    recipe = json.dumps(values.pop("recipe", {}), sort_keys=True, separators=(",", ":"))
    common = {
        "run_id": "run-1",
        "time_utc": "2026-01-02T03:04:05+00:00",
        "commit": "abc1234",
        "machine": "Example CPU, 2 cores",
        "device": "cpu",
        "torch": "2.13.0",
        "threads": 1,
        "task": task,
        "task_version": "1",
        "block": block,
        "block_options": "{}",
        "family": family,
        "family_options": "{}",
        "match": "params",
        "nominal_width": 71,
        "width": 71 if block in ("plain", "residual") else 50,
        "depth": depth,
        "batch_size": 64,
        "dtype": "float32",
        "mode": "eager",
        "recipe": recipe,
        "seed": 0,
        "status": "ok",
        "params": depth * 5_100 + 1_000,
    }
    stored = row(**(common | values))
    parts = [task, block, family, depth] + [
        str(stored[name])
        for name in (
            "phase",
            "mode",
            "dataset",
            "recipe",
            "trial",
            "seed",
            "seq_len",
            "block_options",
            "machine",
            "run_id",
        )
    ]
    return stored | {"digest": values.get("digest", "/".join(map(str, parts)))}


def metric(base, name, value, unit, better="lower", **values):
    """One metric of a cell."""
    return base | {"metric": name, "value": value, "unit": unit, "better": better} | values


def timing(base, samples, plain=None, processes=4):
    """The rows of a cell that was timed in several processes, in turn with ``plain``: by default, itself."""
    ranked = sorted(samples)
    middle = ranked[len(ranked) // 2]
    plain = samples if plain is None else plain
    process = [index * processes // len(samples) for index in range(len(samples))]
    ratio = ratio_over_processes(samples, plain, process)
    low, high = (None if math.isnan(bound) else bound for bound in (ratio.low, ratio.high))
    paired = {"process": process, "wall": samples, "plain": plain, "yardstick": plain}
    return [
        metric(
            base,
            "step_time",
            middle,
            "s",
            low=ranked[len(ranked) // 10],
            high=ranked[-1 - len(ranked) // 10],
            n=len(samples),
            samples=json.dumps(samples),
            paired=json.dumps(paired),
        ),
        metric(base, "plain_ratio", ratio.value, "1", low=low, high=high, n=ratio.n),
        metric(base, "yardstick_ratio", ratio.value, "1", low=low, high=high, n=ratio.n),
        metric(base, "waited", 0.02, "1"),
        metric(base, "disturbed", 0.0, "1"),
        metric(base, "step_time_p99", ranked[-1], "s"),
        metric(base, "throughput", 64 / middle, "sample/s", "higher"),
        metric(base, "flop_rate", 3e9 / middle * 1e-3, "FLOP/s", "higher"),
        metric(base, "roofline_share", 0.31, "1", "higher", low=0.27, high=0.33),
        metric(base, "slowdown", 1 / 0.31, "1", low=1 / 0.33, high=1 / 0.27),
        metric(base, "matmul_rate", 71.5e9, "FLOP/s", "higher"),
        metric(base, "copy_rate", 11.3e9, "B/s", "higher"),
        metric(base, "first_step", 3 * middle, "s"),
        metric(base, "budget_mismatch", 0.0023, "1"),
    ]


def memory(base, per_layer):
    """The rows of a cell whose memory was counted."""
    weights = 4.0 * base["params"]
    return [
        metric(base, "parameter_bytes", weights, "B"),
        metric(base, "gradients", weights, "B"),
        metric(base, "optimiser_state", weights, "B"),
        metric(base, "saved_activations", per_layer * base["depth"], "B"),
        metric(base, "saved_per_layer", per_layer, "B"),
        metric(base, "peak", 3 * weights + per_layer * base["depth"], "B"),
    ]


def training(
    base,
    loss,
    *,
    rate,
    steps=None,
    step_seconds=1e-3,
    together=1,
    curve=False,
):
    """The rows of a training run: it succeeds where its loss is at most 0.23, and diverges where it has none."""
    success = loss is not None and loss <= 0.23
    status = "diverged" if loss is None else "ok" if success else "stalled"
    base = base | {"status": status}
    if loss is None:
        base = base | {"message": "the loss was not finite at step 7"}
    reached = (steps or 200) if success else None
    rows = [
        metric(base, "final_loss", loss, "nat"),
        metric(base, "success", float(success), "1", "higher"),
        metric(base, "steps_to_threshold", reached, "step"),
        metric(base, "seconds_to_threshold", reached * step_seconds if reached else None, "s"),
        metric(base, "step_seconds", step_seconds, "s"),
        metric(base, "together", together, "1", ""),
        metric(base, "rate", rate, "1", ""),
        metric(base, "success_loss", 0.1 * math.log(10), "nat", ""),
    ]
    if loss is not None:
        accuracy = max(0.1, 1 - loss / 2.4)
        rows += [
            metric(base, "train_accuracy", accuracy, "1", "higher"),
            metric(base, "test_loss", loss * 1.2, "nat"),
            metric(base, "test_accuracy", accuracy - 0.02, "1", "higher"),
        ]
    if curve:
        end = 2.0 if loss is None else loss
        rows += [
            metric(base, "loss", 2.3 * (end / 2.3) ** (step / 120), "nat", axis="step", index=float(step))
            for step in range(6, 121, 6)
        ]
    return rows


def start(base, change, *, mean_t=None):
    """The rows of a start whose activations change by a factor ``change`` a layer, its gradients as much downwards."""
    depth = base["depth"]
    out = next((layer for layer in range(depth + 1) if not 0.01 <= change**layer <= 100), None)
    way = "explodes" if change > 1 else "vanishes"
    ends = {f"{size}_{word}_at": None for size in ("signal", "gradient") for word in ("vanishes", "explodes")}
    if out is not None:
        ends |= {f"signal_{way}_at": out, f"gradient_{way}_at": depth - out}
    values_of = {
        "activation_ratio": change**depth,
        "gradient_ratio": change**depth,
        "jacobian_gain": change ** (2 * depth),
        "jacobian_spread": 1.5,
        "jacobian_rank": 71,
        "depth_scale": 4.0,
        "gradient_correlation": 0.9,
        "budget_mismatch": 0.002,
        **ends,
    }
    values_of |= {"gate_mean": mean_t, "gate_saturation": 0.2} if mean_t is not None else {}
    rows = [metric(base, name, value, "1", "") for name, value in values_of.items()]
    for layer in range(depth + 1):
        for name, value in (("activation", change**layer), ("gradient", change ** (depth - layer))):
            rows.append(metric(base, name, value, "1", "", axis="layer", index=float(layer)))
    return rows


def inside(base, loss, *, gated):
    """The rows of a trained network from the gates task: without gates, the change of the stream and the lesion."""
    depth = base["depth"]
    rows = training(base, loss, rate=0.1, curve=True)
    base = base | {"status": rows[0]["status"]}
    rows += [metric(base, "intact_loss", loss, "nat"), metric(base, "intact_error", loss / 10, "1")]
    by_layer = {"stream_change": 0.5, "lesion_loss": loss + 0.3, "lesion_error": loss / 10 + 0.1}
    if gated:
        rows += [metric(base, "sparsity_one", 0.4, "1", ""), metric(base, "sparsity_average", 0.1, "1", "")]
        by_layer |= {
            "gate_bias_start": -2.0,
            "gate_bias_end": -2.3,
            "gate_activity": 0.15,
            "gates_shut": 0.2,
            "gates_full": 0.01,
            "gates_open_one": 0.12,
            "gates_open_average": 0.05,
            "gates_open_some": 0.3,
            "gate_class_spread": 0.06,
        }
    for name in ("mixing_start", "mixing_end", "mixing_share_start", "mixing_share_end"):
        for layer in range(1, depth + 1):
            row_of_matrix = [1 / (layer - branch) for branch in range(layer)]
            rows.append(
                metric(base, name, 0.5, "1", "", axis="layer", index=float(layer), samples=json.dumps(row_of_matrix))
            )
    return rows + [
        metric(base, name, value * (1 + layer / depth), "1", "", axis="layer", index=float(layer))
        for name, value in by_layer.items()
        for layer in range(1, depth + 1)
    ]


def whole(blocks=BLOCKS, seeds=5, families=FAMILIES):
    """A store as a ``standard`` run leaves it: all combinations timed and counted, dense families trained by ladder."""
    draw = random.Random(1)
    rows = []
    for rank, family in enumerate(families):
        for depth in (4, 16) if family == "dense" else (4,):
            plain_times = []
            for block in blocks:
                base = cell(
                    "throughput",
                    block,
                    family,
                    depth,
                    phase="forward-backward",
                    seq_len=16 if family in ("bilstm", "attention", "transformer") else None,
                )
                if (family, block) == ("bilstm", "post-norm"):
                    rows.append(base | {"status": "timeout", "message": "stopped after 300 s", "metric": "step_time"})
                    continue
                cost = 1 + (COST.get(block, 1.4) - 1) * (1.2 - 0.1 * rank)
                seconds = 2e-4 * 1.9**rank * depth * cost
                times = [seconds * draw.lognormvariate(0, 0.03) for _ in range(32)]
                plain_times = times if block == "plain" else plain_times
                rows += timing(base, times, plain_times)
                size = 64 * 71 * 4 * (1 + rank) * (1 + 1.5 * (cost - 1))
                rows += memory(cell("memory", block, family, depth, phase="train-step"), round(size))
    for family in families[:2]:
        for block in blocks:
            for depth in (10, 20, 50, 100):
                reach = REACH.get(block, 40) * (2 if family == "dense-pair" else 1)
                step = 1.2e-4 * depth * COST.get(block, 1.4)
                rows += _rung(draw, block, family, depth, reach, step, seeds)
    for family in families[2:]:
        for block in blocks:
            base = cell("trainability", block, family, 10, dataset="mnist-5k", recipe=SHORT)
            loss = 1.4 * draw.lognormvariate(0, 0.4)
            rows += training(base, min(loss, 2.2), rate=0.03, curve=True)
    for block in blocks:
        for seed in range(2):
            base = cell("propagation", block, families[0], 10, recipe={"gain": 1.0}, dtype="float64", seed=seed)
            change = (1.8 if block == "residual" else 0.97) * draw.lognormvariate(0, 0.01)
            rows += start(base, change, mean_t=0.1 if block.startswith("highway") else None)
    for block in blocks:
        for seed in range(2):
            base = cell("gates", block, families[0], 10, dataset="digits", recipe={**LADDER, "rate": 0.1}, seed=seed)
            rows += inside(base, 0.1 + 0.01 * seed, gated=block.startswith("highway"))
        for family in families:
            base = cell("cost", block, family, 4)
            rows += [metric(base, "parameters", base["params"], "1"), metric(base, "multiply_adds", 4e5, "1")]
    rows.append(
        cell("trainability", "highway", "bilstm", 10, dataset="sentiment", recipe=SHORT)
        | {"status": "skipped", "message": "sentiment is not in the data folder", "metric": "final_loss"}
    )
    return rows


def _rung(draw, block, family, depth, reach, step, seeds):
    rows = []
    for trial, rate in enumerate(LADDER["rates"]):
        fixed = {name: value for name, value in LADDER.items() if name != "rates"} | {"rate": rate}
        base = cell("trainability", block, family, depth, dataset="mnist-5k", recipe=fixed, trial=trial, seed=1000)
        hard = depth / reach * (rate / 0.03 if rate > 0.03 else (0.03 / rate) ** 0.5)
        rows += training(
            base,
            None if rate * depth > 12 and block != "pre-norm" else 0.02 * 8 ** min(hard, 2.2),
            rate=rate,
            step_seconds=step,
        )
    for seed in range(seeds):
        base = cell("trainability", block, family, depth, dataset="mnist-5k", recipe=LADDER, seed=seed)
        hard = depth / reach * draw.lognormvariate(0, 0.25)
        loss = 0.02 * 8 ** min(hard, 2.25) * draw.lognormvariate(0, 0.15)
        lost = block == "plain" and depth == 100 and seed == 3
        rows += training(base, None if lost else loss, rate=0.03, steps=60 + depth + 5 * seed, step_seconds=step)
    return rows


def trained(
    losses,
    *,
    recipe=LADDER,
    rate=0.1,
    step_seconds=0.002,
    together=1,
    curve=False,
    **values,
):
    """The rows of trainings on digits in ``dense`` with these final losses by block and depth, one a seed."""
    rows = []
    for (block, depth), by_seed in losses.items():
        for seed, loss in enumerate(by_seed):
            base = cell("trainability", block, "dense", depth, dataset="digits", recipe=recipe, seed=seed, **values)
            words = {"steps": 100 + 10 * seed, "step_seconds": step_seconds, "together": together, "curve": curve}
            rows += training(base, loss, rate=rate, **words)
    return rows


def timed(costs, depth=10, phase="train-step", **values):
    """The rows of steps in ``dense`` that take this many times as long as plain's, each timed in turn with it."""
    return [
        one
        for block, cost in costs.items()
        for one in timing(
            cell("throughput", block, "dense", depth, phase=phase, **values), [cost * x for x in PLAIN], PLAIN
        )
    ]
