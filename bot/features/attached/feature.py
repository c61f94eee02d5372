"""`/behaviors`: what runs in this conversation, with a button to turn each on or off."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.commands.access import Access
from bot.commands.bot_command import Answer, BotCommand
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.operator_classes import built_behavior
from bot.reply.parts import Button, Parts
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.behaviors.behavior import OFF, AIContextBehavior, Reach, reaches_of
from memory.behaviors.learning_behavior import LearningBehavior
from memory.erasure.questions import NotConfirmed
from memory.learning.progress import learner_in
from memory.memory import Memory
from memory.scopes.fields import Field, Watermark
from memory.scopes.scopes import Scopes
from memory.scopes.sources import never_erased
from memory.store.keys import Scope

_VERB = "behaviors"
_ON, _OFF = "on", "off"


@dataclass(frozen=True, slots=True)
class Attached(Field):
    """A behavior runs in this conversation. The field holds the behavior's name and no words."""

    PREFIX = "attached"
    KEY = "behavior"
    behavior: str
    is_on: bool = True

    without = never_erased


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereAttached(Reach):
    """The conversations to which a behavior is attached, and those that the operator named.

    Turns and learning ask for this after they have read the conversation. So the cache has what is
    stored now, and an attached behavior begins with the next message in every process.
    """

    scopes: Scopes
    behavior: str

    def covers(self, conversation: Scope) -> bool:
        """Return whether the behavior runs in a conversation."""
        here = self.scopes.held.get(conversation)
        is_attached = here is not None and here.get(Attached, self.behavior) is not None
        return is_attached or Reach.covers(self, conversation)


def feature(services: Services) -> Feature:
    """Return the feature; raise `UnusableClass` if a class cannot be used."""
    scopes, behaviors = services.memory.scopes, list[AIContextBehavior]()
    for path, reach in reaches_of(services.settings.behaviors).items():
        if OFF in reach.targets:
            made = built_behavior(path, reach, scopes, None)
            made.reach = WhereAttached(reach.targets, scopes=scopes, behavior=made.name)
            behaviors.append(made)
    by_name = {each.name: each for each in behaviors}
    command = BehaviorsCommand(by_name, services.memory, services.access, services.sentences)
    listed = BotCommand("behaviors", command.answer, buttons={_VERB: command.press})
    return Feature(name="attached", commands=[listed], behaviors=behaviors)


@dataclass(frozen=True, slots=True, eq=False)
class BehaviorsCommand:
    """Everybody may look; in a group only administrators turn something on or off."""

    behaviors: Mapping[str, AIContextBehavior]  # by name
    memory: Memory
    access: Access
    sentences: Sentences

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command."""
        return Answer(await self._shown(asked.sender.language, conversation))

    async def press(self, pressed: ButtonPress, conversation: Scope, code: str) -> Parts:
        """Turn a behavior on or off; a repeat changes nothing."""
        way, _, name = code.partition(":")
        if name not in self.behaviors or way not in (_ON, _OFF):
            raise NotConfirmed("unknown")
        await self.access.check(pressed)
        await self.attach(conversation, name, is_on=way == _ON)
        return await self._shown(pressed.sender.language, conversation)

    async def attached(self, conversation: Scope) -> set[str]:
        """Return the names of the attached behaviors; raise `StoreError`."""
        here = await self.memory.scopes.read(conversation)
        return {each.behavior for each in here.all(Attached)}

    async def attach(self, conversation: Scope, name: str, *, is_on: bool = True) -> None:
        """Attach a behavior or, if not `is_on`, detach it; raise `StoreError`."""
        memory, behavior = self.memory, self.behaviors[name]
        here = await memory.scopes.read(conversation)
        is_new = is_on and here.get(Attached, name) is None
        if is_new and isinstance(behavior, LearningBehavior):  # it learns nothing said before
            meta = memory.keys.scope(conversation).meta
            newest = int(await memory.client.call("HGET", meta, "next_seq") or 0)
            scope = conversation.facts_scope if behavior.is_personal else conversation
            await memory.scopes.set_field(scope, Watermark(learner_in(scope, name, here), newest))
        await memory.scopes.set_field(conversation, Attached(name, is_on))

    async def _shown(self, language: str, conversation: Scope) -> Parts:
        attached = await self.attached(conversation)
        on = [name for name in self.behaviors if name in attached]
        off = [name for name in self.behaviors if name not in attached]
        *before, last = self.sentences.say(
            language, "attached.shown", on=_listed(on), off=_listed(off)
        )
        rows = [(self._button(language, name, _OFF),) for name in on]
        rows += [(self._button(language, name, _ON),) for name in off]
        return (*before, replace(last, buttons=tuple(rows)))

    def _button(self, language: str, name: str, way: str) -> Button:
        label = self.sentences.text(language, f"attached.turn_{way}", name=_spoken(name))
        return Button(label, f"{_VERB}:{way}:{name}")


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_spoken, names)) or "–"
