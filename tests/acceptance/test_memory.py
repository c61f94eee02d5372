"""What was said is remembered, by the right conversation, across restarts (A1-A9)."""

from tests.acceptance.rig import Rig


async def test_a1_each_chat_sees_only_its_own_words(rig: Rig) -> None:
    await rig.start()
    anna, annas = rig.anna()
    ben, bens = rig.ben()
    await rig.ask(anna, annas, "My name is Anna Aardvark")
    await rig.ask(ben, bens, "My name is Ben Badger")
    rig.script.on("my name?", "You told me.")
    for person, chat, own, foreign in (
        (anna, annas, "Aardvark", "Badger"),
        (ben, bens, "Badger", "Aardvark"),
    ):
        reply = await rig.ask(person, chat, "What is my name?")
        request = rig.requests[-1]
        prompt = "\n".join(message.content for message in request.messages)
        assert own in prompt
        assert foreign not in prompt
        assert reply.text == "You told me."


async def test_a2_memory_survives_a_kill_and_nothing_is_embedded_twice(rig: Rig) -> None:
    await rig.start()
    anna, chat = rig.anna()
    await rig.ask(anna, chat, "My boat is called Aurora")
    await rig.wait_until_learned(2)
    await rig.restart()
    rig.script.on("called?", "Aurora.")
    await rig.ask(anna, chat, "What is it called?")
    assert "My boat is called Aurora" in rig.requests[-1].messages[1].content
    await rig.wait_until_learned(4)
    embedded = rig.model.log.embedded
    assert len(embedded) == len(set(embedded))
