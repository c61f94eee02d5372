"""`/behaviors`: what runs in this conversation, with a button to turn each on or off."""

from collections.abc import Sequence
from dataclasses import replace

from bot.commands.access import Access
from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.features.attached.where import Attachments
from bot.reply.parts import Button, Part
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.questions import NotConfirmed
from memory.store.keys import Scope

VERB = "behaviors"
_ON, _OFF = "on", "off"


class BehaviorsCommand:
    """Everybody may look; in a group only administrators turn something on or off."""

    def __init__(
        self, names: Sequence[str], attachments: Attachments, access: Access, sentences: Sentences
    ) -> None:
        self._names = names
        self._attachments = attachments
        self._access = access
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command."""
        return Answer(await self._shown(asked.sender.language, conversation))

    async def press(self, pressed: ButtonPress, conversation: Scope, code: str) -> tuple[Part, ...]:
        """Turn a behavior on or off; a repeat changes nothing."""
        way, _, name = code.partition(":")
        if name not in self._names or way not in (_ON, _OFF):
            raise NotConfirmed("unknown")
        await self._access.check(pressed)
        await self._attachments.attach(conversation, name, is_on=way == _ON)
        return await self._shown(pressed.sender.language, conversation)

    async def _shown(self, language: str, conversation: Scope) -> tuple[Part, ...]:
        attached = await self._attachments.attached(conversation)
        on = [name for name in self._names if name in attached]
        off = [name for name in self._names if name not in attached]
        *before, last = self._sentences.say(
            language, "attached.shown", on=_listed(on), off=_listed(off)
        )
        rows = [(self._button(language, name, _OFF),) for name in on]
        rows += [(self._button(language, name, _ON),) for name in off]
        return (*before, replace(last, buttons=tuple(rows)))

    def _button(self, language: str, name: str, way: str) -> Button:
        label = self._sentences.text(language, f"attached.turn_{way}", name=_spoken(name))
        return Button(label, f"{VERB}:{way}:{name}")


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_spoken, names)) or "–"
