"""`/mute`: whether a person gets what they did not ask for: news of the operator, and tips."""

from dataclasses import dataclass
from typing import Self

from bot.commands.bot_command import Answer, BotCommand, when
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part, with_buttons
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.scopes.changes import Write
from memory.scopes.fields import Field
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import stays
from memory.store.keys import Scope

_SET = "set_mute"
_MUTED = "1"


@dataclass(frozen=True, slots=True)
class Mute(Field):
    """In a person's scope: whether they want nothing unasked, and which update said so last."""

    PREFIX = "mute"
    is_muted: bool
    by_update: int

    without = stays

    def _stored(self) -> str:
        return f"{_MUTED if self.is_muted else ''}|{self.by_update}"

    @classmethod
    def _read(cls, _: str, stored: str) -> Self:
        muted, _, update = stored.partition("|")
        return cls(muted == _MUTED, int(update))


def mutes(person: ScopeMemory) -> bool:
    """Return whether a person wants nothing unasked."""
    found = person.get(Mute)
    return found is not None and found.is_muted


async def set_mute(scopes: Scopes, person: int, update_id: int, *, is_muted: bool) -> None:
    """Store what a person wants; a repeat for the same update changes nothing.

    Raise `StoreError`.
    """

    async def decide(here: ScopeMemory) -> Write | None:
        known = here.get(Mute)
        if known and known.by_update == update_id:
            return None
        return Write(fields=[Mute(is_muted, update_id)])

    await scopes.update(Scope.of_person(person), decide)


class MuteCommand:
    """Tells a person what they get, and turns it off and on.

    `is_useful`: something is sent that nobody asks for.
    """

    def __init__(self, scopes: Scopes, sentences: Sentences, *, is_useful: bool) -> None:
        self._scopes = scopes
        self._sentences = sentences
        self.command = BotCommand(
            "mute",
            self.answer,
            "private",
            {_SET: self.press},
            words=("on", "off"),
            is_useful=when(lambda: is_useful),
        )

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Mute with "on", unmute with "off", else say how it is."""
        language, person = asked.sender.language, asked.sender.id
        if asked.is_group:
            return Answer(self._sentences.say(language, "mute.only_private"))
        if not asked.text:
            is_muted = mutes(await self._scopes.read(Scope.of_person(person)))
            return Answer(self._state(language, is_muted=is_muted))
        await set_mute(self._scopes, person, asked.update_id, is_muted=asked.text == "on")
        return Answer(self._sentences.say(language, f"mute.{asked.text}"))

    async def press(self, pressed: ButtonPress, _: Scope, wanted: str) -> tuple[Part, ...]:
        """Act on the button below the state, and show the new one."""
        is_muted = wanted == "on"
        await set_mute(self._scopes, pressed.sender.id, pressed.update_id, is_muted=is_muted)
        return self._state(pressed.sender.language, is_muted=is_muted)

    def _state(self, language: str, *, is_muted: bool) -> tuple[Part, ...]:
        label, wanted = ("unmute", "off") if is_muted else ("mute", "on")
        button = Button(self._sentences.text(language, f"buttons.{label}"), f"{_SET}:{wanted}")
        state = "mute.is_on" if is_muted else "mute.is_off"
        return with_buttons(self._sentences.say(language, state), button)
