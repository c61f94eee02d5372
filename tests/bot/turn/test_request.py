"""The messages that a turn takes become one message with one destination for its reply."""

from dataclasses import replace

import pytest

from bot.telegram.chat import Destination
from bot.telegram.updates import IncomingMessage, Sender, to_bytes
from bot.turn.request import answer_to, unpack
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.text.tokens import TokenCounter
from tests.memory.conftest import memory
from tests.memory.turns import HERE, take

__all__ = ["memory"]

ANN = Sender(7, "Ann", "Ann")


def said(update_id: int, text: str, sent_at: int) -> IncomingMessage:
    return IncomingMessage(
        update_id=update_id,
        chat_id=7,
        topic_id=0,
        is_group=False,
        message_id=100 + update_id,
        sent_at=sent_at,
        sender=ANN,
        kind="text",
        text=text,
    )


async def test_joined_messages_have_the_time_of_the_first(
    memory: Memory, tokens: TokenCounter
) -> None:
    """A `/forget` between two joined messages has to erase both, because it covers the first."""
    for message in (said(1, "my secret", 1_000), said(2, "hello", 1_003)):
        entry = Entry(message.update_id, ANN.id, is_command=False, body=to_bytes(message))
        await memory.mailbox.put(HERE, entry)
    request = unpack(await take(memory), tokens)
    assert [update.text for update in request.updates] == ["my secret", "hello"]
    assert (request.message.text, request.message.sent_at) == ("my secret\nhello", 1_000)
    assert request.message.message_ids == (101, 102)


@pytest.mark.parametrize(("is_group", "reply_to"), [(False, 0), (True, 102)])
def test_a_reply_quotes_the_message_only_in_a_group(*, is_group: bool, reply_to: int) -> None:
    asked = replace(said(2, "hello", 1_003), topic_id=3, is_group=is_group)
    assert answer_to(asked) == Destination(7, 3, reply_to)
