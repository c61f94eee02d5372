"""/recall replies to the very message that was found, or says its words if that cannot be."""

from dataclasses import replace

from bot.commands.recall import RecallCommand
from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.reply.parts import Part, Quote
from bot.telegram.updates import IncomingMessage, Sender
from memory.memory import Memory
from memory.message import Message
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.memory.conftest import OPTIONS
from tests.memory.turns import HERE, put, take

ANNA = Sender(7, "Anna")
AT = 1_774_000_000
ASKED = IncomingMessage(
    update_id=9,
    chat_id=HERE.chat_id,
    topic_id=0,
    is_group=True,
    message_id=99,
    sent_at=AT,
    sender=ANNA,
    kind="command",
    text="",
    command="recall",
)
BOAT = Message(
    *(0, 0, "user", "Good morning\nThe boat is called Aurora", AT, 7, "Anna"),
    message_ids=(1, 2),
    lengths=(12, 26),
)
HARBOUR = Message(0, 0, "assistant", "The *harbour* of Oslo.\n\nIt is old.", AT, message_ids=(3,))
MOORING = Message(0, 0, "user", "My mooring costs a fortune", AT, 8, "Ben [x]")


async def test_recall_quotes_the_message_that_was_found_or_says_its_words(
    store: RedisClient, tokens: TokenCounter
) -> None:
    memory = Memory(store, 42, tokens, None, OPTIONS)
    await put(memory, 1)
    turn = await take(memory)
    messages = [replace(each, tokens=9) for each in (BOAT, HARBOUR, MOORING)]
    await memory.turns.commit(turn, messages, memory.cursor(HERE))
    recall = RecallCommand(memory.histories, memory.off_record, Sentences(Catalogue()))

    async def found(words: str, chat_id: int = HERE.chat_id) -> list[tuple[str, Quote | None]]:
        asked = replace(ASKED, text=words, chat_id=chat_id)
        parts: tuple[Part, ...] = (await recall.answer(asked, HERE)).parts
        return [(part.text, part.quote) for part in parts]

    day = "20 March 2026"
    boat = "The boat is called Aurora"
    assert await found("Aurora boat") == [(f"{day} – you wrote:", Quote(2, boat))]
    formatted = f"{day} – I wrote:\n“The harbour of Oslo.\n\nIt is old.”"
    assert await found("harbour") == [(formatted, Quote(3))]
    assert await found("mooring") == [
        (f"{day} – Ben [x] wrote:\n“My mooring costs a fortune”", None)
    ]
    # The group has become a supergroup, where these ids are other messages.
    whole = f"{day} – you wrote:\n“Good morning\n{boat}”"
    assert await found("Aurora boat", -100) == [(whole, None)]
    assert await found("zebra") == [("I found no message about this here.", None)]
    assert (await found(" "))[0][0].startswith("Write what to look for")
