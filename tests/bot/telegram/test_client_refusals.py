"""Each way in which a call can fail has one name, and none of them tells the token."""

import socket
import traceback
from collections.abc import Callable

import httpx2
import pytest
from telegram import error as ptb

from bot.reply.parts import Part
from bot.telegram import errors
from bot.telegram.chat import Destination
from bot.telegram.client import TelegramClient
from bot.telegram.errors import TelegramError
from bot.telegram.ptb_errors import translate
from tests.bot.telegram.scripted_api import TOKEN, Act, Reply, ScriptedApi, refusal

PART = Part("hi")


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (refusal(403, "Forbidden: bot was blocked by the user"), errors.Blocked),
        (refusal(409, "Conflict: terminated by other getUpdates request"), errors.Conflict),
        (refusal(401, "Unauthorized"), errors.BadToken),
        (refusal(404, "Not Found"), errors.BadToken),
        (refusal(500, "Internal Server Error"), errors.OutcomeUnknown),
        (Reply(b"<html>$PATH</html>", 502), errors.OutcomeUnknown),
        (Reply(b"<html>$PATH</html>"), errors.OutcomeUnknown),
        (Reply([1]), errors.OutcomeUnknown),
        (Reply({"ok": True}), errors.OutcomeUnknown),
        (Reply({"ok": True, "result": True}), errors.OutcomeUnknown),
        (Reply({"ok": True, "result": {"text": "no id"}}), errors.OutcomeUnknown),
        (Reply(b"Cannot POST $PATH", 404), errors.BadToken),
        (refusal(400, "Bad Request: no such thing as $PATH"), errors.Refused),
        ("cut", errors.OutcomeUnknown),
        ("hang", errors.OutcomeUnknown),
    ],
)
async def test_a_failed_send_says_what_to_do_and_never_the_token(
    client: TelegramClient, api: ScriptedApi, act: Act, expected: type[TelegramError]
) -> None:
    api.script(act)
    with pytest.raises(TelegramError) as raised:
        await client.send(Destination(5), PART, timeout_s=0.3)
    assert type(raised.value) is expected
    assert TOKEN not in "".join(traceback.format_exception(raised.value))
    assert len(api.calls) == 1


async def test_a_refused_connection_was_never_sent() -> None:
    client = TelegramClient(TOKEN, "http://127.0.0.1:1")
    with pytest.raises(errors.Unreachable):
        await client.send(Destination(5), PART)
    await client.close()


async def test_a_connection_that_hangs_was_never_sent() -> None:
    """A full queue of connections nobody accepts: the kernel leaves the next one waiting."""
    with socket.socket() as deaf, socket.socket() as first, socket.socket() as second:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for waiting in (first, second):
            waiting.settimeout(0)
            waiting.connect_ex(deaf.getsockname())
        client = TelegramClient(TOKEN, f"http://127.0.0.1:{deaf.getsockname()[1]}")
        with pytest.raises(errors.Unreachable):
            await client.send(Destination(5), PART, timeout_s=0.2)
        await client.close()


@pytest.mark.parametrize(
    ("act", "expected_s"),
    [
        (refusal(429, "Too Many Requests: retry after 17", retry_after=17), 17),
        (refusal(429, "Too Many Requests: retry after 0", retry_after=0), 5),
        (Reply(b"slow down", 429), 5),
    ],
)
async def test_a_flood_tells_how_long_to_wait(
    client: TelegramClient, api: ScriptedApi, act: Act, expected_s: float
) -> None:
    api.script(act)
    with pytest.raises(errors.FloodWait) as raised:
        await client.send(Destination(5), PART)
    assert raised.value.retry_after_s == expected_s


async def test_a_group_that_became_a_supergroup_tells_its_new_id(
    client: TelegramClient, api: ScriptedApi
) -> None:
    description = "Bad Request: group chat was upgraded to a supergroup chat"
    api.script(refusal(400, description, migrate_to_chat_id=-1001))
    with pytest.raises(errors.ChatMigrated) as raised:
        await client.send(Destination(-5), PART)
    assert raised.value.new_chat_id == -1001


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ("can't parse entities: unexpected end", "entities"),
        ("entity beginning at UTF-16 offset 3 ends in the middle of a symbol", "entities"),
        ("ENTITY_BOUNDS_INVALID", "entities"),
        ("message to be replied not found", "reply_gone"),
        ("message thread not found", "topic_gone"),
        ("TOPIC_CLOSED", "topic_gone"),
        ("message to edit not found", "message_gone"),
        ("message is too long", "too_long"),
        ("chat not found", "other"),
    ],
)
async def test_a_refusal_tells_its_reason(
    client: TelegramClient, api: ScriptedApi, description: str, reason: str
) -> None:
    api.script(refusal(400, f"Bad Request: {description}"))
    with pytest.raises(errors.Refused) as raised:
        await client.send(Destination(5), PART)
    assert raised.value.reason == reason
    assert raised.value.bad_entities == (reason == "entities")


