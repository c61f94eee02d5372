"""An answer that claims to have saved something is told from all other answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.commands.sentences import Sentences
from bot.features.claims.feature import NOTHING_KEPT, ClaimNote, claims_to_have_saved
from bot.language.catalogue import Catalogue
from memory.behaviors.context import AgentContext, CallContext, Person
from memory.behaviors.statements import set_mode
from memory.behaviors.steps import Action, CompletedStep, ToolCall, ToolResult
from memory.memory import Memory
from memory.scopes.history import ChatHistory
from memory.scopes.scopes import Scopes
from memory.scopes.writes import Remember
from memory.store.keys import Scope

HERE = Scope.of_chat(7)

CLAIMS = Path(__file__).with_name("claims.txt").read_text("utf-8").splitlines()
NO_CLAIMS = [
    each.replace("\\n", "\n")
    for each in Path(__file__).with_name("no_claims.txt").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("text", CLAIMS)
def test_a_claim_to_have_saved_something_is_noticed(text: str) -> None:
    assert claims_to_have_saved(text)


@pytest.mark.parametrize("text", NO_CLAIMS)
def test_other_answers_do_not_count_as_claims(text: str) -> None:
    assert not claims_to_have_saved(text)


@dataclass
class Claiming:
    """An agent that claims to have saved something, after these steps and writes."""

    history: ChatHistory
    scopes: Scopes

    async def correction(
        self,
        *steps: CompletedStep,
        writes: Sequence[Remember] = (),
        uses_memory: bool = True,
        says: str = "I've saved that.",
    ) -> str:
        call = CallContext(HERE, Person(), 0)
        context = AgentContext(call, self.history, uses_memory=uses_memory)
        context.completed_steps += steps
        context.writes += writes
        return await ClaimNote(self.scopes, Sentences(Catalogue())).correction(context, says)


def step(tool: str, *, failed: bool = False, reads: bool = False) -> CompletedStep:
    result = ToolResult("a", "", failed, is_reader=reads)
    return CompletedStep(Action((ToolCall("a", tool, "{}"),)), (result,))


async def test_a_claim_is_corrected_unless_it_was_kept_or_may_be_learned(memory: Memory) -> None:
    agent = Claiming(await ChatHistory.read(memory.histories, HERE), memory.scopes)
    await set_mode(memory.scopes, HERE, "explicit")
    assert await agent.correction() == "claims.explicit"
    assert await agent.correction(says="Hello.") == ""
    assert await agent.correction(step("search_memory", reads=True)) == "claims.explicit"
    assert await agent.correction(step("remember", failed=True)) == "claims.explicit"
    assert await agent.correction(step("remember")) == ""
    assert await agent.correction(step("notes__save")) == ""
    assert await agent.correction(writes=[Remember("sails")]) == ""
    assert await agent.correction(writes=[Remember("", nonce="card")]) == "claims.explicit"
    assert await agent.correction(uses_memory=False) == "off.not_saved"
    await set_mode(memory.scopes, HERE, "ask")
    assert await agent.correction() == "claims.ask"
    await set_mode(memory.scopes, HERE, "auto")
    assert await agent.correction() == NOTHING_KEPT, "learning will tell"
    assert await agent.correction(step("remember")) == ""
    await memory.switch.turn_off(HERE)
    assert await agent.correction(step("remember")) == "claims.off"
