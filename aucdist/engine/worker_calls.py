"""Run steps on workers from the client by one call to each worker, and recover from lost workers."""

import asyncio
import itertools
import os
import time
import warnings
import weakref
from collections import deque
from collections.abc import Awaitable, Sequence
from typing import Any

from distributed import Client, Future, KilledWorker
from distributed.protocol import to_serialize

from aucdist.data.storage.scratch import AnonymousFile
from aucdist.engine.steps import MergeTree, Step, Summary
from aucdist.engine.worker_part import FEW_BYTES, Answer, StepRunner, pack, run_beside_scheduler, unpack
from aucdist.errors import ClusterLost, RunError

ALLOWED_LOSSES = 3
"""The number of workers that may be lost in one step on one part. Dask allows as many for a task. If more are lost, the step
itself probably kills them."""

SECONDS_UNTIL_NOTICED = 30.0
"""The number of seconds for which the client waits until the scheduler has noticed that a worker is lost. Until then, the
scheduler would still name this worker."""

SECONDS_BETWEEN_LOOKS = 2.0
"""The number of seconds between two checks that a worker that runs a step is still connected."""

SECONDS_WITHOUT_WORKERS = 120.0
"""The number of seconds without any worker after which a cluster counts as lost."""

SECONDS_BETWEEN_KEEPALIVES = 30.0
"""The number of seconds between two tasks for the scheduler. It does not see the steps, and would end a cluster with an idle
timeout."""

MAX_CALL_BYTES = 2**16
"""The size from which calls that may have to be repeated are kept in a temporary file, so that the client's memory does not
grow."""

SECONDS_TO_REACH = 5.0
"""The number of seconds after which a worker cannot be reached, if it does not answer a call without work and the scheduler still
knows it."""

_direct: weakref.WeakKeyDictionary[Client, bool] = weakref.WeakKeyDictionary()

_call_numbers = itertools.count()


class Call:
    """A step with its arguments, packed. If they are large and may have to be repeated, they are kept in a file.

    Parameters
    ----------
    step : Step
        The step.
    args : tuple
        The arguments of the function.
    file : AnonymousFile
        The file for the large calls of this chain and of its forks.

    Attributes
    ----------
    state : int
        The number of the state that the step leaves on the workers.
    name : str
        The name of the step.
    """

    def __init__(self, step: Step, args: tuple[Any, ...], file: AnonymousFile):
        self.state, self.name = next(_call_numbers), getattr(step, "__name__", type(step).__name__)
        self.file = file
        self._data: bytes | None = pack((step, args))
        self._start, self._size = 0, len(self._data)

    @property
    def data(self) -> bytes:
        """The step and its arguments, as `pack` returned them."""
        data = self._data  # another thread may move it to the file meanwhile
        return os.pread(self.file.descriptor, self._size, self._start) if data is None else data

    def keep(self) -> None:
        """Keep step and arguments for as long as they may have to be repeated."""
        if self._data is not None and self._size > MAX_CALL_BYTES:
            self._start, self._data = self.file.append(self._data), None


class KeptState:
    """A state that the workers keep as long as this object exists."""

    def __init__(self, parts: "Parts", state: int):
        self._parts, self._state = parts, state
        parts.held.add(state)

    def __del__(self) -> None:
        self._parts.held.discard(self._state)
        self._parts.dropped.append(self._state)


