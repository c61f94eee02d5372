"""Questions that hold words: who may agree to a tool, for how long, and what erases them."""

import pytest

from memory.behaviors.steps import ToolQuestion
from memory.erasure.confirmations import NotConfirmed
from memory.erasure.tool_runs import ToolRuns
from memory.memory import Memory
from memory.store.keys import Scope

QUESTION = ToolQuestion("shop__order", "shop", "order", '{"thing":"a|b"}')
HERE = Scope.of_chat(7, 0)


@pytest.fixture
def runs(memory: Memory) -> ToolRuns:
    return ToolRuns(memory.store)


async def test_only_who_asked_may_agree_and_only_for_a_while(
    runs: ToolRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    nonce = await runs.ask(HERE, 1, QUESTION)
    assert await runs.check(HERE, nonce, 1) == QUESTION
    with pytest.raises(NotConfirmed, match="not_yours"):
        await runs.check(HERE, nonce, 2)
    monkeypatch.setattr("memory.erasure.tool_runs._VALID_S", 0)
    nonce = await runs.ask(HERE, 1, QUESTION)
    with pytest.raises(NotConfirmed, match="unknown"):
        await runs.check(HERE, nonce, 1)


async def test_a_tool_runs_for_one_press_and_only_once(runs: ToolRuns) -> None:
    nonce = await runs.ask(HERE, 1, QUESTION)
    assert await runs.begin(HERE, nonce, 50) == (QUESTION, "first")
    assert await runs.begin(HERE, nonce, 50) == (QUESTION, "repeated")
    assert await runs.begin(HERE, nonce, 51) is None
    assert await runs.begin(HERE, nonce, 5) is None


async def test_a_question_that_was_withdrawn_or_erased_runs_nothing(
    runs: ToolRuns, memory: Memory
) -> None:
    nonce = await runs.ask(HERE, 1, QUESTION)
    assert await memory.confirmations.cancel(HERE, nonce, 1)
    assert await runs.begin(HERE, nonce, 50) is None
    nonce = await runs.ask(HERE, 1, QUESTION)
    clear = await memory.confirmations.ask(HERE, "clear", 1)
    await memory.forgetting.clear(HERE, clear, 1, 60, as_admin=False)
    assert await runs.begin(HERE, nonce, 50) is None


async def test_a_list_that_waits_for_a_yes_is_erased_with_its_conversation(memory: Memory) -> None:
    pasted = '["","/import","",20,"- I keep a quokka"]'
    nonce = await memory.confirmations.ask(HERE, "import", 1, pasted)
    clear = await memory.confirmations.ask(HERE, "clear", 1)
    await memory.forgetting.clear(HERE, clear, 1, 60, as_admin=False)
    stored = await memory.client.call("HVALS", memory.keys.scope(HERE).confirm)
    assert not any(b"quokka" in each for each in stored)
    with pytest.raises(NotConfirmed, match="unknown"):
        await memory.confirmations.check(HERE, nonce, "import", 1)


async def test_the_nonce_of_an_erasure_agrees_to_no_tool(runs: ToolRuns, memory: Memory) -> None:
    await memory.forgetting.erase_messages(HERE, {1}, "erased-long-ago")
    with pytest.raises(NotConfirmed, match="unknown"):
        await runs.check(HERE, "erased-long-ago", 1)
