"""Measures the CPU time of one streamed answer over each of the two model APIs.

    python -m tests.lab.answers

The prompt has forty messages and two tools, the answer has sixty pieces. The server is a separate
process that sends prepared bytes. The output is one JSON object: milliseconds of this process for
one answer, the median over rounds. Both APIs alternate, so other load on the machine affects both.
"""

import asyncio
import json
import multiprocessing
import time
from contextlib import suppress
from statistics import median

from bot.model.answering import OpenAIChatModel
from bot.model.call import PromptMessage
from bot.model.openai_client import open_client
from memory.behaviors.tool import ToolDefinition
from tests.lab.bots import REPLY
from tests.valkey import free_port

APIS = ("chat", "responses")
ROUNDS = 30
ANSWERS = 20
_WORDS = [f" {word}" for word in REPLY.split()]
_PROMPT = (
    PromptMessage("system", "You are a bot that remembers. " * 40),
    *(PromptMessage("user" if at % 2 else "assistant", "A message. " * 20) for at in range(1, 40)),
)
_TOOLS = tuple(
    ToolDefinition(name, "Does what it says. " * 5, {"type": "object", "properties": {}})
    for name in ("search_memory", "remember")
)


def chat_events() -> list[dict[str, object]]:
    """Return the chunks of an answer as OpenAI sends them."""
    envelope = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return [
        *({**envelope, "choices": [{"index": 0, "delta": {"content": word}}]} for word in _WORDS),
        {**envelope, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**envelope, "choices": [], "usage": {"prompt_tokens": 3_000, "completion_tokens": 60}},
    ]


def response_events() -> list[dict[str, object]]:
    """Return the events of a response; the first two and the last contain tools and settings."""
    tools = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "strict": False,
        }
        for tool in _TOOLS
    ]
    text = "".join(_WORDS)
    envelope: dict[str, object] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": "m",
        "output": [],
        "tools": tools,
        "reasoning": {"effort": None},
        "store": False,
        "text": {"format": {"type": "text"}},
    }
    position = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}
    usage = {"input_tokens": 3_000, "output_tokens": 60}
    ended = {**envelope, "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": envelope},
        {"type": "response.in_progress", "response": envelope},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **position, "part": {**part, "text": ""}},
        *(
            {"type": "response.output_text.delta", **position, "delta": word, "logprobs": []}
            for word in _WORDS
        ),
        {"type": "response.output_text.done", **position, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **position, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": ended},
    ]


def serve(port: int) -> None:
    """Serve prepared answers by request path, one write for each event."""
    answers = {
        b"completions": [
            *(f"data: {json.dumps(each)}\n\n" for each in chat_events()),
            "data: [DONE]\n\n",
        ],
        b"responses": [
            f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in response_events()
        ],
    }

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                events = next(each for name, each in answers.items() if name in head[:60])
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                    b"transfer-encoding: chunked\r\n\r\n"
                )
                for event in events:
                    writer.write(b"%x\r\n%b\r\n" % (len(event), event.encode()))
                    await asyncio.sleep(0)
                writer.write(b"0\r\n\r\n")

    async def run() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(run())


async def cpu_ms(model: OpenAIChatModel, answers: int) -> float:
    """Return the mean CPU time of an answer in milliseconds."""
    began = time.process_time()
    for _ in range(answers):
        reply = await model.complete(_PROMPT, _TOOLS)
        assert reply.text == "".join(_WORDS), reply
    return 1_000 * (time.process_time() - began) / answers


async def measure(base_url: str) -> dict[str, float]:
    """Return the figures."""
    found: dict[str, list[float]] = {api: [] for api in APIS}
    async with (
        open_client(base_url, None, 10, api="chat") as chat,
        open_client(base_url, None, 10, api="responses") as responses,
    ):
        models = dict(
            zip(APIS, (OpenAIChatModel(each, "m", 10) for each in (chat, responses)), strict=True)
        )
        for model in models.values():
            await cpu_ms(model, ANSWERS)
        for _ in range(ROUNDS):
            for api, model in models.items():
                found[api].append(await cpu_ms(model, ANSWERS))
    return {f"{api}_cpu_ms": round(median(times), 3) for api, times in found.items()}


async def until_listening(port: int) -> None:
    """Wait until the server accepts connections."""
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.02)


async def main() -> None:
    """Measure and print."""
    port = free_port()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(port,), daemon=True)
    server.start()
    await until_listening(port)
    print(json.dumps(await measure(f"http://127.0.0.1:{port}/v1")))  # noqa: T201
    server.kill()


if __name__ == "__main__":
    asyncio.run(main())
