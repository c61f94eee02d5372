"""The evidence about each chat after a day, and the verdict: figures, and broken promises.

The evidence is what people see, what was sent, and what Redis has stored. It says how each text
ended, without relying on what a bot reports about itself.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from memory.message import Message
from memory.scopes.log import message_of, seq_of
from memory.store.client import RedisClient
from tests.acceptance.scripted_day import answer_to, markers, parts_of
from tests.acceptance.sentences import sentence
from tests.lab.faults.scene import Scene
from tests.servers.bot_api import Chat
from tests.valkey import opened

Closing = Literal["apologised", "undelivered"]
"""How a text may end unanswered.

`apologised`: there is a neutral sentence instead of an answer. `undelivered`: the answer was sent,
but Telegram refused it or did not confirm it, and the answer or a part of it is not in the chat.
"""

End = Literal["answered", "lost"] | Closing

_APOLOGIES = tuple(
    sentence(key, reference="§").partition("§")[0]
    for key in ("error.turn", "error.account", "error.apology")
)


def apologies_in(chat: Chat) -> int:
    """Count the neutral sentences in a chat that replace answers."""
    return sum(reply.text.startswith(_APOLOGIES) for reply in chat.replies)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One chat: texts `said`, replies `shown` at the end, parts that a bot `tried` to send.

    `history` is the stored history. `left` names what should not be stored any more. `set_aside`
    has the texts of each dead letter.
    """

    chat: Chat
    said: Sequence[str]
    shown: Sequence[str]
    tried: Sequence[str]
    history: Sequence[Message]
    left: Sequence[str]
    set_aside: Sequence[frozenset[str]]

    @classmethod
    async def collect(cls, scene: Scene, store: RedisClient, chat: Chat) -> "Evidence":
        """Read a chat and what is stored about it."""
        keys = scene.keys_of(chat)
        log, letters = await store.pipeline(
            [("XRANGE", keys.log, "-", "+"), ("HGETALL", keys.dead_letters)]
        )
        sent = scene.telegram.calls_to("sendMessage")
        return cls(
            chat=chat,
            said=scene.day.said_in(chat),
            shown=chat.texts,
            tried=[call.text for call in sent if call.chat_id == chat.id],
            history=[message_of(seq_of(entry), fields) for entry, fields in log],
            left=await scene.left_of(chat, store),
            set_aside=_set_aside(letters),
        )

    @property
    def copies(self) -> Counter[tuple[int, str]]:
        """How many additional copies of each part the chat has, by chat and text."""
        seen = Counter(self.shown)
        return Counter({(self.chat.id, text): n - 1 for text, n in seen.items() if n > 1})

    @property
    def remembered(self) -> list[str]:
        """The markers of the texts in the history, in its order."""
        return [m for each in self.history if each.role == "user" for m in markers(each.text)]

    def end_of(self, marker: str) -> End:
        """Return how a text ended; an answered text may have several answers."""
        turn = self.turn_of(marker)
        if not turn:
            if self._answers_to(marker):
                return "answered"
            is_set_aside = any(marker in letter for letter in self.set_aside)
            return "apologised" if is_set_aside and apologies_in(self.chat) else "lost"
        replies = [message for message in turn if message.role == "assistant"]
        if replies and all(part in self.shown for part in parts_of(replies[0].text)):
            return "answered"
        if replies or any(marker in markers(text) for text in self.tried):
            return "undelivered"
        return "apologised" if apologies_in(self.chat) else "lost"

    def turn_of(self, marker: str) -> tuple[Message, ...]:
        """Return the messages of the turn with a text; empty if the text is not remembered."""
        taken = (m for m in self.history if m.role == "user" and marker in markers(m.text))
        question = next(taken, None)
        if question is None:
            return ()
        return tuple(m for m in self.history if m.exchange == question.exchange)

    def taken_with(self, marker: str) -> frozenset[str]:
        """Return all texts of the turn or dead letter with a text, at least the text itself."""
        turn = [
            m for each in self.turn_of(marker) if each.role == "user" for m in markers(each.text)
        ]
        letter = next((letter for letter in self.set_aside if marker in letter), frozenset[str]())
        return frozenset(turn) or letter | {marker}

    def has_two_answers(self, marker: str) -> bool:
        """Whether two turns answered or remembered a text."""
        return len(self._answers_to(marker)) > 1 or self.remembered.count(marker) > 1

    def swaps(self) -> list[tuple[str, str]]:
        """Return neighboring texts in the wrong order, in the history or in the answers."""
        answered = list(dict.fromkeys(m for text in self.shown for m in markers(text)))
        pairs = {*pairwise(self.remembered), *pairwise(answered)}
        return [(first, second) for first, second in pairs if first > second]

    def oddities(self) -> Iterator[str]:
        """Yield other errors in what is stored and shown."""
        for name in self.left:
            yield f"{self.chat.id} still has {name}"
        for number, message in enumerate(self.history, start=1):
            if message.seq != number:
                yield f"message {number} of {self.chat.id} has the number {message.seq}"
        for marker in self.said:
            turn = self.turn_of(marker)
            if self._answers_to(marker) and not turn:
                yield f"{marker} was answered and is not remembered"
            if any(marker not in markers(message.text) for message in turn):
                yield f"{marker} was answered by something else"
        for message in self.history:
            if message.role == "assistant":
                yield from self._misplaced(message)
        yield from self._unexpected()

    def _unexpected(self) -> Iterator[str]:
        """Yield messages that are neither part of an answer nor an expected apology."""
        turns = {self.taken_with(m) for m in self.said if self.end_of(m) == "apologised"}
        if len(turns) != (apologies := apologies_in(self.chat)):
            yield f"{self.chat.id} has {apologies} apologies, {len(turns)} turns without an answer"
        answers = [answer_to(m.text) for m in self.history if m.role == "user"]
        answers += [m.text for m in self.history if m.role == "assistant"]
        due = {part for answer in answers for part in parts_of(answer)}
        for text in self.shown:
            if text not in due and not text.startswith(_APOLOGIES):
                yield f"{self.chat.id} shows what answers nothing: {text[:40]!r}"

    def _misplaced(self, answer: Message) -> Iterator[str]:
        """Yield if the messages of an answer are not its parts in their order and position."""
        shown = [self.chat.message(message_id) for message_id in answer.message_ids]
        texts, parts = [each.text for each in shown if each], parts_of(answer.text)
        if len(texts) < len(shown) or [part for part in parts if part in texts] != texts:
            yield f"what answers {markers(answer.text)} is not as it is remembered"
        if self.chat.kind != "private" and texts[:1] == parts[:1]:
            question = next(m for m in self.history if m.exchange == answer.exchange)
            to = shown[0].reply_to if shown[0] else None
            if to is None or to.id != question.message_ids[-1]:
                yield f"what answers {markers(answer.text)} replies to something else"

    def _answers_to(self, marker: str) -> set[tuple[str, ...]]:
        """Return the shown answers that name a text; each answer as the texts that it names."""
        named = (tuple(dict.fromkeys(markers(text))) for text in self.shown)
        return {names for names in named if marker in names}


