"""Updates for the bot, by polling or by a webhook."""

import contextlib
import re
from urllib.parse import urlsplit

from tests.servers.bot_api.errors import ApiError, BadRequestError
from tests.servers.bot_api.parameters import Parameters
from tests.servers.bot_api.shapes import Shape
from tests.servers.bot_api.updates import Updates, Webhook
from tests.servers.bot_api.world import World

_MAX_BATCH = 100
_MAX_WAIT_S = 50
_DEFAULT_CONNECTIONS = 40
_MAX_CONNECTIONS = 100
_MAX_SECRET_LENGTH = 256
_SECRET = re.compile(r"[A-Za-z0-9_-]*")
_LOOPBACK = ("127.0.0.1", "localhost")


async def get_updates(world: World, given: Parameters) -> object:
    """Return waiting updates, or wait for one up to the timeout. A new poll ends an older one."""
    updates = world.updates
    if updates.webhook:
        raise ApiError(
            409,
            "Conflict: can't use getUpdates method while webhook is active; "
            "use deleteWebhook to delete the webhook first",
        )
    updates.allow(_allowed_updates(given))
    updates.confirm(given.integer("offset"))
    timeout_s = _clamped(given.integer("timeout"), 0, _MAX_WAIT_S)
    if timeout_s and not updates.due():
        await _wait(world, updates, timeout_s)
    return [update.shape() for update in updates.hand_out(_MAX_BATCH)]


async def set_webhook(world: World, given: Parameters) -> object:
    url, secret = given.text("url"), given.text("secret_token")
    if not url:
        return await delete_webhook(world, given)
    _check_url(url)
    if len(secret) > _MAX_SECRET_LENGTH:
        raise BadRequestError("secret token is too long")
    if not _SECRET.fullmatch(secret):
        raise BadRequestError("secret token contains unallowed characters")
    asked = given.integer("max_connections", _DEFAULT_CONNECTIONS)
    webhook = Webhook.to(url, secret, _clamped(asked, 1, _MAX_CONNECTIONS))
    world.updates.allow(_allowed_updates(given))
    await world.updates.set_webhook(webhook)
    return True


async def delete_webhook(world: World, given: Parameters) -> object:  # noqa: ARG001 - a Method
    await world.updates.set_webhook(None)
    return True


async def get_webhook_info(world: World, given: Parameters) -> object:  # noqa: ARG001 - a Method
    updates = world.updates
    shape: Shape = {
        "url": updates.webhook.url if updates.webhook else "",
        "has_custom_certificate": False,
        "pending_update_count": updates.pending_count,
    }
    if updates.webhook:
        shape["max_connections"] = updates.webhook.max_connections
        shape["ip_address"] = "127.0.0.1"
    if updates.allowed:
        shape["allowed_updates"] = updates.allowed
    return shape


async def _wait(world: World, updates: Updates, timeout_s: int) -> None:
    poll = updates.begin_poll()
    await world.account.changes.tell()
    with contextlib.suppress(TimeoutError):
        await world.account.changes.until(
            lambda: updates.due() or not updates.is_polled_by(poll), timeout_s
        )
    if updates.webhook:
        raise ApiError(409, "Conflict: terminated by setWebhook request")
    if not updates.is_polled_by(poll):
        raise ApiError(
            409,
            "Conflict: terminated by other getUpdates request; "
            "make sure that only one bot instance is running",
        )


def _allowed_updates(given: Parameters) -> list[str] | None:
    """Return the requested kinds; `None` means no change."""
    kinds = given.array("allowed_updates", "String")
    return None if kinds is None else [str(kind) for kind in kinds]


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadRequestError("invalid webhook URL specified") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadRequestError("invalid webhook URL specified")
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        raise BadRequestError("bad webhook: only http to this machine is reachable from here")


def _clamped(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))
