"""A model with an API of its own: one that hears, speaks or draws."""

from collections.abc import Sequence
from typing import Any, Protocol

from bot.model.call import CallKind, ModelObserver, ObservedCall, Usage, WhichModel


class Posts(Protocol):
    """What asks a model with an API of its own, such as one that hears or draws."""

    which: WhichModel

    def to(
        self, base_url: str, key: str | None, timeout_s: float, which: WhichModel = "first"
    ) -> "Posts":
        """Return the same for another server."""
        ...

    async def post_whole(
        self,
        path: str,
        body: dict[str, Any],
        max_bytes: int,
        silence_s: float | None = None,
        file: tuple[str, bytes, str] | None = None,
    ) -> bytes:
        """Return the whole body of an answer; raise `ModelError`."""
        ...


class MediaModel:
    """One model of one server; a call takes at most `timeout_s`."""

    def __init__(
        self,
        client: Posts,
        model: str,
        timeout_s: float,
        observers: Sequence[ModelObserver] = (),
    ) -> None:
        self._client = client
        self._model = model
        self._observers = observers
        self.timeout_s = timeout_s

    def _call(self, kind: CallKind, unanswered: Usage) -> ObservedCall:
        """Return a call; `unanswered` is billed for a request without an answer."""
        call = ObservedCall(kind, self._model, self._client.which, self._observers)
        call.unanswered_usage = unanswered
        return call
