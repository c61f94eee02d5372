"""Reads `MCP_SERVERS`: the MCP servers whose tools the model may use.

No refusal shows a value of the JSON, because headers and addresses may hold secrets.
"""

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import SecretStr
from pydantic_settings import NoDecode

from config import values
from config.settings import Settings
from config.values import UnreadableSetting

_NAME = re.compile(r"\A(?!.*__)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9-])?")
"""The model sees `server__tool`, so the first `__` must end the server's name."""
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_VARIABLE = re.compile(r"\$(?:\{(\w{1,200})\}|(\w{1,200}))", re.ASCII)
_FIELDS = {"url", "headers", "command", "env", "tools"}
_MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server with either a `url` (streamable HTTP) or a `command` to start."""

    name: str
    url: str = ""
    headers: tuple[tuple[str, SecretStr], ...] = ()  # of a `url`
    command: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None  # names of the tools to offer, None for all
    env: tuple[tuple[str, SecretStr], ...] = ()  # variables of the program


def read_mcp_servers(text: str) -> tuple[McpServer, ...]:
    """Return the servers in the order of their names; raise `UnreadableSetting`.

    The text is a JSON object, or the path of a file that holds one.
    """
    if not text.lstrip().startswith("{"):
        text = _file(text)
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise UnreadableSetting("this is no JSON object")
    return tuple(_server(name, given[name]) for name in sorted(given))


def _file(path: str) -> str:
    try:
        with Path(path).expanduser().open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise UnreadableSetting("the file is larger than 64 KB")
        return content.decode()
    except (OSError, UnicodeDecodeError, RuntimeError):
        raise UnreadableSetting("this is neither JSON nor a text file that can be read") from None


def _server(name: str, given: object) -> McpServer:
    if not _NAME.fullmatch(name):
        raise UnreadableSetting(
            "a server's name has 1 to 32 of A-Z a-z 0-9 _ -; it neither has __ nor ends with _"
        )
    if not isinstance(given, dict) or given.keys() - _FIELDS:
        raise UnreadableSetting(f"server {name} takes: {', '.join(sorted(_FIELDS))}")
    if ("url" in given) == ("command" in given):
        raise UnreadableSetting(f"server {name} needs either a url or a command")
    kind, other = ("command", "headers") if "command" in given else ("url", "env")
    if other in given:
        raise UnreadableSetting(f"server {name} has a {kind}, so it takes no {other}")
    tools = _words(name, "tools", given["tools"]) if "tools" in given else None
    if kind == "command":
        env = _texts(name, "env", given.get("env", {}))
        command = _words(name, "command", given["command"])
        if not command or not command[0] or any("\0" in word for word in command):
            raise UnreadableSetting(f"server {name}: command needs the name of a program")
        return McpServer(name, command=command, tools=tools, env=env)
    headers = _texts(name, "headers", given.get("headers", {}))
    return McpServer(name, _address(name, given["url"]), headers, tools=tools)


def _words(name: str, field: str, given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
        raise UnreadableSetting(f"server {name}: {field} is a list of texts")
    return tuple(given)


def _address(name: str, given: object) -> str:
    with suppress(ValueError):  # a port that is none
        if isinstance(given, str) and values.is_web_address(given) and urlsplit(given).port != 0:
            return given
    raise UnreadableSetting(f"server {name}: url is an http(s) address without a login")


def _texts(name: str, field: str, given: object) -> tuple[tuple[str, SecretStr], ...]:
    """Return the texts of an object with its `$NAME`s replaced by the values of variables."""
    if not isinstance(given, dict):
        raise UnreadableSetting(f"server {name}: {field} is an object of texts")
    return tuple((key, SecretStr(_text(name, field, key, given[key]))) for key in given)


def _text(name: str, field: str, key: str, value: object) -> str:
    is_header = field == "headers"
    if not (_HEADER if is_header else _ENV).fullmatch(key) or not isinstance(value, str):
        raise UnreadableSetting(f"server {name}: {field} is an object of texts")
    variables = {**dotenv_values(".env"), **os.environ} if "$" in value else {}

    def replaced(found: re.Match[str]) -> str:
        text = variables.get(found[1] or found[2])
        if not text:
            raise UnreadableSetting(
                f"server {name}: {field} {key} names a variable that is not set"
            )
        return text

    written = _VARIABLE.sub(replaced, value)
    if is_header and not (written.isascii() and written.isprintable()):
        raise UnreadableSetting(f"server {name}: header {key} has characters that HTTP forbids")
    if "\0" in written:
        raise UnreadableSetting(f"server {name}: {field} {key} has a zero byte")
    return written


McpServers = Annotated[
    tuple[McpServer, ...],
    NoDecode,
    values.on_text(read_mcp_servers),
    values.Allowed(
        '`{"name": {"url": …, "headers": {…}, "tools": […]}}` or `{"name": {"command": […], '
        '"env": {…}}}`, or the path of a JSON file'
    ),
]


class McpSettings(Settings):
    """Tools from outside, beside the settings of the core."""

    mcp_servers: McpServers = values.setting((), "MCP servers whose tools the model may use")


SETTINGS = McpSettings
