"""What was said, as an internal call reads it: one JSON object a line.

JSON keeps people's words apart from ours: nothing they write can end their line or fake another.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import orjson

from memory.message import Message
from memory.text.speakers import speaker_name
from memory.text.tokens import TokenCounter
from memory.text.untrusted_text import harmless

_LONGEST_TOKENS = 600


def transcript(
    messages: Iterable[Message], digests: Mapping[int, str], tokens: TokenCounter
) -> str:
    """Return one line a message: its number, day, speaker and words, and what its tools did.

    Long words are shortened. "untrusted" marks what is forwarded, quoted or read from a document.
    """
    return "\n".join(_line(message, digests.get(message.seq, ""), tokens) for message in messages)


def _line(message: Message, digest: str, tokens: TokenCounter) -> str:
    is_assistant = message.role == "assistant"
    line: dict[str, object] = {
        "n": message.seq,
        "on": datetime.fromtimestamp(message.sent_at, UTC).strftime("%Y-%m-%d %H:%M"),
        "who": "assistant" if is_assistant else speaker_name(message.sender_name) or "user",
        "said": tokens.shorten(harmless(message.text), _LONGEST_TOKENS),
    }
    if not message.is_first_party:
        line["untrusted"] = True
    if digest:
        line["tools"] = harmless(digest)
    return orjson.dumps(line).decode()
