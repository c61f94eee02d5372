"""What goes wrong with the store, in our words; the SDK's errors are given a meaning once, here.

Talks to nobody.
"""

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions as redis_errors


class StoreError(Exception):
    """Raised when the store did not do what it was asked."""


class StoreUnavailable(StoreError):  # noqa: N818 - says when
    """Raised when no answer came, or the server cannot work now: the same call may succeed later.

    What was sent may have run.
    """


class StoreFull(StoreError):  # noqa: N818 - says when
    """Raised when the server takes no writes for want of memory or disk; reads still work."""


class StoreRefused(StoreError):  # noqa: N818 - says when
    """Raised when the server will never do this: wrong type, script error, bad login or address."""


# The nearest class in an error's line of descent decides.
MEANINGS: dict[type[Exception], type[StoreError]] = {
    redis_errors.AskError: StoreUnavailable,
    redis_errors.AuthenticationError: StoreRefused,
    redis_errors.AuthorizationError: StoreRefused,
    redis_errors.ClusterError: StoreUnavailable,
    redis_errors.ConnectionError: StoreUnavailable,
    redis_errors.InvalidResponse: StoreUnavailable,
    redis_errors.OutOfMemoryError: StoreFull,
    redis_errors.ReadOnlyError: StoreUnavailable,
    redis_errors.RedisClusterException: StoreRefused,
    redis_errors.RedisError: StoreRefused,
    redis_errors.SlotNotCoveredError: StoreUnavailable,
    redis_errors.TimeoutError: StoreUnavailable,
    redis_errors.TryAgainError: StoreUnavailable,
}
SDK_ERRORS = tuple(MEANINGS)
# Objections without a class of their own, and those that Redis 6 wraps into a script's error.
MARKED = re.compile(
    r"(?:^|[ :]-)(?:(?P<full>OOM|MISCONF)"
    r"|(?:BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|NOREPLICAS|READONLY|TRYAGAIN|UNBLOCKED))\b"
)


@contextmanager
def own_errors(name: str, within_s: float) -> Iterator[None]:
    """Raise ours instead of the SDK's; `name` says what was asked, `within_s` the time it had."""
    try:
        yield
    except TimeoutError as exc:
        raise StoreUnavailable(f"{name}: no answer within {within_s:g} s") from exc
    except SDK_ERRORS as exc:
        raise meaning(name, exc) from exc
    except (AttributeError, RuntimeError) as exc:
        # Looking for a Cluster's nodes anew, the SDK closes connections that others still use: it
        # has forgotten its streams then, or uvloop says what became of them.
        if "'NoneType'" not in str(exc) and "the handler is closed" not in str(exc):
            raise
        raise StoreUnavailable(f"{name}: the connection was closed") from exc


def meaning(name: str, exc: Exception) -> StoreError:
    """Say in our words what the SDK's error means; neither shows what a command carried."""
    if any(isinstance(origin, ssl.SSLCertVerificationError) for origin in _origins(exc)):
        return StoreUnavailable(
            f"{name}: the server's certificate is not trusted"
            " (a self-signed one is accepted with REDIS_TLS_VERIFY=never)"
        )
    text = type(exc).__name__
    if isinstance(
        exc, redis_errors.ConnectionError | redis_errors.TimeoutError | redis_errors.ResponseError
    ):
        text = str(exc).partition(", with args beginning")[0]
    exc.args = (text,)  # the cause is logged with the error
    marked = MARKED.search(text)
    if marked:
        return (StoreFull if marked["full"] else StoreUnavailable)(f"{name}: {text}")
    if isinstance(exc, redis_errors.RedisClusterException) and isinstance(
        exc.__cause__, SDK_ERRORS
    ):
        return meaning(name, exc.__cause__)
    kind = next(MEANINGS[base] for base in type(exc).__mro__ if base in MEANINGS)
    return kind(f"{name}: {text}")


def _origins(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        exc = exc.__cause__ or exc.__context__
