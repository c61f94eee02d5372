"""The tools of all MCP servers, as the model gets them: named, bounded, and listed once.

The list stays the same as long as the process runs, so that the front of the prompt does too. The
library takes a second to import.
"""

import asyncio
import re
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import mcp_types as types
import orjson
import structlog
from pydantic import ConfigDict

from bot.commands.immediate import message_of, put_press
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.mcp.clear_json import clear_json
from bot.features.mcp.outside_server import OutsideServer, ServerAway
from bot.features.mcp.settings import McpServer, McpSettings
from bot.prompt.sections import tools_tokens
from bot.reply.parts import Parts
from bot.telegram.updates import ButtonPress
from bot.turn.agent_step import DONT_RUN, RUN, asked_in
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import ToolQuestion
from memory.behaviors.tool import Arguments, Tool, ToolError
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from memory.text.untrusted_text import escaped, escaped_json, one_line, seen_by_people, visible

_SHARE = 0.4  # the definitions of these tools take at most this share of the prompt

log = structlog.get_logger(__name__)

MAX_PER_SERVER = 32
_MAX_LISTED = 1_000  # an operator may choose among so many tools of a server
_MAX_TOOLS = 64
_MAX_DESCRIPTION_CHARS = 1_000
_MAX_SCHEMA_CHARS = 4_000
_LIST_TIMEOUT_S = 20.0  # a command may have to import a lot, for seconds on a busy machine
_MAX_NAME_CHARS = 64
_INVALID = re.compile(r"[^A-Za-z0-9_-]")
_MAX_SHOWN_CHARS = 1_000


class OutsideArguments(Arguments):
    """Arguments that only the server knows, and checks."""

    model_config = ConfigDict(extra="allow", frozen=True)


async def list_outside_tools(
    servers: Sequence[McpServer], tokens: TokenCounter, max_tokens: int, timeout_s: float
) -> list[Tool[Any]]:
    """Return the tools of all servers in the order of their names.

    A server that is away has none. A tool with the name of an earlier one is left out. At most
    `max_tokens` of definitions are returned; `timeout_s` bounds each later call.
    """
    listed = await asyncio.gather(*(_listed(server, timeout_s) for server in servers))
    found = sorted((tool for tools in listed for tool in tools), key=lambda tool: tool.name)
    kept: dict[str, Tool[Any]] = {}
    for tool in found:
        if tool.name in kept:
            log.warning("tool of MCP server has the name of another tool", tool=tool.name)
            continue
        max_tokens -= tools_tokens(tokens.count, [tool.definition])
        if len(kept) == _MAX_TOOLS or max_tokens < 0:
            log.warning("tools of MCP servers left out", kept=len(kept), found=len(found))
            break
        kept[tool.name] = tool
    return [*kept.values()]


async def _listed(server: McpServer, timeout_s: float) -> list[Tool[Any]]:
    try:
        tools = await usable_tools(server, timeout_s)
    except ServerAway as away:
        log.warning("MCP_SERVERS: server away, tools missing", server=server.name, reason=str(away))
        return []
    log.info("tools of MCP server", server=server.name, tools=len(tools))
    return tools


async def usable_tools(server: McpServer, timeout_s: float) -> list[Tool[Any]]:
    """Return the tools of one server; raise `ServerAway`."""
    # A connection gives up before the toolbox does, so that its end is an orderly one.
    limit_s = timeout_s * 0.9
    listing = OutsideServer(server, min(_LIST_TIMEOUT_S, limit_s))
    listed = await listing.list_tools(MAX_PER_SERVER if server.tools is None else _MAX_LISTED)
    wanted = [each for each in listed if server.tools is None or each.name in server.tools]
    if len(wanted) > MAX_PER_SERVER:
        log.warning("MCP server with too many tools", server=server.name, max=MAX_PER_SERVER)
    tools: list[Tool[Any]] = []
    calling = OutsideServer(server, limit_s)
    for each in wanted[:MAX_PER_SERVER]:
        parameters = _parameters(each.input_schema)
        if parameters is None:
            continue
        name, asks = _valid_name(server.name, each.name), asks_first(each.annotations)
        given = (each.description or each.title or each.name)[:_MAX_SCHEMA_CHARS]
        tool = Tool(
            name,
            escaped(" ".join(given.split()))[:_MAX_DESCRIPTION_CHARS],
            OutsideArguments,
            partial(_asked, calling, each.name, name)
            if asks
            else partial(_called, calling, each.name),
            # Off the record nothing is stored, so no question could wait either.
            uses_memory=asks,
            parameters=parameters,
        )
        tools.append(tool)
    if unusable := len(wanted[:MAX_PER_SERVER]) - len(tools):
        log.warning("tools of MCP server with unusable schemas", server=server.name, tools=unusable)
    return tools


def _valid_name(server: str, tool: str) -> str:
    """Return a name that every model server takes.

    If it differs from the tool's own name, it ends with a checksum of that name. So it is the same
    at each start, and two such tools have two names.
    """
    name = _INVALID.sub("_", f"{server}__{tool}")
    if name == f"{server}__{tool}" and tool and len(name) <= _MAX_NAME_CHARS:
        return name
    mark = f"_{zlib.crc32(tool.encode('utf-8', 'replace')):08x}"
    return name[: _MAX_NAME_CHARS - len(mark)] + mark


