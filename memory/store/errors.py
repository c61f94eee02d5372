"""The errors of `memory`, and what the SDK's errors mean.

    StoreError                the store failed
    ├── StoreUnavailable      no answer, or the server cannot work now: the same call may work later
    ├── StoreFull             the server takes no writes; reads still work
    ├── LoginRefused          the server does not let us in: a wrong or changed password
    ├── StoreRefused          the server will never do this
    │   └── StoreUnfit        the server is of a kind on which no bot can run
    └── EmbeddedError         the embedded server cannot run (embedded.py)
        ├── EmbeddedBusy        another process uses the data folder
        └── EmbeddedUnwritable  the data folder cannot be written to
    LeaseLost                 a step of a turn was refused: something changed since (queue)
    └── Superseded            the part that was sent last must stay
    NotWritten                a change of a scope was refused: it has changed since (scopes)
    NewerValue                a newer release has stored what this one cannot read (queue)
    MailboxFull               a sender has sent too much to one conversation (queue)
    NotConfirmed              a question cannot be confirmed, or not by this person (erasure)
    LearnerBusy               another process learns from this conversation (learning)

Errors of the models that memory asks are in `search.embeddings` and `text.internal_model`.
"""

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions as redis_errors


class StoreError(Exception):
    """Raised when the store did not do what it was asked."""


class StoreUnavailable(StoreError):
    """Raised when no answer came, or the server cannot work now; the command may have run."""


class StoreFull(StoreError):
    """Raised when the server takes no writes because memory or disk is full; reads still work."""


class LoginRefused(StoreError):
    """Raised when the server does not let us in; once REDIS_URL is right, the same call works."""


class StoreRefused(StoreError):
    """Raised when the server will never do this: wrong type, script error, bad address."""


class StoreUnfit(StoreRefused):
    """Raised at the start for a server on which no bot can run; the text says what to change."""


class LeaseLost(Exception):
    """Raised when a step was refused: another worker has the lease, or something was erased."""


# The first class of an error's method resolution order that is listed here counts.
MEANINGS: dict[type[Exception], type[StoreError]] = {
    redis_errors.AskError: StoreUnavailable,
    redis_errors.AuthenticationError: LoginRefused,
    redis_errors.AuthorizationError: LoginRefused,
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
# Errors without a class of their own, and those that Redis 6 wraps into the error of a script.
MARKED = re.compile(
    r"(?:^|[ :]-)(?:(?P<full>OOM|MISCONF)"
    r"|(?:BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|NOREPLICAS|READONLY|TRYAGAIN|UNBLOCKED))\b"
)


@contextmanager
def translated_errors(name: str, within_s: float) -> Iterator[None]:
    """Raise our errors instead of the SDK's; `name` is the command, `within_s` its time limit."""
    try:
        yield
    except TimeoutError as exc:
        raise StoreUnavailable(f"{name}: no answer within {within_s:g} s") from exc
    except SDK_ERRORS as exc:
        raise translate(name, exc) from exc
    except (AttributeError, RuntimeError) as exc:
        # When the SDK looks for a Cluster's nodes again, it closes connections that other calls
        # still use. Then their streams are None, or uvloop says that they are closed.
        if "'NoneType'" not in str(exc) and "the handler is closed" not in str(exc):
            raise
        raise StoreUnavailable(f"{name}: the connection was closed") from exc


@contextmanager
def reading_replies() -> Iterator[None]:
    """Raise `InvalidResponse` for what the SDK raises if it cannot read a reply."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
        raise redis_errors.InvalidResponse from exc


def distrust(error: BaseException | None) -> str:
    """Return why a certificate is not trusted, in OpenSSL's words; "" for another error."""
    while error:
        if isinstance(error, ssl.SSLCertVerificationError):
            return str(error.verify_message).partition(",")[0]  # behind the comma is a host
        error = error.__cause__ or error.__context__
    return ""


def translate(name: str, exc: Exception) -> StoreError:
    """Return our error for one of the SDK's; neither shows what a command carried."""
    if why := distrust(exc):
        hint = " (end REDIS_URL with ?ssl_cert_reqs=none to accept it)" * ("signed" in why)
        return StoreUnavailable(f"{name}: the server's certificate is not trusted: {why}{hint}")
    say_why = redis_errors.ConnectionError, redis_errors.TimeoutError, redis_errors.ResponseError
    text = type(exc).__name__
    if isinstance(exc, say_why):
        text = str(exc).partition(", with args beginning")[0]
    exc.args = (text,)  # the cause is logged with the error
    marked = MARKED.search(text)
    if marked:
        return (StoreFull if marked["full"] else StoreUnavailable)(f"{name}: {text}")
    cause = exc.__cause__
    if isinstance(exc, redis_errors.RedisClusterException) and isinstance(cause, SDK_ERRORS):
        return translate(name, cause)
    kind = next(MEANINGS[base] for base in type(exc).__mro__ if base in MEANINGS)
    return kind(f"{name}: {text}")