async def test_what_is_already_so_is_no_error(client: TelegramClient, api: ScriptedApi) -> None:
    api.script(refusal(400, "Bad Request: message is not modified: same content"))
    await client.edit(5, 9, PART)
    api.script(refusal(400, "Bad Request: message to delete not found"))
    await client.delete(5, 9)


async def test_other_refusals_of_edit_and_delete_are_errors(
    client: TelegramClient, api: ScriptedApi
) -> None:
    api.script(refusal(400, "Bad Request: message can't be edited"))
    with pytest.raises(errors.Refused):
        await client.edit(5, 9, PART)
    api.script(refusal(400, "Bad Request: message can't be deleted for everyone"))
    with pytest.raises(errors.Refused):
        await client.delete(5, 9)


@pytest.mark.parametrize(
    "refused",
    [
        refusal(400, "Bad Request: PARTICIPANT_ID_INVALID"),
        refusal(403, "Forbidden: bot was kicked from the supergroup chat"),
        refusal(400, "Bad Request: group chat was upgraded", migrate_to_chat_id=-1009),
    ],
    ids=["nobody", "blocked", "moved"],
)
async def test_who_cannot_be_looked_up_is_no_admin(
    client: TelegramClient, api: ScriptedApi, refused: Reply
) -> None:
    api.script(refused)
    assert await client.is_group_admin(-100, 7) is False


@pytest.mark.parametrize("result", [True, "text", [True], [{"no": "id"}], [{"update_id": "7"}]])
async def test_updates_without_an_id_are_no_answer(
    client: TelegramClient, api: ScriptedApi, result: object
) -> None:
    api.script(Reply({"ok": True, "result": result}))
    with pytest.raises(errors.OutcomeUnknown):
        await client.get_updates(None, 1)


def _caused(cause: Exception) -> ptb.TelegramError:
    error = ptb.NetworkError("lost")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "cause",
    [httpx2.ConnectError(""), httpx2.ConnectTimeout(""), httpx2.PoolTimeout("")],
    ids=lambda cause: type(cause).__name__,
)
def test_what_was_never_sent_is_safe_to_repeat(cause: Exception) -> None:
    assert type(translate(_caused(cause))) is errors.Unreachable


@pytest.mark.parametrize(
    "cause",
    [
        httpx2.ReadTimeout(""),
        httpx2.WriteTimeout(""),
        httpx2.ReadError(""),
        httpx2.WriteError(""),
        httpx2.RemoteProtocolError(""),
        RuntimeError(""),
    ],
    ids=lambda cause: type(cause).__name__,
)
def test_what_may_have_been_sent_is_not(cause: Exception) -> None:
    assert type(translate(_caused(cause))) is errors.OutcomeUnknown


# One for each class that PTB has: a new one fails the test below until somebody decides about it.
MEANINGS: dict[str, tuple[Callable[[], ptb.TelegramError], type[TelegramError]]] = {
    "BadRequest": (lambda: ptb.BadRequest("chat not found"), errors.Refused),
    "ChatMigrated": (lambda: ptb.ChatMigrated(-1001), errors.ChatMigrated),
    "Conflict": (lambda: ptb.Conflict("x"), errors.Conflict),
    "EndPointNotFound": (lambda: ptb.EndPointNotFound("x"), errors.BadToken),
    "Forbidden": (lambda: ptb.Forbidden("x"), errors.Blocked),
    "InvalidToken": (ptb.InvalidToken, errors.BadToken),
    "NetworkError": (lambda: ptb.NetworkError("x"), errors.OutcomeUnknown),
    "PassportDecryptionError": (
        lambda: ptb.PassportDecryptionError("x"),
        errors.OutcomeUnknown,
    ),
    "RetryAfter": (lambda: ptb.RetryAfter(3), errors.FloodWait),
    "TelegramError": (lambda: ptb.TelegramError("x"), errors.OutcomeUnknown),
    "TimedOut": (ptb.TimedOut, errors.OutcomeUnknown),
}


def test_every_error_of_ptb_has_a_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")
    assert set(MEANINGS) == set(ptb.__all__)
    for theirs, ours in MEANINGS.values():
        assert type(translate(theirs())) is ours