class Parts:
    """The parts of a data set on the workers of a cluster. Several threads may run chains of steps at the same time.

    Parameters
    ----------
    client : Client
        The client of the cluster.
    futures : sequence of Future
        Futures of `Part`, each of which can be recomputed from its own task graph.

    Attributes
    ----------
    held : set of int
        The states that the workers keep.
    dropped : deque of int
        The states that the workers are to forget with the next call.
    """

    def __init__(self, client: Client, futures: Sequence[Future]):
        self.client, self.futures = client, list(futures)
        self.held: set[int] = set()
        self.dropped: deque[int] = deque()
        self._addresses: dict[Any, str] = {}
        self._last_keepalive = time.monotonic()
        self._keepalive: Future | None = None
        install(client)

    def run(self, chain: Sequence[Call]) -> tuple[Summary, bool]:
        """Run the last call of a chain on every part. If a part was lost, the whole chain is repeated on it first.

        Parameters
        ----------
        chain : sequence of Call
            All calls that changed the memory since it was empty.

        Returns
        -------
        summary : Summary
            The sum of the summaries.
        changed : bool
            Whether the step changed the memory of any block. If it did not, it need not be repeated when a worker is lost.

        Raises
        ------
        ClusterLost
            If the scheduler is lost, or all workers have been lost for a while.
        RunError
            If workers are lost again and again in this step.
        """
        if self.client.status != "running":
            raise ClusterLost(f"the scheduler was lost before step '{chain[-1].name}': look at its log, and run again")
        self._prevent_idle_timeout()
        tasks = list[asyncio.Task[Any]]()
        try:
            answers = self.client.sync(self._run_everywhere, chain, tasks)
        except BaseException:  # for example Ctrl-C, which the other threads do not receive
            if tasks and self.client.loop is not None:
                self.client.loop.add_callback(tasks[0].cancel)
            raise
        total = MergeTree(
            node for answer in answers for node in unpack(answer["nodes"], buffers=answer["buffers"])
        ).total()
        return total, any(answer["changed"] for answer in answers)

    async def _run_everywhere(self, chain: Sequence[Call], tasks: list[asyncio.Task[Any]]) -> list[Answer]:
        """Run the last call on all parts. The task that does this is added to `tasks`."""
        if (task := asyncio.current_task()) is not None:
            tasks.append(task)
        # A call starts from the state that the previous call left, so earlier states are no longer needed.
        forget = [self.dropped.popleft() for _ in range(len(self.dropped))]
        forget += [old.state for old in chain[-3:-2] if old.state not in self.held]
        running = [asyncio.create_task(self._run_on(future, chain, forget)) for future in self.futures]
        try:
            return await asyncio.gather(*running)
        except BaseException:
            for task in running:
                task.cancel()
            if _direct[self.client]:  # no result is needed any more, so the workers start no further blocks
                held = [future for future in self.futures if future.key in self._addresses]
                calls = (
                    self.client.rpc(self._addresses[future.key]).aucdist_stop(part=future.key, after=chain[-1].state)
                    for future in held
                )
                self._stopping = asyncio.gather(
                    *(asyncio.wait_for(call, SECONDS_TO_REACH) for call in calls), return_exceptions=True
                )
            raise

    async def _run_on(self, future: Future, chain: Sequence[Call], forget: list[int]) -> Answer:
        """Run the last call on one part, on whichever worker has it, and return its answer, which has summaries."""
        call, before = chain[-1], chain[-2].state if len(chain) > 1 else None
        losses = 0
        while True:
            address = await self._find(future, call)
            try:
                answer = await self._ask(address, future, call, before, forget)
                if "has" in answer:
                    await self._repeat(address, future, chain, answer["has"])
                    continue
            except OSError as error:
                self._addresses.pop(future.key, None)
                losses += 1
                if losses > ALLOWED_LOSSES:
                    raise lost_workers_error(call.name) from error
                # The time to wait is limited, because this client may have lost a worker that the scheduler still reaches.
                end = time.monotonic() + SECONDS_UNTIL_NOTICED
                while address in await self._holders(future) and time.monotonic() < end:
                    await asyncio.sleep(0.05)
                continue
            if "error" in answer:
                raise unpack(answer["error"])
            return answer

    async def _repeat(
        self, address: str, future: Future, chain: Sequence[Call], available_states: list[int] | None
    ) -> None:
        """Repeat the calls before the last one, from the newest state that exists. The part may be lost meanwhile."""
        if available_states is None:  # the part was moved, and the scheduler knows its new worker
            self._addresses.pop(future.key, None)
            await asyncio.sleep(0.1)
            return
        newest_call = max((i for i, call in enumerate(chain) if call.state in available_states), default=-1)
        for i in range(newest_call + 1, len(chain) - 1):
            before = chain[i - 1].state if i else None
            forget = [] if i < 2 or chain[i - 2].state in self.held else [chain[i - 2].state]
            answer = await self._ask(address, future, chain[i], before, forget)
            if "error" in answer:
                raise unpack(answer["error"])
            if "has" in answer:
                return

    async def _ask(self, address: str, future: Future, call: Call, before: int | None, forget: list[int]) -> Answer:
        """Let a worker run a step, and return its answer.

        Raises
        ------
        OSError
            If the worker is lost, or Dask has given it up.
        """
        request = {
            "part": str(future.key), "before": before, "after": call.state, "call": call.data, "forget": forget
        }  # fmt: skip
        request_task = asyncio.create_task(self._send(address, request))
        try:
            while not (await asyncio.wait({request_task}, timeout=SECONDS_BETWEEN_LOOKS))[0]:
                self._prevent_idle_timeout()
                if address not in await self._holders(future):
                    raise ConnectionError(f"{address} does not hold its part any more")
        finally:
            request_task.cancel()
        return request_task.result()

    async def _send(self, address: str, request: dict[str, Any]) -> Answer:
        """Send a request for a part to a worker, and return the answer."""
        if _direct[self.client]:
            if len(request["call"]) >= FEW_BYTES:
                request["call"] = to_serialize(request["call"])
            answer: Any = await self.client.rpc(address).aucdist_run(**request)
        else:
            answers = await self.client.run(run_beside_scheduler, request, workers=[address], on_error="return")
            answer = answers.get(address)
        if not isinstance(answer, dict):  # the worker or its handler does not exist
            raise ConnectionError(f"{address}: {answer!r}")
        return answer

    async def _find(self, future: Future, call: Call) -> str:
        """Return the address of the worker that has a part. If Dask is computing the part again, wait for it.

        Raises
        ------
        ClusterLost
            If the scheduler is lost, or all workers have been lost for a while.
        """
        address = self._addresses.get(future.key)
        empty_since = None
        while address is None:
            if future.status == "error":
                try:
                    await self.client.gather([future])
                except KilledWorker as error:
                    raise lost_workers_error(call.name) from error
            if holders := await self._holders(future):
                self._addresses[future.key] = address = holders[0]
                break
            if await of_scheduler(self.client.nthreads()):
                empty_since = None
            else:
                empty_since = empty_since or time.monotonic()
                if time.monotonic() - empty_since > SECONDS_WITHOUT_WORKERS:
                    raise ClusterLost(
                        f"no worker was connected for {SECONDS_WITHOUT_WORKERS:g} s in step '{call.name}': look at "
                        "the logs of the workers, and run again"
                    )
            await asyncio.sleep(0.1)
        return address

    async def _holders(self, future: Future) -> list[str]:
        """Return the addresses of the workers that have a part."""
        if future.status == "cancelled":  # aucdist never cancels these futures
            raise ClusterLost("the scheduler was lost: look at its log, and run again")
        holders = await of_scheduler(self.client.who_has([future]))
        return sorted(holders.get(future.key, ()))

    def _prevent_idle_timeout(self) -> None:
        """Submit a task to the scheduler, unless the last one was submitted a short time ago."""
        if time.monotonic() - self._last_keepalive > SECONDS_BETWEEN_KEEPALIVES:
            self._last_keepalive = time.monotonic()
            self._keepalive = self.client.submit(int, pure=False)


