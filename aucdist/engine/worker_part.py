"""The blocks on one worker, and the handler that runs steps on them there. This module needs `distributed`.

Handlers are what Dask's own shuffle uses. A `WorkerPlugin` adds the handler to those of the worker, and a client that knows the
address of the worker calls it. A call costs a tenth of the CPU time of a task, which the scheduler, the client and the worker
all process.
"""

import asyncio
import io
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from pickle import PickleBuffer
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np
from dask.sizeof import sizeof
from distributed import Worker, WorkerPlugin
from distributed.protocol import to_serialize
from distributed.protocol.pickle import loads
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.engine.blocks import BlockInfo, StoredBlock, info_of
from aucdist.engine.steps import Interrupted, run_on_blocks
from aucdist.errors import RunError, error_text

FEW_BYTES = 2**16
"""Up to this size, bytes are sent inside the message, which is fastest. More bytes are sent separately, so that they are not
copied."""

LONG_ARRAY = 512
"""The number of values from which arrays of integral numbers are sent as integers. Shorter arrays are sent unchanged."""

SECONDS_BETWEEN_LOOKS = 1.0
"""If the client is gone, a step stops at the end of a block after at most this many seconds."""

Answer = dict[str, Any]


class Part:
    """Blocks on one worker.

    Dask keeps a part as the result of a task, and computes it again elsewhere if the worker is lost. The memory of the blocks
    is in the part itself, so it moves with the part to disk or to another worker, and ends with it.

    Parameters
    ----------
    numbers : sequence of int
        The numbers of the blocks in the data set.
    blocks : sequence of Block or StoredBlock
        The blocks.
    """

    def __init__(self, numbers: Sequence[int], blocks: Sequence[Block | StoredBlock]):
        self.numbers, self.blocks = list(numbers), list(blocks)
        self.memories: dict[int, list[Any]] = {}
        """The memory of the blocks, by the number of the state that it belongs to."""

    @property
    def infos(self) -> list[tuple[int, BlockInfo]]:
        """Return the description of each block with its number."""
        return [(number, info_of(block)) for number, block in zip(self.numbers, self.blocks, strict=True)]


class StepRunner(WorkerPlugin):
    """Runs steps on the parts of a worker. The threads of the worker run them, so that its event loop stays free."""

    name = "aucdist-steps"
    idempotent = True

    def setup(self, worker: Worker) -> None:
        """Add the handlers to those of the worker."""
        self._worker = worker
        self._running: dict[tuple[str, int], threading.Event] = {}
        worker.handlers["aucdist_run"] = self.run
        worker.handlers["aucdist_stop"] = self.stop

    def teardown(self, worker: Worker) -> None:
        """Start no further blocks, because the worker ends."""
        for event in self._running.values():
            event.set()

    async def run(self, *, part: str, before: int | None, after: int, call: Any, forget: list[int]) -> Answer:
        """Run a step on a part.

        Parameters
        ----------
        part : str
            The key of the part.
        before : int or None
            The number of the state from which the step starts. None means empty memory.
        after : int
            The number of the state that the step leaves.
        call : bytes or list
            The step and its arguments, as `pack` returned them.
        forget : list of int
            States that are no longer needed.

        Returns
        -------
        dict
            On success, ``nodes`` and ``buffers`` have the merged summaries, packed, and ``changed`` says whether the step
            changed the memory of any block. ``error`` is the error of the step, packed. If the part or the state is missing,
            ``has`` lists the states of the part that exist, or is None if the part is missing.
        """
        held: Any = self._worker.data.get(part)
        if held is None:
            return {"has": None}
        for state in forget:
            held.memories.pop(state, None)
        if before is not None and before not in held.memories:
            return {"has": list(held.memories)}
        stop = self._running.setdefault((part, after), threading.Event())
        try:
            work = asyncio.get_running_loop().run_in_executor(
                self._worker.executors["default"], self._work, held, before, after, call, stop
            )
        except RuntimeError as error:  # a closing worker may still answer without any threads, and is treated as lost
            raise ConnectionError(f"{self._worker.address} is closing") from error
        try:
            while not (await asyncio.wait({work}, timeout=SECONDS_BETWEEN_LOOKS))[0]:
                if part not in self._worker.data:
                    stop.set()
        finally:
            self._running.pop((part, after), None)
        return work.result()

    async def stop(self, *, part: str, after: int) -> Answer:
        """Let a step start no further blocks."""
        if (event := self._running.get((part, after))) is not None:
            event.set()
        return {"status": "OK"}

    def _work(self, part: Part, before: int | None, after: int, call: Any, stop: threading.Event) -> Answer:
        try:
            step, args = loads(call)
            memory = [None] * len(part.blocks) if before is None else part.memories[before]
            threads = self._worker.state.nthreads
            new_memory, tree = run_on_blocks(step, part.blocks, memory, args, part.numbers, threads=threads, stop=stop)
            buffers = list[ndarray]()
            nodes = pack(tree.nodes(), buffers)
        except Interrupted:  # the part was released, for example because the scheduler was lost
            return {"has": None}
        except Exception as error:
            error.add_note("".join(traceback.format_exception(error)))
            try:
                data = pack(error)
                loads(data)  # some errors can be pickled but not unpickled
            except Exception:
                data = pack(RunError(error_text(error)))
            return {"error": data}
        part.memories[after] = new_memory
        return {
            "nodes": nodes,
            "buffers": [*map(to_serialize, buffers)],
            "changed": any(now is not then for now, then in zip(new_memory, memory, strict=True)),
        }


