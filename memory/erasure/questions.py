"""Questions by button. Each waits in its conversation for at least an hour, and is answered once.

Above 1,000 in a conversation the earlier ones are erased. What an answer does is written elsewhere.
"""

from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Literal

from memory.store.keys import Scope
from memory.store.store import Store

_WAITS_S = 3600


def first_step(receipt_id: str) -> str:
    """Return the id under which the first of two steps stores its receipt."""
    return f"{receipt_id}:said"


class NotConfirmed(Exception):
    """Raised for an answer to a question that is `unknown`, or `not_yours`: asked of others."""


@dataclass(frozen=True, slots=True)
class Question:
    """What one person is asked. `about` is read by whoever acts on the answer.

    The outbox carries it (`bot.reply.parts.Part.question`): it is stored together with the reply.
    """

    kind: str
    asker: int
    about: str = ""
    nonce: str = field(default_factory=lambda: token_urlsafe(12))

    @property
    def stored(self) -> str:
        """The stored form."""
        return f"{self.kind}|{self.asker}|{self.about}"


@dataclass(frozen=True, slots=True)
class Questions:
    """Stores questions, withdraws them, and checks answers."""

    store: Store

    async def ask(
        self, conversation: Scope, kind: str, asker: int, about: str = "", nonce: str = ""
    ) -> str:
        """Store a question that no outbox carries; return its nonce, a new one if none is given."""
        question = Question(kind, asker, about)
        nonce = nonce or question.nonce
        await self.store.run("ask", conversation, {"questions": {nonce: question.stored}})
        return nonce

    async def withdraw(self, conversation: Scope, nonce: str, presser: int) -> bool:
        """Withdraw a question; return False if it was answered already.

        A confirmed erasure has begun and cannot be withdrawn. A job that the same person confirmed
        at the same moment may still start. A question that is gone counts as withdrawn. Raise
        `NotConfirmed` for a question that somebody else was asked.
        """
        if await self.store.client.call("EXISTS", self.store.keys.job(nonce)):
            return False
        request = {"nonce": nonce, "begun": first_step(nonce), "person": str(presser)}
        outcome = await self.store.run("withdraw", conversation, request)
        if outcome == b"not_yours":
            raise NotConfirmed("not_yours")
        return bool(outcome == b"withdrawn")

    async def check(self, conversation: Scope, nonce: str, kind: str, presser: int | None) -> str:
        """Return what the question was about; "" if it was carried out already.

        Raise `NotConfirmed` unless `presser` was asked this question and it still waits. None
        stands for an administrator of the group, who may answer for all. The nonce is the id of
        the job that follows, so a second press starts no second job.
        """
        confirm = self.store.keys.scope(conversation).confirm
        asked = await self.store.client.call("HGET", confirm, nonce)
        if asked is None or nonce.endswith((":run", first_step(""))):  # a forged press
            raise NotConfirmed("unknown")
        stored: str = asked.decode()
        is_done = stored.startswith("done|")
        if is_done:
            _, _, stored = (*stored.split("|", 2), "")[:3]
            if not stored:  # the question had expired before it was carried out
                return ""
        asked_kind, asker, about = (*stored.split("|", 2), "")[:3]
        if asked_kind != kind or (presser is not None and asker != str(presser)):
            raise NotConfirmed("not_yours")
        return "" if is_done else about

    async def begin(
        self, conversation: Scope, nonce: str, update_id: int
    ) -> tuple[str, Literal["first", "repeated"]] | None:
        """Mark what a yes begins; return what the question was about, None if nothing is to begin.

        Only "first" may begin it. "repeated": the turn of the same press has begun it before and
        did not come to its end, so nobody knows what became of it. None: the question was withdrawn
        or erased, or another press has begun it.
        """
        confirm = self.store.keys.scope(conversation).confirm
        run, mark = f"{nonce}:run", f"{update_id}:{token_urlsafe(12)}"
        *_, (asked, marked) = await self.store.client.pipeline(
            [
                # The client may send a command twice; the mark tells whose the first one was.
                ("HSETNX", confirm, run, mark),
                ("EXPIRE", confirm, _WAITS_S),
                ("HMGET", confirm, nonce, run),
            ]
        )
        if asked is None or not marked.startswith(b"%d:" % update_id):
            return None
        about = asked.split(b"|", 2)[2].decode()
        return about, "first" if marked == mark.encode() else "repeated"

    async def is_on_its_way(self, conversation: Scope, callback_data: str) -> bool:
        """Return whether an open turn is about to store what a button of its reply is about."""
        # A button ends a list behind its label, in JSON in a string of JSON. So does the language
        # of code, which has no colon.
        button = f'\\",\\"{callback_data}\\"]'
        if ":" not in button:
            return False
        return bool(await self.store.run("shows_button", conversation, {}, button))
