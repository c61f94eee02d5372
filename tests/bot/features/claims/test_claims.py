"""An answer that claims to have saved something is told from all other answers."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bot.commands.sentences import Sentences
from bot.features.claims.feature import claim_note, claims_to_have_saved, correct_claims
from bot.language.catalogue import Catalogue
from bot.reply.parts import Part
from bot.turn.request import Request
from memory.behaviors.context import AgentContext, CallContext, Person
from memory.behaviors.statements import set_mode
from memory.behaviors.steps import Action, CompletedStep, ToolCall, ToolResult
from memory.behaviors.user_facts import UserFacts
from memory.memory import Memory
from memory.message import CLAIM, Message
from memory.scopes.fields import Watermark
from memory.scopes.history import ChatHistory
from memory.scopes.writes import Remember
from tests.bot.telegram import raw
from tests.memory.erasure.test_forgetting import write
from tests.memory.turns import GROUP, HERE
from tests.quiet_chat import QuietChat
from tests.work import stretch

MESSAGE = Message(0, 0, "user", "Hello", 0)
REQUEST = Request((raw.inbound(raw.message("Hello")),), MESSAGE, (MESSAGE,))


class Keys(Sentences):
    """Sentences that say their keys."""

    def say(self, language: str, *keys: str, **values: object) -> tuple[Part, ...]:
        del language, values
        return tuple(map(Part, keys))


KEYS = Keys(Catalogue())

CLAIMS = Path(__file__).with_name("claims.txt").read_text("utf-8").splitlines()
NO_CLAIMS = [
    each.replace("\\n", "\n")
    for each in Path(__file__).with_name("no_claims.txt").read_text("utf-8").splitlines()
]


def test_a_claim_to_have_saved_something_is_told_from_all_other_answers() -> None:
    assert [*filter(claims_to_have_saved, [*CLAIMS, *NO_CLAIMS])] == CLAIMS


async def corrected(
    memory: Memory,
    *steps: CompletedStep,
    writes: Sequence[Remember] = (),
    uses_memory: bool = True,
    says: str = "I've saved that.",
) -> str:
    """Return what corrects an agent that claims to have saved something, after these steps."""
    history = await ChatHistory.read(memory.histories, HERE)
    context = AgentContext(CallContext(HERE, Person(), 0), history, uses_memory=uses_memory)
    context.completed_steps += steps
    context.writes += writes
    below = await claim_note(memory.scopes, KEYS, REQUEST, context, says)
    return below.correction.text if below.correction else " ".join(below.codes)


def step(tool: str, *, failed: bool = False, reads: bool = False) -> CompletedStep:
    result = ToolResult("a", "", failed, is_reader=reads)
    return CompletedStep(Action((ToolCall("a", tool, "{}"),)), (result,))


async def test_a_claim_is_corrected_unless_it_was_kept_or_may_be_learned(memory: Memory) -> None:
    correction = partial(corrected, memory)
    await set_mode(memory.scopes, HERE, "explicit")
    assert await correction() == "claims.explicit"
    assert await correction(says="Hello.") == ""
    assert await correction(step("search_memory", reads=True)) == "claims.explicit"
    assert await correction(step("remember", failed=True)) == "claims.explicit"
    assert await correction(step("remember")) == ""
    assert await correction(step("notes__save")) == ""
    assert await correction(writes=[Remember("sails")]) == ""
    assert await correction(writes=[Remember("", nonce="card")]) == "claims.explicit"
    assert await correction(uses_memory=False) == "off.not_saved"
    await set_mode(memory.scopes, HERE, "ask")
    assert await correction() == "claims.ask"
    await set_mode(memory.scopes, HERE, "auto")
    assert await correction() == f"{CLAIM}de", "learning will tell"
    assert await correction(step("remember")) == ""
    await memory.switch.turn_off(HERE)
    assert await correction(step("remember")) == "claims.off"


async def test_a_long_conversation_is_not_looked_through_after_each_turn(memory: Memory) -> None:
    history = await ChatHistory.read(memory.histories, GROUP)
    check, calls = partial(correct_claims, memory.scopes, QuietChat(), KEYS, GROUP), list[int]()
    for _ in range(3):
        await history.append_assistant_message("I've saved that.", 1_000)
        await write(memory, GROUP, Watermark(UserFacts.name, history.messages[-1].seq))
        calls.append((await stretch(check()))[1])
    assert calls[1] == calls[2]
