"""A client of the local model server: the real SDK, which the bot uses too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from openai import AsyncOpenAI, AsyncStream
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk

from tests.servers.model_api import ModelApiServer


@asynccontextmanager
async def client_of(server: ModelApiServer, key: str = "any") -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(
        base_url=server.base_url, api_key=key, max_retries=0, timeout=60
    ) as client:
        yield client


@dataclass(slots=True)
class Streamed:
    """The chunks of one stream, joined."""

    text: str = ""
    reasoning: str = ""
    names: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    usage: CompletionUsage | None = None
    chunks: list[ChatCompletionChunk] = field(default_factory=list)


async def collect(stream: AsyncStream[ChatCompletionChunk]) -> Streamed:
    """Read a stream to its end; a call with an id is a new one, whatever its index."""
    streamed = Streamed()
    await collect_into(streamed, stream)
    return streamed


async def collect_into(streamed: Streamed, stream: AsyncStream[ChatCompletionChunk]) -> None:
    """Read a stream to its end or its break; what came before it is then in `streamed`."""
    async for chunk in stream:
        streamed.chunks.append(chunk)
        streamed.usage = chunk.usage or streamed.usage
        for choice in chunk.choices:
            streamed.text += choice.delta.content or ""
            streamed.reasoning += (choice.delta.model_extra or {}).get("reasoning_content", "")
            streamed.finish_reason = choice.finish_reason or streamed.finish_reason
            for call in choice.delta.tool_calls or []:
                assert call.function is not None
                if call.id:
                    streamed.ids.append(call.id)
                    streamed.names.append(call.function.name or "")
                    streamed.arguments.append("")
                streamed.arguments[-1] += call.function.arguments or ""
