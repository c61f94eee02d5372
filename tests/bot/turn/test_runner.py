"""What a person said in quick succession becomes one message of the history."""

from bot.telegram.updates import IncomingMessage, Sender
from bot.turn.runner import joined
from memory.text.tokens import TokenCounter

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


def test_joined_words_are_as_old_as_the_first_of_them(tokens: TokenCounter) -> None:
    """Or a forgetting between the two would leave the first one."""
    message = joined([said(1, "my secret", 1_000), said(2, "hello", 1_003)], tokens)
    assert (message.text, message.sent_at) == ("my secret\nhello", 1_000)
    assert message.message_ids == (101, 102)
