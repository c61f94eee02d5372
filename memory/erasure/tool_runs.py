"""Tools that run only if the person agrees with a button: the question, and the one run.

The question is a confirmation of its conversation, so an erasure takes it too.
"""

import time
from dataclasses import astuple
from secrets import token_urlsafe
from typing import Literal

import orjson

from memory.behaviors.steps import ToolQuestion
from memory.erasure.confirmations import Confirmations, NotConfirmed
from memory.store.keys import Scope
from memory.store.store import Store

_VALID_S = 600
_KEPT_S = 3600


class ToolRuns:
    """Stores questions, checks answers, and lets each tool run at most once."""

    def __init__(self, store: Store) -> None:
        self._client = store.client
        self._keys = store.keys
        self._confirmations = Confirmations(store)

    async def ask(self, conversation: Scope, asker: int, question: ToolQuestion) -> str:
        """Store a question and return its nonce; `asker` may agree within ten minutes."""
        about = orjson.dumps([time.time() + _VALID_S, *astuple(question)]).decode()
        return await self._confirmations.ask(conversation, "tool", asker, about)

    async def check(self, conversation: Scope, nonce: str, presser: int) -> ToolQuestion:
        """Return a question that is still valid; raise `NotConfirmed`."""
        about = await self._confirmations.check(conversation, nonce, "tool", presser)
        if not about:  # the nonce of an erasure that was carried out
            raise NotConfirmed("unknown")
        expires_at, *question = orjson.loads(about)
        if expires_at <= time.time():
            raise NotConfirmed("unknown")
        return ToolQuestion(*question)

    async def begin(
        self, conversation: Scope, nonce: str, update_id: int
    ) -> tuple[ToolQuestion, Literal["first", "repeated"]] | None:
        """Mark a run before it begins; return what to run, or None if nothing is to be done.

        Only "first" may run the tool. "repeated": the turn of the same press has begun a run before
        and did not come to its end, so nobody knows what became of it. None: the question was
        withdrawn or erased, or another press has run the tool.
        """
        confirm = self._keys.scope(conversation).confirm
        run, mark = f"{nonce}:run", f"{update_id}:{token_urlsafe(12)}"
        *_, (asked, marked) = await self._client.pipeline(
            [
                # The client may send a command twice; the mark tells whose the first one was.
                ("HSETNX", confirm, run, mark),
                ("EXPIRE", confirm, _KEPT_S),
                ("HMGET", confirm, nonce, run),
            ]
        )
        if asked is None or not marked.startswith(b"%d:" % update_id):
            return None
        _, *question = orjson.loads(asked.split(b"|", 2)[2])
        return ToolQuestion(*question), "first" if marked == mark.encode() else "repeated"
