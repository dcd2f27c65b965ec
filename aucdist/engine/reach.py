"""Whether a client can call its workers, or reaches their scheduler alone."""

import asyncio
import time
import warnings
import weakref
from collections.abc import Awaitable
from typing import Any

from distributed import Client

from aucdist.engine.parts import StepRunner
from aucdist.errors import ClusterLost

SECONDS_TO_REACH = 5.0
"""A worker that does not answer a call without work for so long, and that the scheduler still has then, cannot be reached."""

MOST_LOOKS = 4
"""So often workers are called anew because all that were called before were lost."""

_direct: weakref.WeakKeyDictionary[Client, bool] = weakref.WeakKeyDictionary()


def is_direct(client: Client) -> bool:
    """Tell whether the client calls its workers itself; `install` has found it out."""
    return _direct[client]


def install(client: Client) -> None:
    """Install the handlers on all workers, present and future, and find out whether they can be called from here.

    Raises ClusterLost if the scheduler is lost meanwhile.
    """
    try:
        client.register_plugin(StepRunner())
    except OSError:
        # A worker was lost meanwhile, of which the scheduler makes an error: those that are left have the handlers, and it gives
        # them to those that come. Or it is lost itself.
        client.sync(_ask_scheduler, client)
    if client not in _direct:
        _direct[client] = client.sync(_can_be_reached, client)
        if not _direct[client]:
            warnings.warn(
                "the workers cannot be reached from here, only their scheduler: each step goes through it, which is slower. Run "
                "where the workers' addresses can be reached, or open their ports to here",
                RuntimeWarning,
                stacklevel=5,
            )


async def _ask_scheduler(client: Client) -> None:
    """Raise ClusterLost if the scheduler is lost."""
    await of_scheduler(client.nthreads())


async def _can_be_reached(client: Client) -> bool:
    """Tell whether any worker answers a call, or none was there long enough to say.

    One that is lost does not answer either, and says nothing of those that take its place.
    """

    async def answers(address: str) -> bool:
        try:
            await asyncio.wait_for(client.rpc(address).identity(), SECONDS_TO_REACH)
        except OSError:
            return False
        return True

    for _ in range(MOST_LOOKS):
        addresses = list(await of_scheduler(client.nthreads()))
        if any(await asyncio.gather(*map(answers, addresses))):
            return True
        if not await _are_lost(client, addresses):
            return False
    return True


async def _are_lost(client: Client, addresses: list[str]) -> bool:
    """Tell whether the scheduler has none of these workers any more; it may learn later than the client that one is lost."""
    end = time.monotonic() + SECONDS_TO_REACH
    while not set(addresses).isdisjoint(await of_scheduler(client.nthreads())):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.05)
    return True


async def of_scheduler(answer: Awaitable[Any]) -> Any:
    """Return what the scheduler answers.

    Raises ClusterLost if it does not.
    """
    try:
        return await answer
    except OSError as error:
        raise ClusterLost(f"the scheduler was lost: {error}") from error
