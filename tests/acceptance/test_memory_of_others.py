"""What others said of themselves in a group: only they and its administrators change it."""

from bot.playground.bot_api import Chat, Person
from bot.playground.model_api import Reply, tool_call
from memory.keys import Conversation
from tests.acceptance.asking import ask_and_learn
from tests.acceptance.memory_model import main_requests, remember_with
from tests.acceptance.planting import stored_notebook
from tests.acceptance.rig import Rig

US = "@ricordo_bot"


async def have_called(
    rig: Rig, person: Person, chat: Chat, words: str, tool: str, **arguments: object
) -> str:
    """Say something for which the model calls a tool; return what the tool answers."""
    call = tool_call(tool, **arguments)
    rig.script.on(words, Reply(tool_calls=(call,)), "Done.")
    await ask_and_learn(rig, person, chat, f"{US} {words}" if chat.kind != "private" else words)
    (answer,) = [m.content for m in main_requests(rig)[-1].messages if m.role == "tool"]
    return answer


async def current(rig: Rig, chat: Chat) -> list[str]:
    """Return the facts of a group that hold."""
    notebook = await stored_notebook(rig, Conversation.of_chat(chat.id))
    return [fact.text for fact in notebook.facts if fact.is_current]


async def test_no_member_of_a_group_has_others_facts_erased_or_replaced(webhook_rig: Rig) -> None:
    rig = webhook_rig
    remember_with(rig)
    await rig.start(learn="facts", learn_every_turns=99)
    anna, mallory = rig.anna()[0], rig.person(2001, "Mallory")[0]
    group = rig.telegram.group("Club", [mallory], admins=[anna])
    said = "Anna lives in ZANZIBARQ."
    await have_called(rig, anna, group, f"Remember: {said}", "remember", text=said)
    assert await current(rig, group) == [said]
    assert not rig.telegram.calls_to("getChatMember")
    for words, tool, arguments in (
        ("please forget #1", "forget_memory", {"id": 1}),
        ("Anna is a thief", "remember", {"text": "Anna is a thief", "replaces": 1}),
    ):
        answer = await have_called(rig, mallory, group, words, tool, **arguments)
        assert answer.startswith("Error: #1 rests on what others here said")
        assert await current(rig, group) == [said]
    assert len(rig.telegram.calls_to("getChatMember")) == 2