def _set_aside(letters: Mapping[bytes, bytes]) -> Sequence[frozenset[str]]:
    """Return the texts of each dead letter; a field is named `<letter>` or `<letter>:<more>`."""
    texts: dict[bytes, set[str]] = {}
    for name, value in letters.items():
        letter = texts.setdefault(name.partition(b":")[0], set())
        letter.update(markers(value.decode(errors="replace")))
    return [frozenset(letter) for letter in texts.values()]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a fault may cause: which ends other than an answer, and to how many turns.

    The turns of the texts in `scene.hit` are not counted.
    """

    closings: frozenset[Closing]
    turns: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The figures of a day; one text is one update.

    `struck` counts the rounds in which the fault happened. Each of the `updates` was `answered`
    once, or `doubled`, `apologised` for, `undelivered` or `lost`. `in_doubt` counts the doubled
    ones that a crash explains, because a part that may have been sent was sent once more.
    `out_of_order` counts neighboring texts that were remembered or answered in the wrong order.
    `complaints` name the broken promises, one sentence each.
    """

    struck: int
    updates: int
    answered: int
    doubled: int
    in_doubt: int
    apologised: int
    undelivered: int
    lost: int
    out_of_order: int
    complaints: tuple[str, ...]


async def judge(scene: Scene, allowance: Allowance) -> Verdict:
    """Return the verdict on a day whose bots have ended; its Redis must still run."""
    async with opened(scene.redis.url) as store:
        found = [await Evidence.collect(scene, store, chat) for chat in scene.day.chats]
    ends = {marker: each.end_of(marker) for each in found for marker in each.said}
    explained, unexplained = _doubled(found, scene.doubts)
    doubled = explained | unexplained
    swaps = [swap for each in found for swap in each.swaps()]
    counts = Counter(end for marker, end in ends.items() if marker not in doubled)
    complaints = [
        *(f"it never struck at the moment {name!r}" for name in scene.missed - scene.met),
        *(f"{marker} was lost" for marker, end in ends.items() if end == "lost"),
        *(f"{marker} was answered more than once" for marker in sorted(unexplained)),
        *(f"{first} came before {second}" for first, second in swaps),
        *_excess(scene, found, ends, allowance),
        *(oddity for each in found for oddity in each.oddities()),
    ]
    return Verdict(
        struck=scene.struck,
        updates=len(scene.day.lines),
        answered=counts["answered"],
        doubled=len(doubled),
        in_doubt=len(explained),
        apologised=counts["apologised"],
        undelivered=counts["undelivered"],
        lost=counts["lost"],
        out_of_order=len(swaps),
        complaints=tuple(complaints),
    )


def _doubled(
    found: Sequence[Evidence], doubts: "Counter[tuple[int, str]]"
) -> tuple[set[str], set[str]]:
    """Return texts with several answers: those explained by a part in doubt, and the others."""
    explained, unexplained = set[str](), set[str]()
    for each in found:
        copies = each.copies
        too_many = copies - doubts
        for marker in each.said:
            if each.has_two_answers(marker) or any(marker in text for _, text in too_many):
                unexplained.add(marker)
            elif any(marker in text for _, text in copies):
                explained.add(marker)
    return explained, unexplained


def _excess(
    scene: Scene, found: Sequence[Evidence], ends: Mapping[str, End], allowance: Allowance
) -> Sequence[str]:
    """Return complaints about texts with a forbidden end, and about too many of them."""
    closed = {marker: end for marker, end in ends.items() if end in ("apologised", "undelivered")}
    wrong = [f"{mark} was {end}" for mark, end in closed.items() if end not in allowance.closings]
    wrong += [
        f"{marker} was not answered, although it was written after the last fault"
        for marker in closed
        if marker in scene.safe
    ]
    spared = closed.keys() - scene.hit
    turns = {each.taken_with(m) for each in found for m in each.said if m in spared}
    if len(turns) > allowance.turns:
        wrong.append(f"{len(turns)} turns were not answered, {allowance.turns} are allowed")
    return wrong
