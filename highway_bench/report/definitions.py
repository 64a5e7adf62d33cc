"""The words of a report, explained on the page for someone who has read nothing else."""

from __future__ import annotations

from typing import Final

from highway_bench.report.ratio import PERCENT
from highway_bench.success import EXPLAINED

DEFINITIONS: Final[tuple[tuple[str, str], ...]] = (
    (
        "block",
        "How a layer's input x and its transform H(x) are joined: plain (H alone), highway, residual and so on. "
        "H is the same under every block; only the connection differs.",
    ),
    ("family", "What H is: a dense layer, a convolution, attention, …"),
    ("depth", "Layers that the block joins. A stem before them and a head after them are not counted."),
    (
        "equal params, width or flops",
        "What is held equal between blocks. A gate has weights of its own, so under equal "
        "parameters a gated layer is narrower than a plain one; “parameters off” is what rounding of widths leaves.",
    ),
    *EXPLAINED.items(),
    ("k of n [low, high]", "Successes of runs with the 95 % Wilson interval of their share."),
    (
        "learning rate",
        "“Tuned” means that at every depth each block tried the same rates equally often; the rate of lowest "
        "final loss was run again on fresh seeds, and only these runs count. "
        "A best rate at the grid's edge is the largest or the smallest of those tried: a better one may lie outside.",
    ),
    (
        "final loss [low, high]",
        "Geometric mean over seeds of the mean of the last 5 % of training losses, with the 95 % t "
        "interval of its logarithm. Where a run diverged: the median with that run as infinite, without interval.",
    ),
    (
        "to threshold",
        "Seconds of training until the mean loss first meets the threshold: median over seeds, those that "
        "never do counted as infinite.",
    ),
    (
        "step ÷ plain's [low, high]",
        "Step time over plain's: the median of the ratios of steps that were sampled in turn in one process, and its "
        "95 % interval. Of several families: the geometric mean of the ratios, and of their intervals' ends.",
    ),
    (
        "undecided, not paired, too few samples",
        f"A ratio is quoted with its interval only. Where a bound of it is more than {PERCENT} from the value, "
        "taken as a factor, the ratio is called undecided and the interval alone is given: its size is open, even "
        "where the interval shows that it is not 1. Where the steps were not sampled in turn in one run, or too few "
        "of them, there is no interval, and so no ratio.",
    ),
    ("step time [p10, p90]", "Median and percentiles of all samples after warm-up; none is dropped."),
    (
        "noise floor",
        "How far apart two halves of one cell's own samples look: a difference between cells below it may be noise.",
    ),
    (
        "of roofline, time ÷ floor [p10, p90]",
        "The floor is the time that this device's own measured rates of matrix products, convolutions and copies "
        "would allow; the rates stand under Provenance. The share is what of it is reached; time ÷ floor is its "
        "inverse. Percentiles are of the step's samples. A dash: the step was faster than the floor, as with data in "
        "a cache, and the remark says so.",
    ),
    (
        "healthy, vanishes, explodes",
        "What the start does before any training. Forward: the root mean square (RMS) of the activations x_l after "
        "each layer, against the first layer's input x₀; the signal vanishes at the first layer where it is less than "
        "a hundredth of that, and explodes where it is more than a hundred times it, or no finite number. Backward: "
        "the same of the gradient dL/dx_l from the last layer down. Each verdict is that of most seeds; “4 of 5” says "
        "how many, “(9–10)” at which layers where they differ. It tells where training starts, not where it ends.",
    ),
    (
        "gain",
        "What every weight matrix of the layers, those of gates too, is multiplied by at the start.",
    ),
    (
        "gradient ÷, signal ×",
        "RMS of dL/dx₀ over that of dL/dx_L, and of x_L over that of x₀: 1 where the layers change no size.",
    ),
    (
        "mean T, T + C, saturated gates",
        "Mean of the transform gate at the start; of its sum with a carry gate of its own; and the share of gates "
        "within 0.05 of 0 or 1, which hardly move.",
    ),
    (
        "ξ",
        "Layers over which the cosine between two inputs' activations settles, from a least-squares fit of "
        "c* + a·exp(−l/ξ); none where it settles otherwise or changes by less than 0.05. About 6 ξ layers are said to "
        "be the depth to which inputs can still be told apart (arXiv:1611.01232).",
    ),
    (
        "log₁₀ s, ‖J‖²/d",
        "Of the Jacobian J = dx_L/dx₀ of d numbers: the decades between its largest and smallest singular value, or "
        "its rank where some are zero at float64's precision; and the mean of their squares, at more than 128 numbers "
        "an item from products with random vectors.",
    ),
    (
        "shattering",
        "Mean cosine between the gradients dL/dx₀ at neighbouring inputs, 32 on a line between two: near 1 where the "
        "gradient is smooth, near 0 where it is as noise (arXiv:1702.08591).",
    ),
    (
        "stands still",
        "Over the first steps of training: a layer whose ‖ΔW‖/‖W‖ is less than a hundredth of that of the layer which "
        "moves most.",
    ),
    (
        "mean T, shut, open, closed",
        "Of trained networks' transform gates over the training set: the mean; the units whose mean is below 0.05; the "
        "units above 0.5 for one item, on average, or for one item in a hundred; and the units and items above 0.95, "
        "where a coupled carry gate 1 − T is closed.",
    ),
    (
        "sparsity",
        "Hoyer's measure of how unequal the gates are: 0 where all are equal, 1 where all but one are zero. Of all "
        "gates for one item, and of their means over items.",
    ),
    ("class spread", "Standard deviation over classes of a gate's mean in each: whether gates route by class."),
    ("‖Δx‖ / ‖x‖", "How much a layer changes the stream: the norm of the difference over that of what it is given."),
    (
        "without a layer, costliest layer",
        "A layer that is cut out copies its input. The costliest is the one whose loss then rises most "
        "(arXiv:1507.06228, §4). Layers that carry nothing cannot be cut out.",
    ),
    ("FLOP, multiply-adds", "A multiply-add is two FLOP. Tables of published networks call multiply-adds FLOPs."),
    ("bytes a layer", "Activations that one layer keeps for the backward pass."),
    ("no verdict", "One short run, to see that the loss falls at all. It says nothing on depth and ranks nothing."),
    ("not testable with this budget", "No block succeeded with any seed, so the depth tells blocks apart by nothing."),
    ("three significant digits", "Printed numbers are rounded so; the store keeps every digit."),
)
