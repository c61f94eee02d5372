"""Messages are found in any language, and every message becomes searchable (A3)."""

import re

from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from tests.acceptance.asking import ask_to_the_end
from tests.acceptance.buttons import press
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.servers.bot_api.chats import Message

FACTS = {  # fact, and a question that asks for it in another form or language
    "I keep my passports in the blue drawer": "Which drawers hold the passport?",
    "Летом я плавал на лодке по Байкалу": "Где я плавал на лодках?",
    "دوچرخه‌ام را به همسایه قرض دادم": "دوچرخه‌های من کجاست؟",
    "我的自行车停在图书馆后面": "自行车放在哪里了？",
}
SMALL_TALK = ("Good morning", "Как дела сегодня?", "امروز هوا خوب است", "今天天气很好")
UNRELATED = (
    "Seventeen times twelve?",
    "Переведи слово зонтик",
    "پایتخت نروژ چیست؟",
    "法国首都叫什么？",
)
HOUR_S = 3600


async def test_a3_one_conversation_is_recalled_in_four_languages(webhook_rig: Rig) -> None:
    rig = webhook_rig
    await rig.start(window_messages=2)
    anna, chat = rig.anna()
    texts = (*FACTS, *SMALL_TALK)
    for text in texts:
        await rig.ask(anna, chat, text)
    await rig.wait_until_learned(2 * len(texts))

    for fact, question in FACTS.items():
        await rig.ask(anna, chat, question)
        first = re.findall(r"^(?:\[[^]]+\]|-) Anna: (.*)$", rig.requests[-1].memory, re.MULTILINE)
        assert fact in first, question
        assert rig.requests[-1].asked == question
    for question in UNRELATED:
        await rig.ask(anna, chat, question)
        assert rig.requests[-1].memory == "", question

    # A button of /recall replies to the message itself, and says its words if that is gone.
    asked = len(rig.requests)
    said = next(each for each in chat.messages if each.text == texts[0])
    found = await ask_to_the_end(rig, anna, chat, "/recall passports drawer")
    day = sentence("recall.by_you", date=Sentences(Catalogue()).day("en", said.sent_at))
    assert found.text.startswith(f"1. {day}\n“{texts[0]}”")
    await press(rig, anna, found, "↗ 1")
    jumped = await chat.wait_for_reply(after=found)
    assert isinstance(jumped, Message)
    assert jumped.quote
    assert (jumped.text, jumped.reply_to) == (day, said)
    await anna.delete(said)
    await press(rig, anna, found, "↗ 1")
    again = await chat.wait_for_reply(after=jumped)
    assert (again.text, again.reply_to) == (f"{day}\n“{jumped.quote.text}”", None)
    ben, bens = rig.ben()
    nothing = await rig.ask(ben, bens, "/recall passports drawer")
    assert nothing.text == sentence("recall.nothing")
    assert len(rig.requests) == asked
    assert rig.model.log.refusals == []


async def let_time_pass(rig: Rig, seconds: int) -> None:
    """Move time forward in the store: keys expire earlier, and noted times come nearer."""
    for name in await rig.redis("KEYS", "*"):
        left_ms = await rig.redis("PTTL", name)
        if left_ms > 0:
            await rig.redis("PEXPIRE", name, left_ms - 1000 * seconds)
    noted = await rig.redis("ZRANGE", rig.keys.learning, 0, -1)
    for tag in noted:
        await rig.redis("ZINCRBY", rig.keys.learning, -seconds, tag)
