"""How people talk under load: by a schedule made beforehand, or as soon as they are answered."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import cycle

import numpy as np
import numpy.typing as npt

from tests.lab.lean_telegram import LeanTelegram, Update
from tests.lab.made_up import CHARACTERS, made_up
from tests.lab.posting import Acknowledgement, Posting

Times = npt.NDArray[np.float64]
Deliver = Callable[[Update], Awaitable[None]]

PATIENCE_S = 90
TEXTS = tuple(message.text[: CHARACTERS // 2] for message in made_up(400).messages)


def arrivals(a_second: float, seconds: float, seed: int = 0) -> Times:
    """Return when messages of many people arrive, in seconds from 0: a Poisson process."""
    random = np.random.default_rng(seed)
    gaps = random.exponential(1 / a_second, int(a_second * seconds * 1.5) + 100)
    times: Times = np.cumsum(gaps)
    return times[times < seconds]


async def post_on_time(
    posting: Posting, updates: Sequence[Update], times: Times
) -> list[tuple[float, Acknowledgement]]:
    """Post each update at its time, without waiting for earlier ones.

    Return for each update when it was due, by the loop's clock, and its acknowledgement.
    """
    loop = asyncio.get_running_loop()
    requests = [posting.request(update) for update in updates]
    due = (loop.time() + times).tolist()
    answers = []
    for at, request in zip(due, requests, strict=True):
        await asyncio.sleep(at - loop.time())
        answers.append(posting.post(request))
    async with asyncio.timeout(PATIENCE_S):
        return list(zip(due, await asyncio.gather(*answers), strict=True))


@asynccontextmanager
async def talking(
    telegram: LeanTelegram, deliver: Deliver, persons: Sequence[int]
) -> AsyncIterator[None]:
    """Let people talk without pauses inside the block; raise the first error of one of them."""

    async def talk(person: int) -> None:
        for text in cycle(TEXTS):
            replied = telegram.reply_in(person)
            async with asyncio.timeout(PATIENCE_S):
                await deliver(telegram.said(person, text))
                await replied

    tasks = [asyncio.create_task(talk(person)) for person in persons]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    errors = [end for end in ends if not isinstance(end, asyncio.CancelledError)]
    if errors and isinstance(errors[0], BaseException):
        raise errors[0]
