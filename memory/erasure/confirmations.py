"""Clear wins: erasing one conversation at once, without its lease, by a one-use confirmation.

What was in flight for the old epoch is refused by every later step of its turn.
"""

from secrets import token_urlsafe
from typing import Literal

from memory.queue.mailbox import Mailbox
from memory.scopes.changes import Receipt
from memory.store.keys import Scope
from memory.store.store import Store

_CONFIRM_S = 3600

Question = Literal["clear", "forget", "admin", "messages"]


def first_step(receipt_id: str) -> str:
    """Return under which id the first of two steps keeps its receipt: it has been carried out."""
    return f"{receipt_id}:said"


class NotConfirmed(Exception):  # noqa: N818 - says when
    """Raised when a confirmation is `unknown` (or expired), or somebody else's: `not_yours`."""


class Erasure:
    """Asks for a confirmation and carries out what was confirmed."""

    def __init__(self, store: Store, mailbox: Mailbox) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._tell_erased = store.tell_erased
        self._ttl_s = store.ttl_s
        self._mailbox = mailbox

    async def ask(
        self, conversation: Scope, question: Question, asker: int, about: str = ""
    ) -> str:
        """Return a nonce that lets `asker` confirm once within an hour; `about` says what."""
        nonce = token_urlsafe(12)
        confirm = self._keys.conversation(conversation).confirm
        await self._client.pipeline(
            [
                ("HSET", confirm, nonce, f"{question}|{asker}|{about}"),
                ("EXPIRE", confirm, _CONFIRM_S),
            ]
        )
        return nonce

    async def cancel(self, conversation: Scope, nonce: str, presser: int) -> bool:
        """Withdraw a question, or find it gone already; false once it was confirmed.

        What was confirmed has begun, and to confirm it again finishes it. Raise `NotConfirmed` when
        the question is somebody else's.
        """
        confirm = self._keys.conversation(conversation).confirm
        asked, begun = await self._client.call("HMGET", confirm, nonce, first_step(nonce))
        job = await self._client.call("EXISTS", self._keys.job(nonce))
        kind, _, rest = (asked or b"").partition(b"|")
        if begun or job or kind == b"done":
            return False
        if asked is None:
            return True
        if rest.split(b"|")[0] != str(presser).encode():
            raise NotConfirmed("not_yours")
        await self._client.call("HDEL", confirm, nonce)
        return True

    async def check(
        self, conversation: Scope, nonce: str, question: Question, presser: int | None
    ) -> str:
        """Return what the question was about, "" when it was carried out.

        Raise `NotConfirmed` unless the presser (`None`: whoever may speak for all) was asked
        exactly this and it still counts. The nonce of a job is its id, so that pressing twice
        starts one job.
        """
        asked = await self._client.call(
            "HGET", self._keys.conversation(conversation).confirm, nonce
        )
        if asked is None:
            raise NotConfirmed("unknown")
        stored: str = asked.decode()
        is_done = stored.startswith("done|")
        if is_done:
            _, _, stored = (*stored.split("|", 2), "")[:3]
            if not stored:  # the question had expired before it was carried out
                return ""
        kind, asker, about = (*stored.split("|", 2), "")[:3]
        if kind != question or (presser is not None and asker != str(presser)):
            raise NotConfirmed("not_yours")
        return "" if is_done else about

    async def clear(
        self,
        conversation: Scope,
        nonce: str,
        presser: int,
        update_id: int,
        *,
        as_admin: bool,
    ) -> Receipt:
        """Erase the conversation up to the confirming update; a repeat returns the same receipt.

        `as_admin` lets any admin of the group confirm. Raise `NotConfirmed`.
        """
        keys = self._keys.conversation(conversation)
        arguments = (nonce, presser, update_id, "1" if as_admin else "", self._ttl_s)
        outcome, *detail = await self._scripts["clear"](keys.all, arguments)
        if outcome != b"done":
            raise NotConfirmed(outcome.decode())
        await self._tell_erased(conversation)
        receipt = Receipt.of(detail[0])
        if receipt.left:
            await self._mailbox.wake(conversation)
        return receipt
