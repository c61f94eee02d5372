"""Operators' commands: only for operators, in private, never showing content (A21)."""

from datetime import UTC, datetime

from bot.runtime.logs import short_name
from memory.store.keys import Scope
from tests.acceptance.buttons import CANCEL, erase, press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully, dialogue


async def test_stats_and_inspect_show_counts_and_never_content(rig: Rig) -> None:
    (ada, adas), (anna, annas) = await rig.start_with_ada(), rig.anna()
    await rig.ask(anna, annas, "My secret colour is ultramarine")
    await rig.wait_until_learned(2)
    stats = await rig.ask(ada, adas, "/stats")
    counts = "Conversations: 2", "Active in the last 24 hours: 2", "Waiting for an answer: 0"
    for line in (*counts, "Running for: 0 h 0 min"):
        assert line in stats.text

    first, last = (
        datetime.fromtimestamp(message.sent_at, UTC).strftime("%-d %B %Y, %H:%M UTC")
        for message in (annas.messages[0], annas.messages[-1])
    )
    inspected = await rig.ask(ada, adas, "/inspect 1001")
    numbers = {"messages": 2, "vectors": 2, "waiting": 0, "epoch": 0, "first": first, "last": last}
    name = short_name(rig.telegram.token, Scope.of_chat(anna.id))
    assert inspected.text == sentence("admin.inspect", name=name, **numbers)
    for words, key in {
        "/inspect me": "admin.inspect_usage",
        "/inspect 12345": "admin.nothing_there",
    }.items():
        assert (await rig.ask(ada, adas, words)).text == sentence(key)
    await rig.ask(anna, annas, "And my cat?")
    first_line, *busiest = (await rig.ask(ada, adas, "/inspect")).text.splitlines()
    assert first_line == sentence("admin.inspect_busiest")
    assert [line.partition(" (in")[0] for line in busiest] == [f"• {anna.id}", f"• {ada.id}"]
    assert [f"{name}): messages 4" in line for line in busiest] == [True, False]
    assert "ultramarine" not in adas.transcript()


async def test_clear_memory_erases_its_target_and_nothing_else(rig: Rig) -> None:
    (ada, adas), (anna, annas), (ben, bens) = await rig.start_with_ada(), rig.anna(), rig.ben()
    group = rig.telegram.group("Club", [anna, ben])
    await rig.ask(ada, adas, "My cat is called Mephisto")
    await rig.ask(anna, annas, "My secret colour is ultramarine")
    await rig.ask(anna, group, "@ricordo_bot I like ratatouille")
    await rig.ask(ben, group, "@ricordo_bot I like pancakes")
    await rig.ask(ben, bens, "My boat is called Aurora")
    await rig.wait_until_learned(10)

    async def left() -> list[str]:
        stored = await rig.stored()
        words = ("Mephisto", "ultramarine", "ratatouille", "pancakes", "Aurora")
        return [word for word in words if word.encode() in stored]

    for nonsense in ("everything", "user", "user Anna", "1001 1002"):
        reply = await rig.ask(ada, adas, f"/clear_memory {nonsense}")
        assert reply.text == sentence("admin.clear_memory_usage")
    kept = await ask_fully(rig, ada, adas, "/clear_memory all")
    await press(rig, ada, kept, CANCEL)
    await shown(rig, kept, sentence("clear.cancelled"))
    said = await left()
    assert said == ["Mephisto", "ultramarine", "ratatouille", "pancakes", "Aurora"]

    for words, target, conversations, messages, remaining in (
        ("", f"the chat {ada.id}", 1, 2, said[1:]),
        (" user 1001", "the person 1001", 2, 4, said[3:]),
        (f" {group.id}", f"the chat {group.id}", 1, 2, said[4:]),
        (" all", "all people and all chats", 4, 2, []),
    ):
        question = await ask_fully(rig, ada, adas, f"/clear_memory{words}")
        assert question.text == sentence("admin.clear_memory_ask", target=target)
        counts = {"conversations": conversations, "messages": messages, "vectors": messages}
        await erase(rig, ada, question, "admin.clear_memory_done", **counts)
        assert await left() == remaining
    await rig.ask(ben, bens, "What is my boat called?")
    assert dialogue(rig) == ["What is my boat called?"]
