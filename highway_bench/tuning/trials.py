"""Study: the trials of one arm of a search, drawn by optuna's random sampler, and the losses told back.

Each arm has a study of the hyper-parameters that all arms share and, where its block has gates, one of the gates' own:
two streams. The sampler is seeded anew for every trial by (seed, stream, number), so that trial i is the same in each
arm, however many are asked for, and after a resume.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from highway_bench.cell import canonical
from highway_bench.data.base import check_count
from highway_bench.errors import BadInput
from highway_bench.tuning.space import Choice, LogUniform, Prior, Space

if TYPE_CHECKING:
    import optuna  # what trains a network without a search does not wait for this import
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

JOURNAL = "search.journal"  # optuna's log, in the folder that a study is kept in
ABOUT = "made with"  # the attribute of an optuna study that says what it was made with


@dataclass(frozen=True)
class Trial:
    """One draw: its number, from 0, and the value of each hyper-parameter."""

    number: int
    values: Mapping[str, Any]


class Search:
    """Random trials from ``shared`` and, with gates, from ``gates``: kept in ``folder``, or in memory without one.

    ``name`` tells this arm from others in the same folder. Raises ``BadInput`` where the folder has a search of that
    name which was made with other priors or another seed.
    """

    def __init__(
        self,
        shared: Space,
        gates: Space | None = None,
        *,
        seed: int = 0,
        name: str = "search",
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        check_count("a search's seed", seed, least=0)
        twice = sorted(shared.priors.keys() & gates.priors.keys()) if gates else []
        if twice:
            raise BadInput(f"both streams of the search draw {', '.join(twice)}")
        storage = _storage(None if folder is None else Path(folder))
        spaces = [shared, *([gates] if gates else [])]
        self._streams = [
            _Stream(space, seed, number, f"{name}, {part}", storage)
            for number, (space, part) in enumerate(zip(spaces, ("shared", "gates"), strict=False))
        ]

    def ask(self, count: int) -> list[Trial]:
        """The first ``count`` trials; those that are new are drawn."""
        check_count("a search's trials", count, least=1)
        drawn = zip(*(stream.ask(count) for stream in self._streams), strict=True)
        return [
            Trial(number, {name: value for part in parts for name, value in part.items()})
            for number, parts in enumerate(drawn)
        ]

    def tell(self, number: int, loss: float | None) -> None:
        """Keep the final loss of a trial that was asked for; ``None``, or one that is not finite, for a run that
        diverged. A trial that has ended keeps what it was told first."""
        for stream in self._streams:
            stream.tell(number, loss)

    def renew(self) -> None:
        """Forget every trial, and what was told of it."""
        for stream in self._streams:
            stream.renew()

    def told(self) -> dict[int, float]:
        """The loss of every trial that has ended, by number: infinite for one that diverged."""
        return self._streams[0].told()


class _Stream:
    """One optuna study, and the seeds of its trials."""

    def __init__(
        self, space: Space, seed: int, stream: int, name: str, storage: optuna.storages.BaseStorage | None
    ) -> None:
        import optuna

        try:
            with _quiet():
                self._study = optuna.create_study(storage=storage, study_name=name, load_if_exists=True)
        except (ValueError, KeyError) as error:
            raise BadInput(f"{JOURNAL} is no journal of a search: {error}") from error
        self._seed, self._stream, self._storage = seed, stream, storage
        self._distributions = {key: _distribution(prior) for key, prior in space.priors.items()}
        made = canonical({"priors": space.key, "seed": seed})
        before = self._study.user_attrs.get(ABOUT)
        if before is None:
            self._study.set_user_attr(ABOUT, made)
        elif before != made:
            raise BadInput(f"search {name!r} was made with other priors or another seed: name another store")

    def renew(self) -> None:
        import optuna

        about, name = self._study.user_attrs[ABOUT], self._study.study_name
        with _quiet():
            if self._storage is not None:
                optuna.delete_study(study_name=name, storage=self._storage)
            self._study = optuna.create_study(storage=self._storage, study_name=name)
        self._study.set_user_attr(ABOUT, about)

    def ask(self, count: int) -> list[dict[str, Any]]:
        import optuna

        for number in range(len(self._trials()), count):
            (seed,) = np.random.SeedSequence([self._seed, self._stream, number]).generate_state(1)
            self._study.sampler = optuna.samplers.RandomSampler(seed=int(seed))
            self._study.ask(self._distributions)
        return [dict(trial.params) for trial in self._trials()[:count]]

    def tell(self, number: int, loss: float | None) -> None:
        from optuna.trial import TrialState

        if not 0 <= number < len(self._trials()):
            raise BadInput(f"trial {number} was not asked for")
        with _quiet():
            if loss is None or not math.isfinite(loss):
                self._study.tell(number, state=TrialState.FAIL, skip_if_finished=True)
            else:
                self._study.tell(number, loss, skip_if_finished=True)

    def told(self) -> dict[int, float]:
        return {
            trial.number: math.inf if trial.value is None else trial.value
            for trial in self._trials()
            if trial.state.is_finished()
        }

    def _trials(self) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False)


def _distribution(prior: Prior) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if isinstance(prior, Choice):
        return CategoricalDistribution(prior.options)
    return FloatDistribution(prior.low, prior.high, log=isinstance(prior, LogUniform))


def _storage(folder: Path | None) -> optuna.storages.BaseStorage | None:
    """optuna's journal in ``folder``. A line that a kill left half written is cut off: nothing after it could be
    read."""
    if folder is None:
        return None
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / JOURNAL
        if path.exists():
            written = path.read_bytes()
            whole = written.rfind(b"\n") + 1
            if whole < len(written):
                os.truncate(path, whole)
        return JournalStorage(JournalFileBackend(str(path)))
    except OSError as error:
        raise BadInput(f"the search cannot be kept in {folder}: {error.strerror}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """optuna logs every study it makes and every trial that fails; both are ordinary here."""
    logger = logging.getLogger("optuna")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