def lost_workers_error(name: str) -> RunError:
    """Return the error for a step during which several workers were lost, one after the other."""
    return RunError(
        f"several workers were lost, one after the other, in step '{name}', most often for lack of memory: give each worker "
        "more memory"
    )


def install(client: Client) -> None:
    """Install the handlers on all present and future workers, and determine whether this client can call them.

    Raises
    ------
    ClusterLost
        If the scheduler is lost meanwhile.
    """
    try:
        client.register_plugin(StepRunner())
    except OSError:
        # If a worker was lost meanwhile, the scheduler reports an error, but the other workers have the handlers, and new ones
        # get them. If the scheduler itself was lost, this call raises ClusterLost.
        client.sync(_workers_of, client)
    if client not in _direct:
        _direct[client] = client.sync(_can_be_reached, client)
        if not _direct[client]:
            warnings.warn(
                "this process reaches the scheduler but not the workers. Each step therefore goes through the scheduler, which "
                "is slower. Run in the network of the workers, or open their ports",
                RuntimeWarning,
                stacklevel=5,
            )


async def _workers_of(client: Client) -> set[str]:
    """Return the addresses of the workers that the scheduler knows. Raise ClusterLost if the scheduler is lost."""
    return set(await of_scheduler(client.nthreads()))


async def _can_be_reached(client: Client) -> bool:
    """Return whether a worker answers a call.

    Return True if there was no worker long enough, because lost workers do not answer.
    """
    called = await _workers_of(client)
    while called:
        calls = [asyncio.wait_for(client.rpc(address).identity(), SECONDS_TO_REACH) for address in called]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        if not all(isinstance(answer, OSError) for answer in answers):
            return True
        # The scheduler may notice the loss of a worker later than the client.
        end = time.monotonic() + SECONDS_TO_REACH
        while called & (present := await _workers_of(client)):
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0.05)
        called = present
    return True


async def of_scheduler(answer: Awaitable[Any]) -> Any:
    """Return the answer of the scheduler.

    Raises
    ------
    ClusterLost
        If it does not answer.
    """
    try:
        return await answer
    except OSError as error:
        raise ClusterLost(f"the scheduler was lost: {error}. Look at its log, and run again") from error
