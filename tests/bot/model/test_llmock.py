"""llmock, which is not ours, breaks its answers and judges how our client reacts."""

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from bot.model.call import ModelReply, PromptMessage
from bot.model.chat_model import OpenAIChatModel
from bot.model.model_errors import ModelUnavailable
from bot.model.openai_client import open_client
from tests.llmock import llmock_served

pytestmark = pytest.mark.xdist_group("llmock")
WORDS = 40
"""So many that an answer takes long: llmock then notices that we leave before its end."""
REPLY = {"type": "reply", "text": " word" * WORDS, "times": None}


@pytest.fixture(scope="module")
def llmock_url() -> Iterator[str]:
    with llmock_served() as url:
        yield url


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
        return await model.complete([PromptMessage("user", "hello")], ())


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
        await ask(llmock_url, timeout_s=0.3)
    await check_verdict(admin)
