"""A reply grows in the private chat while the model writes it, and arrives as without drafts."""

import asyncio
from collections.abc import Sequence

from tests.acceptance.rig import Rig
from tests.servers.bot_api import Call, Hang
from tests.servers.model_api import Reply

DRAFT = "sendMessageDraft"
LONG = "The **old harbour** of [Genoa](https://example.com/genoa) has a lighthouse. 👩‍👩‍👧‍👦 " * 30
AT_60_TOKENS = Reply(LONG, chunk_delay_s=1 / 60)


def frames(rig: Rig) -> Sequence[Call]:
    return rig.telegram.calls_to(DRAFT)


def assert_grows(shown: Sequence[str], reply: str) -> None:
    """Fail unless each frame is a longer beginning of the reply than the one before."""
    for before, frame in zip(("", *shown), (*shown, reply), strict=True):
        assert frame.startswith(before)
    assert len({"", *shown}) == len(shown) + 1


async def test_replies_of_two_workers_grow_in_frames_and_end_in_one_message_each(rig: Rig) -> None:
    workers = await rig.start_apart(2, slots=1)
    places = [rig.anna(), rig.ben()]
    rig.script.on("Genoa", AT_60_TOKENS)
    asking = [rig.ask(person, chat, "Tell me about Genoa") for person, chat in places]
    replies = await asyncio.gather(*asking)
    for (_, chat), reply in zip(places, replies, strict=True):
        shown = [frame for frame in frames(rig) if frame.chat_id == chat.id]
        assert len(shown) > 2  # `features/drafts/test_draft.py` says how many in which time
        assert_grows([frame.text for frame in shown], reply.text)
        assert len(chat.replies) == 1
        assert chat.draft is None
        assert len({frame.given.text("draft_id") for frame in shown} - {"0"}) == 1
    for worker in workers:
        await worker.wait_for_log("turn closed")
    assert len(rig.telegram.calls_to("sendChatAction")) <= 2
    assert len(rig.requests) == 2


async def test_trouble_with_drafts_neither_delays_nor_changes_the_reply(rig: Rig) -> None:
    """Who waited for a draft would wait for a minute, which is longer than any wait here."""
    anna, chat = await rig.start_with_anna()
    text = "One two three. " * 12
    for number in range(4):
        if number == 2:  # after one turn that warms the bot and one without trouble
            rig.telegram.faults.add(Hang(60), method=DRAFT, times=None)
            without_trouble = len(frames(rig))
        rig.script.then(Reply(text, chunk_delay_s=0.02))
        reply = await rig.ask(anna, chat, "Count")
        assert reply.text == text.strip()
    assert chat.texts == [text.strip()] * 4
    assert len(rig.requests) == 4
    assert len(frames(rig)) <= without_trouble + 2
    rig.telegram.faults.clear()


async def test_groups_and_bots_without_drafts_see_typing_only(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    group = rig.telegram.group("Friends", [anna])
    slow = Reply("One two three four. " * 10, chunk_delay_s=0.02)
    rig.script.then(slow, slow)
    await rig.ask(anna, chat, "/start")
    await rig.ask(anna, group, "/ask How are you?")
    await rig.bot.stop()
    rig.environment["STREAM"] = "off"
    await rig.bot.start()
    await rig.ask(anna, chat, "How are you?")
    assert frames(rig) == []
    chats = {call.chat_id for call in rig.telegram.calls_to("sendChatAction")}
    assert chats == {chat.id, group.id}
