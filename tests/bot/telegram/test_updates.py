"""A message waits in the mailbox in a packed form that later versions can read."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from bot.telegram.updates import IncomingMessage, Sender, SentFile, from_bytes, to_bytes
from tests.bot.telegram.raw import COMMANDS, inbound, message

_ids = st.integers(-(2**52), 2**52)
_text = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.builds(
        IncomingMessage,
        update_id=_ids,
        chat_id=_ids,
        topic_id=_ids,
        is_group=st.booleans(),
        message_id=_ids,
        sent_at=_ids,
        sender=st.builds(
            Sender,
            id=_ids,
            name=_text,
            first_name=_text,
            last_name=_text,
            language=_text,
            is_person=st.booleans(),
        ),
        kind=st.sampled_from(["text", "command", "document", "unsupported"]),
        text=_text,
        command=st.sampled_from(sorted(COMMANDS)),
        file=st.none() | st.builds(SentFile, _text, _text, _text, _ids),
    )
)
def test_a_packed_message_is_unpacked_unchanged(inbound_message: IncomingMessage) -> None:
    assert from_bytes(to_bytes(inbound_message)) == inbound_message


def test_a_message_packed_before_there_were_files_is_still_read() -> None:
    sender = [7, "Anna K.", "Anna", "K.", "de", True]
    packed = orjson.dumps([1, 7, 0, False, 11, 1_700_000_000, sender, "text", "hello", ""])
    assert from_bytes(packed) == inbound(message("hello"))