def asks_first(hints: types.ToolAnnotations | None) -> bool:
    """Return whether a tool may destroy something or reach others; then it asks before it runs.

    What a server does not say counts as in the specification: destructive and open.
    """
    if hints is None or hints.open_world_hint is not False:
        return True
    return not (hints.read_only_hint or hints.destructive_hint is False)


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema that model servers take, or None.

    None stands for one that is too large, describes no object or holds what no JSON has, as NaN.
    All its texts are escaped, the names of fields too. If a server hides words in a name, the
    model calls it with another name, and the server may refuse the call.
    """
    try:
        text = orjson.dumps(schema).decode()
    except (TypeError, ValueError, RecursionError):
        return None
    if len(text.encode()) > _MAX_SCHEMA_CHARS or orjson.loads(text) != schema:
        return None
    fakes_section = escaped_json(text) != visible(text)
    cleaned = _cleaned(schema, escaped if fakes_section else visible)
    properties = cleaned.get("properties", {})
    if cleaned.get("type") != "object" or not isinstance(properties, dict):
        return None
    kept = {key: value for key, value in cleaned.items() if key not in ("$schema", "title")}
    return {**kept, "properties": properties}


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(key): _cleaned(each, clean) for key, each in value.items()}
    return [_cleaned(each, clean) for each in value] if isinstance(value, list) else value


async def _called(
    server: OutsideServer, tool: str, arguments: OutsideArguments, _: AgentContext
) -> str:
    return await server.call(tool, arguments.model_extra or {})


async def _asked(
    server: OutsideServer, tool: str, name: str, arguments: OutsideArguments, context: AgentContext
) -> str:
    """Run the tool if its person has agreed, else have them asked; raise `ToolError`."""
    if context.is_agreed:
        return await _called(server, tool, arguments, context)
    try:
        asked = orjson.dumps(arguments.model_extra or {}).decode()
    except (TypeError, ValueError, RecursionError):
        raise ToolError("the arguments hold a value that cannot be shown to the person") from None
    asked = clear_json(asked) if len(asked) <= _MAX_SHOWN_CHARS else asked
    if len(asked) > _MAX_SHOWN_CHARS or seen_by_people(asked) != asked:
        raise ToolError(
            "the person has to see all arguments before this tool runs, so they may have at most "
            f"{_MAX_SHOWN_CHARS} characters, and none that shows nothing (such as zero-width "
            "characters, direction marks and unusual blanks)"
        )
    if context.user_message.sender_id <= 0:
        raise ToolError("this tool needs the consent of a person, and nobody here can give it")
    if context.tool_question is not None:
        raise ToolError("the person is asked about one call at a time")
    own = tool if seen_by_people(one_line(tool)) == tool else name
    context.tool_question = ToolQuestion(name, server.name, own, asked)
    return "The person is being asked."


@dataclass(frozen=True, slots=True)
class ToolButtons:
    """Acts on the answers to questions about a call; only the person who asked may give one."""

    memory: Memory
    sentences: Sentences

    async def agree(self, pressed: ButtonPress, here: Scope, nonce: str) -> Parts:
        """Put the answer into the mailbox like a message; its turn runs the tool."""
        asked, language = await self._checked(pressed, here, nonce), pressed.sender.language
        yes = self.sentences.text(language, "buttons.run_tool")
        agreed = replace(message_of(pressed), kind="text", text=yes, agreed=nonce)
        await put_press(self.memory.mailbox, here, agreed)
        log.info("tool agreed to", server=asked.server)
        return self._shown(language, "outside.agreed", asked)

    async def refuse(self, pressed: ButtonPress, here: Scope, nonce: str) -> Parts:
        """Withdraw the question."""
        asked = await self._checked(pressed, here, nonce)
        await self.memory.questions.withdraw(here, nonce, pressed.sender.id)
        return self._shown(pressed.sender.language, "outside.refused", asked)

    async def _checked(self, pressed: ButtonPress, here: Scope, nonce: str) -> ToolQuestion:
        about = await self.memory.questions.check(here, nonce, "tool", pressed.sender.id)
        until, asked = asked_in(about) if about else (0, None)
        if asked is None or until <= time.time():
            raise NotConfirmed("unknown")
        return asked

    def _shown(self, language: str, key: str, asked: ToolQuestion) -> Parts:
        return self.sentences.say(language, key, server=asked.server, tool=asked.tool)


class OutsideTools(AIContextBehavior):
    """The tools of MCP servers."""

    name = "mcp"
    gives_way = True

    def __init__(self, functions: Sequence[Tool[Any]]) -> None:
        self.functions = functions


async def feature(services: Services) -> Feature:
    """Return the feature, with the tools that the servers have now."""
    settings = services.own(McpSettings)
    servers, timeout_s = settings.mcp_servers, settings.tool_timeout_s
    max_tokens = int(settings.prompt_tokens * _SHARE)
    tools = await list_outside_tools(servers, services.memory.tokens, max_tokens, timeout_s)
    answers = ToolButtons(services.memory, services.sentences)
    buttons = {RUN: answers.agree, DONT_RUN: answers.refuse}
    return Feature(name="mcp", behaviors=[OutsideTools(tools)], buttons=buttons)
