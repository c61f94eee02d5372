"""Confirmations: a question that one person may answer by a button, once, within an hour."""

from secrets import token_urlsafe

from memory.store.errors import MemoryFailure
from memory.store.keys import Scope
from memory.store.store import Store

_CONFIRM_S = 3600


def first_step(receipt_id: str) -> str:
    """Return the id under which the first of two steps stores its receipt."""
    return f"{receipt_id}:said"


class NotConfirmed(MemoryFailure):
    """Raised for a confirmation that is `unknown` (or expired), or `not_yours`: asked of others."""


class Confirmations:
    """Asks for confirmations, withdraws and checks them. The erasures themselves are elsewhere."""

    def __init__(self, store: Store) -> None:
        self._client = store.client
        self._keys = store.keys

    async def ask(
        self, conversation: Scope, question: str, asker: int, about: str = "", nonce: str = ""
    ) -> str:
        """Return a nonce that lets `asker` confirm once within an hour; `about` is stored too.

        It is the given `nonce`, or a new one.
        """
        nonce = nonce or token_urlsafe(12)
        confirm = self._keys.scope(conversation).confirm
        await self._client.pipeline(
            [
                ("HSET", confirm, nonce, f"{question}|{asker}|{about}"),
                ("EXPIRE", confirm, _CONFIRM_S),
            ]
        )
        return nonce

    async def cancel(self, conversation: Scope, nonce: str, presser: int) -> bool:
        """Withdraw a question; return False if it was confirmed already.

        A confirmed erasure has begun and cannot be withdrawn. A question that is gone counts as
        withdrawn. Raise `NotConfirmed` for a question that somebody else was asked.
        """
        confirm = self._keys.scope(conversation).confirm
        asked, has_begun = await self._client.call("HMGET", confirm, nonce, first_step(nonce))
        has_job = await self._client.call("EXISTS", self._keys.job(nonce))
        kind, _, rest = (asked or b"").partition(b"|")
        if has_begun or has_job or kind == b"done":
            return False
        if asked is None:
            return True
        if rest.split(b"|")[0] != str(presser).encode():
            raise NotConfirmed("not_yours")
        await self._client.call("HDEL", confirm, nonce)
        return True

    async def check(
        self, conversation: Scope, nonce: str, question: str, presser: int | None
    ) -> str:
        """Return what the question was about; "" if it was carried out already.

        Raise `NotConfirmed` unless `presser` was asked this question and it is still valid. None
        stands for an administrator of the group, who may confirm for all. The nonce is the id of
        the job that follows, so a second press starts no second job.
        """
        confirm = self._keys.scope(conversation).confirm
        asked = await self._client.call("HGET", confirm, nonce)
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
