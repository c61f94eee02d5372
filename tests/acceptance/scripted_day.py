"""A day of messages: their senders, chats and texts, and the answers of the model.

Every text carries a marker of its own, and every answer names those that it answers. What becomes
of it all is judged elsewhere.
"""

import re
from dataclasses import dataclass
from random import Random
from typing import Literal

from bot.reply.render import render
from tests.acceptance.rig import Rig
from tests.servers.bot_api import Chat, Message, Person
from tests.servers.model_api import ChatRequest, Reply, tool_call

Wish = Literal["short", "long", "sum", "slow"]

_MARKER = re.compile(r"\bm\d{3}\b")
_WORDS: dict[Wish, str] = {
    "short": "what do you say?",
    "long": "tell me everything",
    "sum": "add it up",
    "slow": "take your time",
}
_PARAGRAPHS = 3
_THINKING_S = 0.02
_PIECE_S = 0.04  # a slow answer comes in some 35 pieces, so long after each other


def markers(text: str) -> list[str]:
    return _MARKER.findall(text)


def answer_to(asked: str) -> str:
    """Return the answer to this text; a long one is sent in two parts, both with markers."""
    named = " ".join(markers(asked))
    if _WORDS["slow"] in asked:
        return f"**Heard** {named}, " + "and so forth, " * 10 + "and so on."
    if _WORDS["long"] not in asked:
        return f"**Heard** {named}."
    return "\n\n".join(f"{named}, {n}: " + "and-so-forth " * 130 for n in range(_PARAGRAPHS))


def parts_of(answer: str) -> list[str]:
    """Return the texts of the messages that show an answer."""
    return [part.text for part in render(answer)]


class Echo:
    """A model that answers with the markers of the request, sometimes after a tool call."""

    async def respond(self, request: ChatRequest) -> Reply:
        is_first = request.messages[-1].role == "user"
        # What was heard before and got no reply stands before it, in paragraphs of its own.
        asked = request.asked.rpartition("\n\n")[2]
        if is_first and _WORDS["sum"] in asked:
            return Reply(tool_calls=(tool_call("calculate", expression="2+3"),))
        pause_s = _PIECE_S if _WORDS["slow"] in asked else 0
        return Reply(answer_to(asked), delay_s=_THINKING_S, chunk_delay_s=pause_s)


@dataclass(frozen=True, slots=True)
class Line:
    """One text as it was said."""

    marker: str
    message: Message


class Day:
    """Nine private chats and a group of two; `random` draws the messages.

    With fewer `people` (at least two) there are fewer chats.
    """

    def __init__(self, rig: Rig, random: Random, people: int = 9) -> None:
        self.lines: list[Line] = []
        self._random = random
        private = [rig.person(1001 + n, f"Person{n}") for n in range(people)]
        pair = [person for person, _ in private[:2]]
        self._places = [([person], chat) for person, chat in private]
        self._places.append((pair, rig.telegram.group("The two", members=pair)))
        self._bot = rig.telegram.bot.username
        self._updates = rig.telegram.updates

    @property
    def chats(self) -> list[Chat]:
        return [chat for _, chat in self._places]

    async def talk(self, texts: int, *, wish: Wish | None = None) -> None:
        """Send this many texts, some in quick succession; the first one with this wish."""
        place = self._random.choice(self._places)
        for number in range(texts):
            if self._random.random() < 0.6:
                place = self._random.choice(self._places)
            drawn: Wish = self._random.choices(("short", "long", "sum"), (8, 1, 1))[0]
            await self._say(*place, wish if wish and not number else drawn)

    async def say_goodbye(self) -> None:
        """Send one more text in every chat."""
        for people, chat in self._places:
            await self._say(people, chat, "short")

    async def repeat_something(self) -> None:
        """Deliver a recent update again, as Telegram does if its call broke off."""
        recent = self._updates.history[-8:]
        if recent:
            await self._updates.redeliver(self._random.choice(recent))

    def said_in(self, chat: Chat) -> list[str]:
        """Return the markers of a chat in the order in which they were sent."""
        return [line.marker for line in self.lines if line.message.chat is chat]

    def is_answered(self) -> bool:
        """Whether every marker appears in a reply in its chat."""
        seen = {chat.id: {m for r in chat.replies for m in markers(r.text)} for chat in self.chats}
        return all(line.marker in seen[line.message.chat.id] for line in self.lines)

    async def _say(self, people: list[Person], chat: Chat, wish: Wish) -> None:
        marker = f"m{len(self.lines):03}"
        text = f"{marker} {_WORDS[wish]}"
        if chat.kind != "private":
            text = f"@{self._bot} {text}"
        self.lines.append(Line(marker, await self._random.choice(people).say(chat, text)))
