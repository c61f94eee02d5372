"""What hints add to the bot: lines below answers, each at the moment when it helps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.commands.notices import mutes
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.turn.notes import Below
from bot.turn.request import Request
from memory.behaviors.context import AgentContext
from memory.message import Message
from memory.scopes.changes import Write
from memory.scopes.fields import Field
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import never_erased
from memory.search.question import is_question
from memory.search.words import words_of
from memory.store.keys import Scope

_HOUR_S = 3_600
_DAY_S = 24 * _HOUR_S
_BETWEEN_S = 7 * _DAY_S
_ABSENCE_S = 14 * _DAY_S
_FROM_MESSAGE = 3  # the voice hint comes with this message of a person, or with a later one
_MAX_EARLIER = 1_000  # messages that a question is compared with
_MIN_WORDS = 3  # two questions with fewer words may be the same by chance: "and you?"
_MAX_CHARS = 300  # longer messages take too long to compare, and hardly anybody writes one twice


@dataclass(frozen=True, slots=True)
class Hinted(Field):
    """In a person's scope: the hints that they need no more, and when they got the last one."""

    PREFIX = "hinted"
    last_at: int = 0  # Unix seconds
    names: tuple[str, ...] = ()

    without = never_erased


@dataclass(frozen=True, slots=True, eq=False)
class HintNote:
    """Adds a line to an answer in a private chat, at most one a week, and each only once.

    A hint is marked as given before its answer is stored. A crash in between loses the hint, and
    no crash repeats it.
    """

    scopes: Scopes
    sentences: Sentences
    listens: bool  # the bot takes voice messages

    async def below(self, request: Request, context: AgentContext, _: str) -> Below:
        """Return the hint that fits best, nothing if there is none; raise `StoreError`."""
        tools_ask = context.writes or context.work.added or context.tool_question
        is_again = request.replaces or request.last.is_retried
        if not context.uses_memory or not context.conversation.is_private or tools_ask or is_again:
            return Below()
        person = Scope.of_person(request.last.chat_id)
        here = await self.scopes.current(person)
        given = here.get(Hinted) or Hinted()
        if request.run.heard:
            if "voice" not in given.names:
                await self._mark(person, "voice", 0)
            return Below()
        if mutes(here) or context.now - given.last_at < _BETWEEN_S:
            return Below()
        name = next(self._fitting(context, given.names), "")
        if not name or not await self._mark(person, name, int(context.now)):
            return Below()
        return Below(lines=self.sentences.say(request.language, f"hints.{name}"))

    def _fitting(self, context: AgentContext, given: tuple[str, ...]) -> Iterator[str]:
        messages, now = context.chat_history.messages, context.now
        if "absence" not in given and messages and now - messages[-1].sent_at > _ABSENCE_S:
            yield "absence"
        if "again" not in given and _asks_again(context.user_message, messages):
            yield "again"
        if self.listens and "voice" not in given:
            by_person = sum(message.role == "user" for message in messages) + 1
            if by_person >= _FROM_MESSAGE:
                yield "voice"

    async def _mark(self, person: Scope, name: str, at: int) -> bool:
        """Store that a person needs a hint no more; return whether that was not stored yet."""
        is_new = False

        async def decide(here: ScopeMemory) -> Write | None:
            nonlocal is_new
            given = here.get(Hinted) or Hinted()
            is_new = name not in given.names and (not at or at - given.last_at >= _BETWEEN_S)
            if not is_new:
                return None
            return Write(fields=[Hinted(at or given.last_at, (*given.names, name))])

        await self.scopes.update(person, decide)
        return is_new


def _asks_again(message: Message, earlier: Sequence[Message]) -> bool:
    if len(message.text) > _MAX_CHARS or not is_question(message.text):
        return False
    words = set(words_of(message.text))
    return len(words) >= _MIN_WORDS and any(
        each.role == "user"
        and each.sent_at <= message.sent_at - _HOUR_S
        and len(each.text) <= _MAX_CHARS
        and is_question(each.text)
        and set(words_of(each.text)) == words
        for each in earlier[-_MAX_EARLIER:]
    )


def feature(services: Services) -> Feature:
    """Return the feature."""
    # Another feature has this setting. Without it, nothing listens.
    has_model = bool(getattr(services.settings, "transcription_model", None))
    note = HintNote(services.memory.scopes, services.sentences, has_model and services.models.hears)
    return Feature(name="hints", notes=[note.below], says_unasked=True)
