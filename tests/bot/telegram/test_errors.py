"""Each way in which a call can fail has one error, and none of them shows the token."""

import socket
import traceback
from http import HTTPStatus

import httpx2
import pytest

from bot.reply.parts import Part
from bot.telegram import errors
from bot.telegram.bot_api import TelegramClient
from bot.telegram.chat import Destination
from bot.telegram.errors import TelegramError, error_of, lost
from bot.telegram.telegram_chat import TelegramChat
from tests.bot.telegram.doubles import unlimited_chat
from tests.bot.telegram.scripted_api import TOKEN, Act, Reply, ScriptedApi, refusal

PART = Part("hi")


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (refusal(403, "Forbidden: bot was blocked by the user"), errors.Blocked),
        (refusal(403, "Forbidden: CHAT_WRITE_FORBIDDEN"), errors.Refused),
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
        (Reply(b'{"result": {"message_id": Infinity}}'), errors.OutcomeUnknown),
        (Reply(b'{"result": {"message_id": 5}}' + b" " * 2**23), errors.OutcomeUnknown),
        (Reply(b"Cannot POST $PATH", 404), errors.BadToken),
        (refusal(400, "Bad Request: no such thing as $PATH"), errors.Refused),
        ("cut", errors.OutcomeUnknown),
        ("hang", errors.OutcomeUnknown),
    ],
)
async def test_a_failed_send_raises_the_error_that_says_what_to_do_without_the_token(
    chat: TelegramChat, api: ScriptedApi, act: Act, expected: type[TelegramError]
) -> None:
    api.script(act)
    with pytest.raises(TelegramError) as raised:
        await chat.send(Destination(5), PART, timeout_s=2 if act == "hang" else 60)
    assert type(raised.value) is expected
    assert TOKEN not in "".join(traceback.format_exception(raised.value))
    assert len(api.calls) == 1


async def test_an_answer_that_cannot_be_used_is_an_unknown_outcome(
    client: TelegramClient, api: ScriptedApi
) -> None:
    api.script(Reply({"ok": True, "result": {"file_path": "a", "file_size": "many"}}))
    with pytest.raises(errors.OutcomeUnknown):
        await client.download("a", 10, 60)


async def test_a_refused_connection_means_that_nothing_was_sent() -> None:
    client = TelegramClient(TOKEN, "http://127.0.0.1:1")
    with pytest.raises(errors.Unreachable):
        await unlimited_chat(client).send(Destination(5), PART)
    await client.close()


async def test_a_connection_that_hangs_means_that_nothing_was_sent() -> None:
    """The queue of connections is full and nobody accepts, so the kernel lets the next one wait."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for waiting in (first, second):
            waiting.settimeout(0)
            waiting.connect_ex(listener.getsockname())
        client = TelegramClient(TOKEN, f"http://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(errors.Unreachable):
            await unlimited_chat(client).send(Destination(5), PART, timeout_s=0.2)
        await client.close()


@pytest.mark.parametrize(
    ("act", "expected_s"),
    [
        (refusal(429, "Too Many Requests: retry after 17", retry_after=17), 17),
        (refusal(429, "Too Many Requests: retry after 0", retry_after=0), 5),
        (refusal(429, "Too Many Requests: retry after -5", retry_after=-5), 5),
        (refusal(429, "Too Many Requests", retry_after=10**400), 86_400),
        (Reply(b"slow down", 429), 5),
    ],
)
async def test_a_flood_wait_says_how_long_to_wait(
    chat: TelegramChat, api: ScriptedApi, act: Act, expected_s: float
) -> None:
    api.script(act)
    with pytest.raises(errors.FloodWait) as raised:
        await chat.send(Destination(5), PART)
    assert raised.value.retry_after_s == expected_s


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ("can't parse entities: unexpected end", "entities"),
        ("entity beginning at UTF-16 offset 3 ends in the middle of a symbol", "entities"),
        ("ENTITY_BOUNDS_INVALID", "entities"),
        ("message to be replied not found", "reply_gone"),
        ("message thread not found", "topic_gone"),
        ("TOPIC_CLOSED", "closed"),
        ("not enough rights to send text messages to the chat", "closed"),
        ("have no rights to send a message", "closed"),
        ("not enough rights to send voice messages to the chat", "no_voice"),
        ("chat not found", "chat_gone"),
        ("PEER_ID_INVALID", "chat_gone"),
        ("message to edit not found", "message_gone"),
        ("message is too long", "too_long"),
        ("not enough rights", "other"),
    ],
)
async def test_a_refusal_names_its_reason(
    chat: TelegramChat, api: ScriptedApi, description: str, reason: str
) -> None:
    api.script(refusal(400, f"Bad Request: {description}"))
    with pytest.raises(errors.Refused) as raised:
        await chat.send(Destination(5), PART)
    assert raised.value.reason == reason


NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
MAY_HAVE_BEEN_SENT = (
    *(httpx2.ReadTimeout, httpx2.WriteTimeout, httpx2.ReadError, httpx2.WriteError),
    *(httpx2.RemoteProtocolError, RuntimeError),
)


@pytest.mark.parametrize("cause", [*NEVER_SENT, *MAY_HAVE_BEEN_SENT])
def test_only_a_request_that_was_never_sent_is_safe_to_repeat(cause: type[Exception]) -> None:
    expected = errors.Unreachable if cause in NEVER_SENT else errors.OutcomeUnknown
    assert type(lost(cause(""))) is expected


def test_every_other_status_leaves_the_outcome_unknown() -> None:
    others = {status for status in HTTPStatus if status >= 300} - {400, 401, 403, 404, 409, 429}
    assert {type(error_of(status, {})) for status in others} == {errors.OutcomeUnknown}
