"""The log of what a server was asked, which tests read and wait for."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tests.servers.model_api.answers import Usage
from tests.servers.model_api.errors import ApiError
from tests.servers.model_api.faults import Fault
from tests.servers.model_api.requests import ApiRequest, ChatRequest, EmbeddingsRequest


@dataclass(frozen=True, slots=True)
class Call:
    """One request, logged when it was judged and before anything is answered.

    `request` is None for one that was refused; `refusal` says why. `prompt_tokens` are counted as
    the server's dialect counts, `faults` are those that it met.
    """

    path: str
    request: ApiRequest | None = None
    refusal: ApiError | None = None
    prompt_tokens: int = 0
    faults: tuple[Fault, ...] = ()


class CallLog:
    """Every call since the server's start, oldest first; `billed` is the usage of what was sent.

    A broken stream is not billed, because its usage was never sent.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.billed: list[Usage] = []
        self._added = asyncio.Condition()

    @property
    def chats(self) -> list[ChatRequest]:
        """The valid requests for an answer."""
        return [call.request for call in self.calls if isinstance(call.request, ChatRequest)]

    @property
    def embedded(self) -> list[str]:
        """The texts for which vectors were asked."""
        requests = (call.request for call in self.calls)
        asked = (request for request in requests if isinstance(request, EmbeddingsRequest))
        return [text for request in asked for text in request.texts]

    @property
    def refusals(self) -> list[ApiError]:
        """The refusals of invalid requests; faults are not among them."""
        return [call.refusal for call in self.calls if call.refusal]

    async def add(self, call: Call) -> None:
        """Log a call, and wake the tasks that wait for it."""
        async with self._added:
            self.calls.append(call)
            self._added.notify_all()

    async def wait_for(
        self, fits: Callable[[Call], bool], *, count: int = 1, timeout_s: float = 60
    ) -> Call:
        """Return the `count`-th call that fits, also an earlier one; raise `TimeoutError`."""
        async with asyncio.timeout(timeout_s), self._added:
            await self._added.wait_for(lambda: sum(map(fits, self.calls)) >= count)
        return [call for call in self.calls if fits(call)][count - 1]