async def run_beside_scheduler(request: dict[str, Any], dask_worker: Worker) -> Answer:
    """Call the handler on the worker itself, for clients that reach only the scheduler, which relays the call."""
    runner: Any = dask_worker.plugins[StepRunner.name]
    answer = await runner.run(**request)
    # The scheduler relays the answer as one pickle, which would not restore wrapped arrays.
    return {**answer, "buffers": [wrapped.data for wrapped in answer.get("buffers", ())]}


def pack(value: Any, buffers: list[ndarray] | None = None) -> bytes:
    """Return a value as bytes. Later changes of the value do not change the bytes.

    Parameters
    ----------
    value : object
        The value.
    buffers : list of ndarray, optional
        The bytes of larger arrays are appended to this list without a copy, so these arrays must not change any more.

    Returns
    -------
    bytes
    """
    data = io.BytesIO()

    def is_copied(buffer: PickleBuffer) -> bool:
        """Return whether an array is copied into the bytes. If it is not, append it to the buffers."""
        values = np.frombuffer(buffer.raw(), np.uint8)
        if buffers is None or len(values) < FEW_BYTES:
            return True
        buffers.append(values)
        return False

    Packer(data, buffer_callback=is_copied).dump(value)
    return data.getvalue()


class Packer(cloudpickle.Pickler):
    """Pickles values.

    Long float64 arrays that have integer values, such as counts, are pickled as the smallest fitting integers.
    """

    def reducer_override(self, thing: Any) -> Any:
        """Return how an object is restored, if this differs from pickle."""
        if (
            type(thing) is ndarray
            and thing.dtype == np.float64
            and thing.size >= LONG_ARRAY
            and thing.flags.c_contiguous
        ):
            integers = as_integers(thing)
            if integers is not None:
                return as_floats, (integers,)
        return super().reducer_override(thing)


def as_integers(values: ndarray) -> ndarray | None:
    """Return long float64 arrays as integers of at most four bytes, or None if the values would not be restored exactly."""
    first_values = values.reshape(-1)[:LONG_ARRAY]
    if (first_values != np.trunc(first_values)).any():  # the first values rule out most arrays that are not counts
        return None
    low, high = float(values.min()), float(values.max())
    if not -(2.0**31) <= low <= high < 2.0**31:
        return None
    integers = values.astype(np.result_type(np.min_scalar_type(int(low)), np.min_scalar_type(int(high))))
    same = integers.itemsize <= 4 and (as_floats(integers).view(np.int64) == values.view(np.int64)).all()
    return integers if same else None  # -0.0 cannot be stored as an integer


def as_floats(integers: ndarray) -> ndarray:
    """Return the float64 values for which `as_integers` returned these integers."""
    return integers.astype(np.float64)


unpack: Callable[..., Any] = loads


def array_bytes(thing: Any) -> int:
    """Return the number of bytes of the arrays in a block, a dataclass, or nested lists, tuples and dicts of them."""
    if isinstance(thing, ndarray):
        return thing.nbytes
    if isinstance(thing, dict):
        return sum(map(array_bytes, thing.values()))
    if isinstance(thing, list | tuple):
        return sum(map(array_bytes, thing))
    if is_dataclass(thing) or isinstance(thing, Part):
        return sum(map(array_bytes, vars(thing).values()))
    return 64


# Dask would estimate a few bytes for each of these objects, so that workers would run out of memory.
for _type in (Block, Part):
    sizeof.register(_type)(array_bytes)
