"""Requests to one worker that travel together: those that come while an earlier one is under way are sent as one message."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any

Send = Callable[[Sequence[Any]], Awaitable[Sequence[Any]]]
"""``await send(requests) -> answers``, in the same order."""

Waiting = list[tuple[Any, "asyncio.Future[Any]"]]


class RequestBatches:
    """Sends requests in batches. A request is sent at once unless another one to the same receiver has no answer yet.

    Fits that run side by side ask for a step each. Sent one by one, every small request would cost a message of its own; fits
    that wait for each other would leave the workers idle meanwhile. All methods run in one event loop.
    """

    def __init__(self) -> None:
        self._waiting: dict[Hashable, Waiting] = {}
        self._deliveries: set[asyncio.Task[None]] = set()

    async def ask(self, receiver: Hashable, request: Any, send: Send) -> Any:
        """Return the answer to a request.

        `receiver`: requests to the same receiver travel together.
        `send`: of this receiver. What it raises, each request of the batch raises.
        """
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if (waiting := self._waiting.get(receiver)) is not None:
            waiting.append((request, answer))
        else:
            self._waiting[receiver] = [(request, answer)]
            delivery = asyncio.create_task(self._deliver(receiver, send))
            self._deliveries.add(delivery)
            delivery.add_done_callback(self._deliveries.discard)
        return await answer

    async def _deliver(self, receiver: Hashable, send: Send) -> None:
        """Send what waits, batch after batch, until nothing does."""
        try:
            while batch := [(r, answer) for r, answer in self._waiting[receiver] if not answer.done()]:
                self._waiting[receiver] = []
                await self._send_batch(batch, send)
        finally:
            del self._waiting[receiver]

    async def _send_batch(self, batch: Waiting, send: Send) -> None:
        """Send a batch, and hand out the answers; it is given up once nobody waits for one of them."""

        async def sending() -> Sequence[Any]:
            return await send([request for request, _ in batch])

        sent = asyncio.create_task(sending())

        def given_up(_: Any) -> None:
            if all(answer.cancelled() for _, answer in batch):
                sent.cancel()

        for _, answer in batch:
            answer.add_done_callback(given_up)
        await asyncio.wait({sent})
        for i, (_, answer) in enumerate(batch):
            if answer.done():
                continue
            if sent.cancelled():
                answer.cancel()
            elif (error := sent.exception()) is not None:
                answer.set_exception(error)
            else:
                answer.set_result(sent.result()[i])
