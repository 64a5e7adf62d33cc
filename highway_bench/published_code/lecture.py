"""The lecture's network as its own code in Keras writes it, trained by Keras; and by our code from the same weights.

The task ``keras-lecture`` trains it by ``Model.fit`` with Keras's own Adam, batches and loss. With ``steps`` in its
recipe it trains Keras's network and ours for so many steps instead, from equal weights on equal batches and with
Keras's loss, and measures by how much their losses differ.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
from torch import Tensor, nn

from highway_bench.cell import Cell
from highway_bench.data import Split, make_dataset
from highway_bench.errors import BadInput
from highway_bench.families.parts import FusedMaps, count_parameters
from highway_bench.tasks import tasks
from highway_bench.tasks.architecture_network import ON_DATA, cell_network
from highway_bench.tasks.base import CellCost, Skip, Task, cell_by_cell, value_of
from highway_bench.tasks.from_cell import cell_family, cell_spec, dataset_options, network_bytes, recipe_from
from highway_bench.tasks.measurement import Measurement, Metric, Outcome
from highway_bench.training.loop import Training
from highway_bench.training.recipe import TRAINING
from highway_bench.words import Word, whole

if TYPE_CHECKING:
    from highway_bench.training.checkpoint import CheckpointFolder

NAME = "keras-lecture"
CLASSES = 10
CLIPPED = 1e-7  # Keras's bound of probabilities
STEPS_PER_EPOCH = 53  # of 52,500 images in batches of 1,000
FLOP_RATE = 5e10  # of a CPU core; a training step is three forward passes
ABSENT = "Keras is not installed: pip install highway-bench[peers]"


class KerasLecture(Task):
    """The lecture's highway network, trained by Keras, or by Keras and by us from the same weights."""

    name = NAME
    version = "2"  # 2: with steps, our net is trained by the clipped loss too
    metrics = (
        Metric("epoch_train_loss", "nat", "lower", label="training loss of an epoch"),
        Metric("epoch_test_loss", "nat", "lower", label="test loss after an epoch"),
        Metric("epoch_test_accuracy", "1", "higher", label="test accuracy after an epoch", percent=True),
        Metric("seconds", "s", "lower", label="time to train"),
        Metric("loss_difference", "1", "lower", label="largest relative difference of a step's loss"),
    )
    coordinates = ("seed", "dataset")
    recipe_words: Mapping[str, Word] = {
        "epochs": whole(1).meaning("The epochs for which Keras trains."),
        **ON_DATA,
        **TRAINING,
    }

    def cost(self, cell: Cell) -> CellCost:
        flops = 3 * cell.depth * cell_spec(cell).layer_flops(cell_family(cell), cell.width, 1) * cell.batch_size
        both = "steps" in cell.recipe
        steps = value_of(cell, "steps", STEPS_PER_EPOCH * value_of(cell, "epochs", 1))
        work = steps * flops * (4 if both else 1)  # two networks, whose float64 takes twice as long
        return CellCost(10.0 + work / FLOP_RATE, (2 if both else 1) * network_bytes(cell))

    def timeout(self, cell: Cell) -> float:
        return 60.0 + 20.0 * self.cost(cell).seconds

    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        return cell_by_cell(cells, compared if cells and "steps" in cells[0].recipe else fitted)


def fitted(cell: Cell) -> Outcome:
    """Keras's losses by epoch, as ``fit`` prints them. Raises ``Skip`` without Keras."""
    with keras_in(cell) as keras:
        data = make_dataset(str(cell.dataset), **dataset_options(cell)).load(seed=cell.seed)
        keras.utils.set_random_seed(cell.seed)
        model = keras_model(keras, cell.depth, cell.width)
        start = time.perf_counter()
        log = model.fit(
            *arrays(data.train),
            batch_size=cell.batch_size,
            epochs=value_of(cell, "epochs", 1),
            validation_data=arrays(data.test),
            verbose=0,
        ).history
        seconds = time.perf_counter() - start
        about = f"Keras {keras.__version__}"
        names = {"epoch_train_loss": "loss", "epoch_test_loss": "val_loss", "epoch_test_accuracy": "val_accuracy"}
        measurements = [
            Measurement(metric=metric, value=float(value), axis="epoch", index=epoch)
            for metric, key in names.items()
            for epoch, value in enumerate(log[key], start=1)
        ]
        measurements.append(Measurement(metric="seconds", value=seconds, message=about))
        return Outcome(cell, tuple(measurements), int(model.count_params()))


