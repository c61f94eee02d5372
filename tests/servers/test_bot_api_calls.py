import asyncio
import json

import httpx2
import pytest
from telegram.error import InvalidToken

from tests.servers.bot_api import BotApiServer
from tests.servers.bot_api_client import bot_of, raw_client, scene


async def test_the_bot_learns_who_it_is() -> None:
    async with BotApiServer(privacy_mode=True) as server, bot_of(server) as bot:
        me = await bot.get_me()

        assert (me.id, me.username, me.is_bot) == (server.bot.id, server.bot.username, True)
        assert me.can_read_all_group_messages is False


@pytest.mark.parametrize("token", ["7000000001:wrong", "no-colon"])
async def test_a_wrong_token_is_unauthorized(token: str) -> None:
    async with BotApiServer() as server:
        with pytest.raises(InvalidToken):
            async with bot_of(server, token):
                pass


async def test_a_wrong_token_is_refused_as_telegram_does() -> None:
    async with BotApiServer() as server, raw_client(server) as client:
        answer = await client.post(f"{server.url}/bot1:wrong/getMe")

    body = {"ok": False, "error_code": 401, "description": "Unauthorized"}
    assert (answer.status_code, answer.json()) == (401, body)


async def test_an_unknown_method_is_not_found() -> None:
    async with BotApiServer() as server, raw_client(server) as client:
        answer = await client.post("sendTelepathy")

    body = {"ok": False, "error_code": 404, "description": "Not Found: method not found"}
    assert (answer.status_code, answer.json()) == (404, body)


async def test_an_unknown_path_is_not_found() -> None:
    async with BotApiServer() as server, raw_client(server) as client:
        answer = await client.get(f"{server.url}/elsewhere")

    assert answer.json() == {"ok": False, "error_code": 404, "description": "Not Found"}


async def test_a_request_for_another_host_is_refused() -> None:
    async with BotApiServer() as server, raw_client(server) as client:
        answer = await client.post("getMe", headers={"Host": "evil.example"})

    assert answer.status_code == 400


async def test_the_case_of_a_method_does_not_matter() -> None:
    async with BotApiServer() as server, raw_client(server) as client:
        answer = await client.get("GETME")

        assert answer.json()["ok"] is True
        assert [call.method for call in server.calls] == ["getMe"]


@pytest.mark.parametrize("form", ["query", "form", "multipart", "json"])
async def test_parameters_come_in_every_form_that_telegram_takes(form: str) -> None:
    buttons = {"inline_keyboard": [[{"text": "Ja", "callback_data": "ja"}]]}
    async with scene() as at, raw_client(at.server) as client:
        given = {
            "chat_id": str(at.chat.id),
            "text": "grüße 👋",
            "reply_markup": json.dumps(buttons),
        }
        match form:
            case "query":
                answer = await client.get("sendMessage", params=given)
            case "form":
                answer = await client.post("sendMessage", data=given)
            case "multipart":
                fields = {name: (None, value) for name, value in given.items()}
                answer = await client.post("sendMessage", files=fields)
            case _:
                answer = await client.post("sendMessage", json={**given, "reply_markup": buttons})

        assert answer.json()["ok"] is True
        message = at.chat.messages[-1]
        assert message.text == "grüße 👋"
        assert message.keyboard[0][0].callback_data == "ja"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b'{"chat_id": 1, "text": "half \\ud83d a smile"}'),
        ("application/x-www-form-urlencoded", b"chat_id=1&text=%ED%A0%BD"),
        ("application/x-www-form-urlencoded", b"chat_id=1&text=\xff"),
    ],
)
async def test_text_that_is_not_utf8_is_refused(content_type: str, body: bytes) -> None:
    async with scene() as at, raw_client(at.server) as client:
        headers = {"Content-Type": content_type}
        answer = await client.post("sendMessage", content=body, headers=headers)

    assert answer.status_code == 400
    assert answer.json()["description"] == "Bad Request: strings must be encoded in UTF-8"


@pytest.mark.parametrize("body", [b"{", b"[]"])
async def test_invalid_json_is_refused(body: bytes) -> None:
    async with BotApiServer() as server, raw_client(server) as client:
        headers = {"Content-Type": "application/json"}
        answer = await client.post("getMe", content=body, headers=headers)

    assert answer.status_code == 400


async def test_a_body_over_the_limit_is_refused_unread() -> None:
    async with BotApiServer() as server:
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, port)
        head = f"POST /bot{server.token}/getMe HTTP/1.1\r\nHost: {host}\r\n"
        writer.write(f"{head}Content-Length: {60 * 2**20}\r\n\r\n".encode())

        assert await reader.readline() == b"HTTP/1.1 413 Request Entity Too Large\r\n"

        writer.close()


async def test_answers_are_plain_ascii() -> None:
    async with scene() as at, raw_client(at.server) as client:
        await at.anna.say(at.chat, "half \ud83d a smile, ü")
        answer = await client.get("getUpdates", params={"offset": -1})

    assert answer.text.isascii()
    assert answer.json()["result"][0]["message"]["text"] == "half \ud83d a smile, ü"


async def test_every_call_is_logged_with_its_parameters_time_and_answer() -> None:
    async with scene(BotApiServer(clock=lambda: 1_800_000_000.5)) as at:
        await at.bot.send_message(at.chat.id, "Hello", message_thread_id=None)
        await at.bot.send_chat_action(at.chat.id, "typing")

        sent, typing = at.server.calls[-2:]
        assert (sent.method, sent.chat_id, sent.text) == ("sendMessage", at.chat.id, "Hello")
        assert sent.at == 1_800_000_000.5
        assert sent.answer is not None
        assert sent.answer.ok
        assert at.server.calls_to("sendChatAction") == [typing]
        assert typing.given.text("action") == "typing"


async def test_an_open_long_poll_does_not_delay_the_stop() -> None:
    async with BotApiServer() as server, raw_client(server) as client:
        poll = asyncio.create_task(client.get("getUpdates", params={"timeout": 50}))
        await server.wait_for(lambda: server.calls_to("getUpdates"))

        await asyncio.wait_for(server.stop(), 2)

        with pytest.raises(httpx2.HTTPError):
            await poll
