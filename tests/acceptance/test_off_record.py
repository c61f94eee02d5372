"""Off the record no memory is read or written, and nothing of it is left at the end."""

from datetime import datetime
from pathlib import Path
from time import time
from zoneinfo import ZoneInfo

from memory.store.client import RedisClient
from memory.store.keys import Scope
from tests.acceptance.buttons import ask_for_wording, asks_to_delete, button, press, press_now
from tests.acceptance.memory_model import remember_with
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_and_learn, ask_fully
from tests.servers.bot_api import Chat, Message, Person
from tests.servers.model_api import Reply, tool_call
from tests.stored import everything_on_disk

MARK = "🕶"
CHANGE = sentence("buttons.change_entry")
WORDS = (b"zanzibar", b"Zanzibar", b"quokka", b"Quokka", b"wombat")


async def nothing_is_left(rig: Rig, folder: Path) -> None:
    """Fail if a word that was said off the record is stored, logged or embedded anywhere."""
    stored = await rig.stored()
    kept = stored + everything_on_disk(folder) + "\n".join(rig.bot.raw).encode()
    assert [word for word in WORDS if word in kept] == []
    embedded = rig.model.log.embedded
    assert [text for text in embedded if any(word.decode() in text for word in WORDS)] == []


def end_in_tokyo(began: Message) -> str:
    """Return how a message says the end of the session, whose time is that of Tokyo."""
    [link] = [each for each in began.entities if each.unix_time]
    moment = datetime.fromtimestamp(link.unix_time, ZoneInfo("Asia/Tokyo"))
    assert f", {moment:%H:%M}." in began.text
    return began.text.partition(". ")[0]


async def no_memory_is_used(
    rig: Rig, anna: Person, chat: Chat, memory: Message, why: Message, question: Message
) -> None:
    """Fail if /why or the edit of a fact reads or changes the memory off the record."""
    refused = sentence("off.no_memory")
    assert (await ask_fully(rig, anna, chat, "/why")).text == refused
    assert await press(rig, anna, why, button(why, "↗")) == refused
    assert (await rig.ask(anna, chat, "It is a quokka.", reply_to=question)).text == refused
    await press_now(rig, anna, memory, f"{CHANGE} 1")
    await rig.telegram.wait_for(lambda: asks_to_delete(memory))
    assert await press_now(rig, anna, memory, "Edit") == refused
    assert await press_now(rig, anna, memory, "Pin") == refused