def compared(cell: Cell) -> Outcome:
    """By how much the losses of Keras's network and ours differ, step by step, from the same weights and batches."""
    with keras_in(cell) as keras:
        train = make_dataset(str(cell.dataset), **dataset_options(cell)).load(seed=cell.seed).train
        ours = cell_network(cell.but(task="trainability"))
        theirs = keras_model(keras, cell.depth, cell.width)
        copy_weights(ours, theirs)
        training = Training(
            ours, train, "class", recipe_from(cell), cell.batch_size, cell.seed, own_loss=clipped_cross_entropy
        )
        order = Training(ours, train, "class", recipe_from(cell), cell.batch_size, cell.seed).batches
        batches = itertools.islice(order, training.recipe.steps)
        losses = [
            float(theirs.train_on_batch(*arrays(Split(*(part[batch] for part in train)), cell.dtype))[0])
            for batch in resetting(theirs, batches)
        ]
        training.run()
        largest = max(abs(one / other - 1) for one, other in zip(losses, training.losses, strict=True))
        about = f"Keras {keras.__version__}; losses from {training.losses[0]:.3g} to {training.losses[-1]:.3g} nat"
        difference = Measurement(metric="loss_difference", value=largest, message=about)
        return Outcome(cell, (difference,), count_parameters(ours))


def clipped_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Keras's loss of a softmax: −ln p of the right class, where p is at least 1e-7 and at most 1 − 1e-7.

    Beyond these bounds an item has no gradient. ``outputs`` (N, C) are logits, ``targets`` (N,) classes."""
    chosen = outputs.softmax(-1).gather(-1, targets[:, None])
    return -chosen.clamp(CLIPPED, 1 - CLIPPED).log().mean()


@contextmanager
def keras_in(cell: Cell) -> Iterator[Any]:
    """Keras on torch, computing in the cell's dtype and on its device. Raises ``Skip`` where it is not installed,
    ``BadInput`` where this process has it with another backend."""
    if find_spec("keras") is None:
        raise Skip(ABSENT)
    os.environ.setdefault("KERAS_BACKEND", "torch")  # read at its first import
    import keras

    if keras.backend.backend() != "torch":
        raise BadInput(f"Keras computes with {keras.backend.backend()} here: set KERAS_BACKEND=torch")
    before, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx(cell.dtype)  # of Adam's rate
    keras.config.set_dtype_policy(cell.dtype)  # of layers and of the mean of losses
    from keras.src.backend.common import dtypes  # on torch, Keras casts products of float64 to float32

    device = "gpu" if cell.device.startswith("cuda") else "cpu"  # by default, a GPU that the machine has
    try:
        with patch.dict(dtypes.BIT64_TO_BIT32_DTYPE, float64="float64"), keras.device(device):
            yield keras
    finally:
        keras.config.set_floatx(before)
        keras.config.set_dtype_policy(policy)


def keras_model(keras: Any, depth: int, width: int) -> Any:
    """The lecture's network: ``depth`` highway layers on ``width`` inputs and a softmax, compiled with Adam."""
    layers = keras.layers
    x = inputs = keras.Input((width,))
    for layer in range(depth):
        h = layers.Dense(width, activation="relu", kernel_initializer="he_normal", name=f"h-{layer}")(x)
        t = layers.Dense(width, activation="sigmoid", kernel_initializer="glorot_normal", name=f"t-{layer}")(x)
        x = layers.Add()([layers.Multiply()([h, t]), layers.Multiply()([x, 1 - t])])
    model = keras.Model(inputs, layers.Dense(CLASSES, activation="softmax", name="classes")(x))
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def copy_weights(ours: nn.Module, theirs: Any) -> None:
    """Set the weights of Keras's model to those of our network."""
    products = [part.product for part in ours.modules() if isinstance(part, FusedMaps)]
    head = [part for part in ours.modules() if isinstance(part, nn.Linear)][-1]
    maps: dict[str, tuple[Tensor, Tensor]] = {"classes": (head.weight, head.bias)}
    for layer, product in enumerate(products):
        assert product.bias is not None
        for name, weight, bias in zip("ht", product.weight.chunk(2), product.bias.chunk(2), strict=True):
            maps[f"{name}-{layer}"] = weight, bias
    for name, (weight, bias) in maps.items():
        theirs.get_layer(name).set_weights([weight.detach().cpu().numpy().T, bias.detach().cpu().numpy()])


def resetting(model: Any, batches: Iterator[Tensor]) -> Iterator[Tensor]:
    """``batches``, each with reset metrics: ``train_on_batch`` returns the mean since the last reset."""
    for batch in batches:
        model.reset_metrics()
        yield batch


def arrays(split: Split, dtype: str = "float32") -> tuple[Any, Any]:
    """Images as rows of pixels, and their classes."""
    return split.inputs.flatten(1).numpy().astype(np.dtype(dtype)), split.targets.numpy()


def register() -> None:
    """Register the task, unless it is registered."""
    if NAME not in tasks:
        tasks.register(NAME, KerasLecture(), module=__name__)


def unregister() -> None:
    """Undo ``register``."""
    tasks.unregister(NAME)


register()
