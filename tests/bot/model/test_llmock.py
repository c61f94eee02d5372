"""llmock, which is not ours, breaks its answers and judges how our client reacts."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from bot.model.call import ModelReply, ModelRequest, PromptMessage
from bot.model.chat_model import OpenAIChatModel
from bot.model.model_errors import ModelUnavailable
from bot.model.openai_client import open_client
from memory.store.embedded import die_with_parent
from tests.valkey import HOST, free_port

pytestmark = pytest.mark.xdist_group("llmock")
WORDS = 40  # so many that an answer takes long: llmock then notices that we leave before its end
REPLY = {"type": "reply", "text": " word" * WORDS, "times": None}


@pytest.fixture(scope="module")
def llmock_url() -> Iterator[str]:
    """Yield the address of llmock on loopback; it ends with the tests."""
    port = free_port()
    llmock = str(Path(sys.executable).with_name("llmock"))
    options = ["--host", HOST, "--port", str(port), "--stream-chunk-delay-ms", "10"]
    process = subprocess.Popen(
        [llmock, "serve", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent(),  # noqa: PLW1509 - started from the main thread
    )
    assert process.stdout
    said = next((line for line in process.stdout if b"Uvicorn running on" in line), b"")
    assert said, "llmock did not start"
    yield f"http://{HOST}:{port}"
    process.terminate()
    process.communicate(timeout=30)


@pytest.fixture
async def admin(llmock_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=f"{llmock_url}/_llmock", trust_env=False) as admin:
        await admin.post("/reset")
        yield admin


async def play(admin: httpx2.AsyncClient, **behavior: object) -> None:
    """Make the next answer fail in this way."""
    answer = await admin.post("/scenario", json={"behaviors": [behavior, REPLY]})
    assert answer.status_code == 201, answer.text


async def ask(llmock_url: str, timeout_s: float = 10) -> ModelReply:
    async with open_client(f"{llmock_url}/v1", None, timeout_s) as client:
        model = OpenAIChatModel(client, "gpt-4.1-mini", timeout_s)
        return await model.complete(ModelRequest([PromptMessage("user", "hello")]))


async def check_verdict(admin: httpx2.AsyncClient) -> None:
    verdict = (await admin.get("/verdict")).json()
    assert verdict["findings"] == []
    assert verdict["faults_injected"] == 1


@pytest.mark.parametrize(
    "behavior",
    [
        {"type": "fail", "status": 429, "retry_after": 0.2},
        {"type": "stream_fault", "kind": "disconnect", "after_chunks": 2},
        {"type": "stream_fault", "kind": "truncate", "after_chunks": 2},
        {"type": "stream_fault", "kind": "malformed", "after_chunks": 2},
    ],
    ids=["rate_limit", "disconnect", "truncate", "malformed"],
)
async def test_after_a_fault_the_whole_answer_still_arrives(
    admin: httpx2.AsyncClient, llmock_url: str, behavior: dict[str, object]
) -> None:
    await play(admin, **behavior)
    assert (await ask(llmock_url)).text == REPLY["text"]
    await check_verdict(admin)


async def test_a_stalled_stream_is_given_up(admin: httpx2.AsyncClient, llmock_url: str) -> None:
    await play(admin, type="stream_fault", kind="stall", after_chunks=2, stall_seconds=5)
    with pytest.raises(ModelUnavailable):
        await ask(llmock_url, timeout_s=2)
    await check_verdict(admin)
