"""Comparison with peers: the cells of a request, and their run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from highway_bench.cell import MODES, Cell
from highway_bench.errors import BadInput
from highway_bench.execution.progress import Event
from highway_bench.families import make_family
from highway_bench.peers import task
from highway_bench.peers.base import Peer, peers
from highway_bench.peers.request import PHASES, PeerRequest
from highway_bench.plan.plan import AnyStore, Plan, RunResult
from highway_bench.tasks.from_cell import check_device, default_device

PRECISION = 0.01  # half-width of a ratio's interval from which on no process is added
LIMIT = 20.0  # seconds per peer of a group after which no process is added


class PeerSizes(NamedTuple):
    """Widths, layers and the batch at which the peers of a family are compared."""

    widths: tuple[int, ...]
    depth: int
    batch: int


SIZES: Mapping[str, Mapping[str, PeerSizes]] = {
    "cpu": {
        "dense": PeerSizes((50, 128, 256, 1024), 10, 128),
        "transformer": PeerSizes((64, 256), 4, 16),
        "bilstm": PeerSizes((64, 256), 4, 16),
    },
    "cuda": {
        "dense": PeerSizes((50, 256, 1024, 4096), 10, 1024),
        "transformer": PeerSizes((256, 1024), 4, 64),
        "bilstm": PeerSizes((256, 1024), 4, 64),
    },
}


def compare_peers(
    store: AnyStore | None = None,
    *,
    on_event: Callable[[Event], None] | None = None,
    command: Sequence[str] | None = None,
    **words: Any,
) -> RunResult:
    """Time our networks and other implementations of them in turn, on equal weights and inputs.

    ``words`` are the fields of ``PeerRequest``. Cells that ``store`` has are not measured again; without a store no
    rows are stored. ``table.peer_table`` makes a table of the result's rows.

    >>> compare_peers("reports/peers.sqlite", peer=["sequential"], width=[50])
    """
    return plan_of(PeerRequest.of(**words)).run(store, on_event=on_event, command=command)


def plan_of(request: PeerRequest) -> Plan:
    """The cells of ``request``. Modes that a peer lacks by its nature are left out."""
    task.register()
    device = request.device or default_device()
    check_device(device)
    names = peers.select(*(request.peer or ("*",)))
    cells = tuple(cell for name in names for cell in cells_of(peers.get(name), request, device))
    if not cells:
        raise BadInput(f"no graph is made of {', '.join(names)}: choose --mode eager")
    return Plan(cells, (task.__name__,), loads=False)


def cells_of(peer: Peer, request: PeerRequest, device: str) -> Iterator[Cell]:
    """The cells of one peer."""
    sizes = SIZES[device][peer.family]
    modes = [mode for mode in request.mode or MODES[:2] if mode != "compile" or peer.compiles]
    for width, phase, mode in itertools.product(request.width or sizes.widths, request.phase or PHASES[:1], modes):
        make_family(peer.family).check_width(width)
        yield Cell(
            task=task.Peers.name,
            block=peer.block,
            family=peer.family,
            depth=request.depth or sizes.depth,
            width=width,
            nominal_width=width,
            match="width",
            batch_size=request.batch_size or sizes.batch,
            phase=phase,  # type: ignore[arg-type]
            mode=mode,  # type: ignore[arg-type]
            device=device,
            threads=request.threads or 1,
            recipe={
                "precision": PRECISION,
                "limit": LIMIT,
                **request.recipe,
                "peer": peer.name,
                "version": peer.version,
            },
        )
