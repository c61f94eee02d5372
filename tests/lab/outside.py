"""Runs the real bot with model servers that we did not write.

    python -m tests.lab.outside

It installs aimock and LiteLLM into `$RICORDO_LAB` (default: the folder for temporary files), never
into this environment. For each route one person writes over a local Telegram: the bot answers,
learns, calls a tool, and calls two tools at once. A route whose server cannot be installed is
skipped, with the reason.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.model.trouble import recognize
from tests.acceptance.asking import ask_and_learn
from tests.acceptance.rig import KEY, Rig, open_rig
from tests.lab.outside_servers import (
    NotInstallable,
    aimock,
    install_aimock,
    install_litellm,
    litellm,
)
from tests.servers.bot_api import Chat, Person
from tests.valkey import ValkeyServer

MODEL, EMBEDDINGS = "gpt-5.4-mini", "text-embedding-3-small"
STATE = {
    "first_name": "Anna",
    "last_name": "unknown",
    "discussion_summary": "Her boat is called Aurora",
    "key_entities": ["Aurora"],
    "open_problems": [],
    "current_goals": [],
}


def called(name: str, **arguments: object) -> dict[str, object]:
    """Return a tool call as fixtures write it."""
    return {"name": name, "arguments": arguments}


def fixture(when: dict[str, object], then: dict[str, object]) -> dict[str, object]:
    """Return one rule of aimock."""
    return {"match": when, "response": then}


FIXTURES = [
    fixture({"userMessage": "What was said"}, {"content": json.dumps({"running_state": STATE})}),
    fixture(
        {"userMessage": "both at once", "hasToolResult": False},
        {
            "toolCalls": [called("calculate", expression="6*9"), called("current_time")],
            "reasoning": "Two tools are needed.",
        },
    ),
    fixture({"userMessage": "both at once", "hasToolResult": True}, {"content": "Both are done."}),
    fixture(
        {"userMessage": "six times seven", "hasToolResult": False},
        {"toolCalls": [called("calculate", expression="6*7")], "reasoning": "A sum."},
    ),
    fixture(
        {"userMessage": "six times seven", "toolResultContains": "42"}, {"content": "It is 42."}
    ),
    fixture({"userMessage": "Aurora"}, {"content": "A fine name for a boat."}),
]
"""The first match answers. Later questions come first, because prompts repeat earlier ones."""
MADE_UP = "A fine name for a boat."


def model_list(upstream: str) -> list[dict[str, Any]]:
    """Return LiteLLM's models: two providers that aimock simulates, and a fixed answer."""
    key = {"api_key": "any"}
    through = {
        "by-openai": {"model": f"openai/{MODEL}", "api_base": f"{upstream}/v1", **key},
        "by-anthropic": {"model": "anthropic/claude-sonnet-4-5", "api_base": upstream, **key},
        "made-up": {"model": f"openai/{MODEL}", "mock_response": MADE_UP, **key},
        EMBEDDINGS: {"model": f"openai/{EMBEDDINGS}", "api_base": f"{upstream}/v1", **key},
    }
    return [{"model_name": name, "litellm_params": params} for name, params in through.items()]


@dataclass(frozen=True, slots=True)
class Route:
    """A way from the bot to a model; with `only_answers` there are no tools and no learning."""

    server: str
    api: str
    model: str
    only_answers: bool = False


ROUTES = (
    Route("aimock", "chat", MODEL),
    Route("aimock", "responses", MODEL),
    Route("LiteLLM", "chat", "made-up", only_answers=True),
    Route("LiteLLM", "chat", "by-openai"),
    Route("LiteLLM", "responses", "by-openai"),
    Route("LiteLLM", "chat", "by-anthropic"),
    Route("LiteLLM", "responses", "by-anthropic"),
)
HEADER = (
    "server  | OPENAI_API | model         | check says | asked over | answer | learned | vectors"
    " | tool | two"
)


async def main() -> int:
    """Print a line for each route; return 1 if one of them failed."""
    folder = Path(os.environ.get("RICORDO_LAB", Path(tempfile.gettempdir()) / "ricordo-lab"))
    print(HEADER, flush=True)  # noqa: T201 - the output of this program
    failed = False
    async with AsyncExitStack() as stack:
        addresses: dict[str, str] = {}
        reasons: dict[str, str] = {}
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            mock = await stack.enter_async_context(
                aimock(await install_aimock(folder), work, FIXTURES)
            )
            addresses["aimock"] = mock
            addresses["LiteLLM"] = await stack.enter_async_context(
                litellm(await install_litellm(folder), work, model_list(mock))
            )
        except NotInstallable as error:
            reasons = {
                route.server: str(error) for route in ROUTES if route.server not in addresses
            }
        for route in ROUTES:
            name = f"{route.server:7} | {route.api:10} | {route.model:13}"
            if route.server in reasons:
                line = f"skipped: {reasons[route.server]}"
            else:
                line, went_well = await measure(route, addresses[route.server])
                failed |= not went_well
            print(f"{name} | {line}", flush=True)  # noqa: T201
    return int(failed)


async def measure(route: Route, address: str) -> tuple[str, bool]:
    """Return the columns of a route, and whether all of them are good."""
    recognized = await recognize(f"{address}/v1", KEY)
    seen = [f"{recognized.name or 'no name':10}"]
    try:
        async with bot_on(route, address) as rig:
            said = await talk(rig, only_answers=route.only_answers)
            apis = {line["api"] for line in rig.bot.log if line["event"] == "model answered"}
    except (TimeoutError, AssertionError) as error:
        return f"{seen[0]} | failed: {str(error)[-1500:]}", False
    widths = (6, 7, 7, 4, 3)
    marks = {True: "yes", False: "NO", None: "-"}
    seen.append(f"{' '.join(sorted(apis)):10}")
    seen += [f"{marks[each]:{width}}" for each, width in zip(said, widths, strict=True)]
    as_asked = {api.lower() for api in apis} == {route.api}
    return " | ".join(seen), as_asked and False not in said


@asynccontextmanager
async def bot_on(route: Route, address: str) -> AsyncIterator[Rig]:
    """Yield a running bot that asks the server at `address`."""
    with tempfile.TemporaryDirectory() as folder, ValkeyServer(Path(folder)) as store:
        async with open_rig(store.url, Path(folder)) as rig:
            await rig.start(
                openai_base_url=f"{address}/v1",
                openai_api=route.api,
                openai_model=route.model,
                openai_embedding_model=EMBEDDINGS,
                learn="off" if route.only_answers else "state",
                learn_every_turns=1,
            )
            yield rig


async def talk(rig: Rig, *, only_answers: bool) -> list[bool | None]:
    """Return whether the bot answered, learned, stored vectors, used a tool, and two at once."""
    anna, chat = rig.anna()
    reply = await ask_and_learn(rig, anna, chat, "My boat is called Aurora")
    answered = reply.text == MADE_UP
    vectors = any(line["event"] == "learned" and line["messages"] for line in rig.bot.log)
    if only_answers:
        return [answered, None, vectors, None, None]
    learned = "Aurora" in (await rig.ask(anna, chat, "/memory")).text
    return [
        answered,
        learned,
        vectors,
        await is_answered(rig, anna, chat, "What is six times seven?", "It is 42."),
        await is_answered(rig, anna, chat, "Now both at once, please", "Both are done."),
    ]


async def is_answered(rig: Rig, person: Person, chat: Chat, text: str, answer: str) -> bool:
    """Write a text and compare the bot's answer."""
    return (await ask_and_learn(rig, person, chat, text)).text == answer


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
