"""Names of speakers as the model reads them: cleaned, never the assistant's own, told apart.

People choose their names themselves, so a name must not look like a line or a label of ours.
"""

import re
from collections.abc import Iterable

from memory.message import Message
from memory.text.untrusted_text import harmless, letters

ASSISTANT = "You (assistant)"
NAMELESS = "User"

_MAX_CHARS = 64
# The colon ends a speaker's name in our prompts; these look like one.
_COLONS = re.compile("[:\uff1a\ufe55\ufe13\u2236\ua789\u02d0\u05c3\u0589]")
_OURS = frozenset(("you", "assistant", "theassistant"))
_OUR_LABEL = "youassistant"


def speaker_name(name: str) -> str:
    """Return a name on one line without colons; "" where nothing is left or it claims to be us."""
    shown = " ".join(_COLONS.sub(" ", harmless(name)).split())[:_MAX_CHARS].rstrip()
    said = "".join(filter(str.isalnum, letters(shown)))
    return "" if said in _OURS or _OUR_LABEL in said else shown


class Speakers:
    """The people of one conversation, each under a name that nobody else has.

    `messages` are in the order in which they were said: whoever came first under a name keeps it,
    those who came later get a number behind it. So a label stays the same from turn to turn.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._labels: dict[tuple[int, str], str] = {}
        self._taken: set[str] = set()
        for message in messages:
            self.label(message)

    def label(self, message: Message) -> str:
        """Return the name of whoever said a message."""
        if message.role == "assistant":
            return ASSISTANT
        who = (message.sender_id, message.sender_name)
        if who not in self._labels:
            self._labels[who] = self._free(speaker_name(message.sender_name) or NAMELESS)
        return self._labels[who]

    def _free(self, name: str) -> str:
        label, number = name, 1
        while (alike := "".join(letters(label)).replace(" ", "")) in self._taken:
            number += 1
            label = f"{name} ({number})"
        self._taken.add(alike)
        return label