async def test_words_off_the_record_meet_no_memory_and_are_erased_with_a_receipt(
    rig: Rig, tmp_path: Path
) -> None:
    remember_with(rig)
    remembers = Reply(tool_calls=(tool_call("remember", text="Has a wombat"),))
    rig.script.on("wombat", remembers, "I cannot.")
    anna, chat = await rig.start_with_anna(learn="state,facts,synopses", learn_every_turns=1)
    for words in ("My boat is called Aurora", "What is my boat called?"):
        await ask_and_learn(rig, anna, chat, words)
    assert (await rig.ask(anna, chat, "/off 2 years")).text == sentence("off.usage")
    assert (await rig.ask(anna, chat, "/back")).text == sentence("off.not_off")
    before_off = [await ask_fully(rig, anna, chat, command) for command in ("/memory", "/why")]
    before_off.append(await ask_for_wording(rig, anna, before_off[0], f"{CHANGE} 1"))
    await rig.ask(anna, chat, "/reminders Tokyo")
    began = await ask_fully(rig, anna, chat, "/off 30m")
    before = len(rig.requests)
    assert began.text.startswith(f"{MARK} Off the record until /back, at the latest ")

    for words in ("I fly to Zanzibar", "What did I say of Zanzibar?", "Keep that I have a wombat"):
        said = await ask_fully(rig, anna, chat, words)
        assert said.text.endswith(f"\n\n{MARK}")
    requests = rig.requests[before:]
    assert "Aurora" not in str([request.messages for request in requests])
    assert requests[1].asked == "What did I say of Zanzibar?"
    assert requests[1].messages[1].content == "I fly to Zanzibar"
    assert "off the record" in requests[-1].messages[-1].content
    assert (await rig.ask(anna, chat, "/recall Aurora")).text == sentence("off.no_memory")
    shows = (await rig.ask(anna, chat, "/memory")).text
    assert (end_in_tokyo(began) in shows, sentence("memory.is_on") in shows) == (True, False)
    assert (await rig.send(anna, chat, "document")).text == sentence("off.no_files")
    asked = len(rig.requests)
    edited = next(each for each in chat.messages if each.text == "I fly to Zanzibar")
    await anna.edit(edited, "I sail to Zanzibar")
    assert (await ask_fully(rig, anna, chat, "/retry")).text == sentence("retry.nothing")
    assert len(rig.requests) == asked

    rig.script.on("my llama", "I've saved that.")
    claims = await ask_fully(rig, anna, chat, "Remember my llama")
    assert claims.text == f"I've saved that.\n\n{sentence('off.not_saved')}\n\n{MARK}"
    await no_memory_is_used(rig, anna, chat, *before_off)
    fresh = await ask_fully(rig, anna, chat, "/new")
    assert fresh.text == sentence("off.new")
    await ask_fully(rig, anna, chat, "I fly to Zanzibar")
    assert rig.requests[-1].messages[1].content == "I fly to Zanzibar"

    assert b"Zanzibar" in await rig.stored()
    ended = await ask_fully(rig, anna, chat, "/back")
    assert ended.text == sentence("off.ended", messages=10)
    await nothing_is_left(rig, tmp_path)
    assert (await rig.ask(anna, chat, "/back")).text == sentence("off.not_off")
    after = await ask_and_learn(rig, anna, chat, "What is my boat called?")
    assert MARK not in after.text
    assert "Aurora" in str(rig.requests[-1].messages)
    await nothing_is_left(rig, tmp_path)

    group = rig.telegram.group("Club", [anna])
    for command in ("/off", "/back"):
        assert (await rig.ask(anna, group, command)).text == sentence("off.only_private")


async def test_words_off_the_record_end_with_their_time_also_if_no_process_lives(
    rig: Rig, tmp_path: Path
) -> None:
    anna, chat = await rig.start_with_anna(lease_s=4)
    older = await ask_fully(rig, anna, chat, "Good morning")
    await ask_fully(rig, anna, chat, "/off 1m", reply_to=older)
    await ask_fully(rig, anna, chat, "A quokka")
    await rig.bot.kill()
    await anna.say(chat, "Another Quokka")
    await let_the_time_be_over(rig, chat)
    await rig.bot.start()
    await rig.telegram.wait_for(lambda: len(chat.replies) == 5)
    texts = [reply.text for reply in chat.replies[3:]]
    assert sorted(texts) == sorted((f"All right.\n\n{MARK}", sentence("off.ended", messages=2)))
    assert [reply.reply_to for reply in chat.replies] == [None] * 5
    assert "quokka" not in str(rig.requests[-1].messages)
    await ask_fully(rig, anna, chat, "Hello")
    assert rig.requests[-1].asked == "Hello"
    assert "Quokka" not in str(rig.requests[-1].messages)
    await nothing_is_left(rig, tmp_path)


async def let_the_time_be_over(rig: Rig, chat: Chat) -> None:
    """Move the end of the session to now, as if its minute had passed."""
    store = await RedisClient.open(rig.environment["REDIS_URL"])
    keys = rig.keys
    names, now = keys.scope(Scope.of_chat(chat.id)), int(time() * 1000)
    since, _, end = (await store.call("HGET", names.meta, "off_record")).split(b"|", 2)
    await store.pipeline(
        [
            ("HSET", names.meta, "off_record", b"%b|%d|%b" % (since, now, end)),
            ("PEXPIREAT", names.off_record, now),
            ("ZADD", keys.off_record, now / 1000, Scope.of_chat(chat.id).tag),
        ]
    )
    await store.close()
