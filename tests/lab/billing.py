"""Token costs of requests, and how much of a prompt equals the beginning of the previous one.

Servers charge less for the beginning of a prompt that they have just read. So each request is
compared with the previous request of the same kind.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from memory.text.tokens import MESSAGE_OVERHEAD, TokenCounter
from tests.lab.scripted_models import Request

_MIN = 1_024
_STEP = 128
_KEPT_S = 600.0


@dataclass(frozen=True, slots=True)
class Bill:
    """One request in tokens.

    `same` is the length of the beginning that it shares with the previous request. `stepped` is the
    part of that which a server reuses if it caches beginnings from 1,024 tokens in steps of 128.
    `fresh` is the same for a server that drops them after ten minutes. `pieces` are the tokens of
    each piece.
    """

    request: Request
    pieces: tuple[int, ...]
    written: int
    same: int
    stepped: int
    fresh: int

    @property
    def read(self) -> int:
        """Tokens of the whole prompt."""
        return sum(self.pieces)


def bills(requests: Iterable[Request], tokens: TokenCounter) -> list[Bill]:
    """Return a bill for each request, in their order."""
    before: dict[str, Request] = {}
    made = []
    for request in requests:
        last = before.get(request.kind)
        same = _same(last.pieces, request.pieces, tokens) if last else 0
        stepped = _MIN + (same - _MIN) // _STEP * _STEP if same >= _MIN else 0
        is_fresh = last is not None and request.at - last.at <= _KEPT_S
        made.append(
            Bill(
                request=request,
                pieces=tuple(tokens.count(piece) + MESSAGE_OVERHEAD for piece in request.pieces),
                written=tokens.count(request.answer),
                same=same,
                stepped=stepped,
                fresh=stepped if is_fresh else 0,
            )
        )
        before[request.kind] = request
    return made


def _same(before: Sequence[str], now: Sequence[str], tokens: TokenCounter) -> int:
    """Count the tokens with which both begin, without the last one, which may differ."""
    same = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            return same + max(0, tokens.count(_beginning(old, new)) - 1)
        same += tokens.count(new) + MESSAGE_OVERHEAD
    return same


def _beginning(one: str, other: str) -> str:
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(character for character, _ in pairs)
