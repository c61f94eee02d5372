"""`MCP_SERVERS`: what it takes, what `check` says of it, and that a refusal shows no secret."""

from pathlib import Path

import orjson
import pytest
from pydantic import SecretStr

from bot.features.mcp.probes import PROBES
from bot.features.mcp.settings import McpServer, read_mcp_servers
from config.loading import SettingsError, load_settings
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.mcp_shop import Shop, ShopServer
from tests.settings import Settings

SHOP = {"url": "https://shop.example/mcp", "headers": {"X-Key": "a $KEY ${KEY}"}}

LOCAL = {"command": ["run", "it"], "env": {"TOKEN": "x $KEY"}, "tools": ["a"]}


def test_servers_come_from_json_or_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KEY", "secret")
    given = orjson.dumps({"shop": SHOP, "local": LOCAL})
    file = tmp_path / "servers.json"
    file.write_bytes(given)
    for text in (given.decode(), str(file)):
        local, shop = read_mcp_servers(text)
        env = (("TOKEN", SecretStr("x secret")),)
        assert local == McpServer("local", command=("run", "it"), tools=("a",), env=env)
        assert (shop.name, shop.url, shop.tools) == ("shop", "https://shop.example/mcp", None)
        [(key, value)] = shop.headers
        assert (key, value.get_secret_value()) == ("X-Key", "a secret secret")
        assert "secret" not in repr((shop, local))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("hidden", "neither JSON nor a text file"),
        ("{hidden", "no JSON object"),
        ({"two words": {"command": ["hidden"]}}, "a server's name"),
        ({"a__b": {"command": ["hidden"]}}, "neither has __ nor ends with _"),
        ({"a_": {"command": ["hidden"]}}, "neither has __ nor ends with _"),
        ({"a": ["hidden"]}, "server a takes: command, env, headers, tools, url"),
        ({"a": {"url": "http://x", "hidden": 1}}, "server a takes"),
        ({"a": {}}, "either a url or a command"),
        ({"a": {"url": "http://x", "command": ["hidden"]}}, "either a url or a command"),
        ({"a": {"command": "hidden"}}, "command is a list of texts"),
        ({"a": {"command": []}}, "the name of a program"),
        ({"a": {"command": ["x"], "headers": {"a": "hidden"}}}, "takes no headers"),
        ({"a": {"url": "ftp://hidden"}}, "url is an http"),
        ({"a": {"url": "http://hidden:pass@x"}}, "without a login"),
        ({"a": {"url": "http://x", "headers": {"X": "$HIDDEN_NOT_SET"}}}, "headers X names a var"),
        ({"a": {"url": "http://x", "headers": {"X": "hidden\n"}}}, "characters that HTTP forbids"),
        ({"a": {"url": "http://x", "headers": {"X": 1}}}, "object of texts"),
        ({"a": {"url": "http://x", "env": {"X": "hidden"}}}, "takes no env"),
        ({"a": {"command": ["x"], "env": ["hidden"]}}, "env is an object of texts"),
        ({"a": {"command": ["x"], "env": {"X=hidden": "y"}}}, "env is an object of texts"),
        ({"a": {"command": ["x"], "env": {"X": "$HIDDEN_NOT_SET"}}}, "env X names a variable"),
        ({"a": {"command": ["x"], "env": {"X": "hidden\0"}}}, "env X has a zero byte"),
        ({"a": {"url": "http://x", "tools": "hidden"}}, "tools is a list of texts"),
    ],
)
def test_a_refusal_shows_no_value(given: object, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = given if isinstance(given, str) else orjson.dumps(given).decode()
    monkeypatch.setenv("MCP_SERVERS", text)
    with pytest.raises(SettingsError) as refused:
        load_settings(None, Settings)
    assert str(refused.value).startswith("MCP_SERVERS takes ")
    assert why in str(refused.value)
    assert "hidden" not in str(refused.value).lower()


async def test_each_server_has_a_row_with_the_number_of_its_tools(settings_of: SettingsOf) -> None:
    async with ShopServer(Shop()) as server:
        servers = {
            "shop": {"url": server.address},
            "none": {"url": server.address, "tools": []},
            "away": {"url": "http://127.0.0.1:9/mcp"},
        }
        settings = settings_of(mcp_servers=orjson.dumps(servers).decode())
        rows = await rows_of(PROBES[0].run(settings))
    assert {name: (row.verdict, row.seen) for name, row in rows.items()} == {
        "MCP server away": ("warn", "no answer"),
        "MCP server none": ("warn", "0 tools"),
        "MCP server shop": ("ok", "3 tools"),
    }
    assert "MCP_SERVERS" in rows["MCP server away"].advice
