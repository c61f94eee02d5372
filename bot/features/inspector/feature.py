"""What the inspector adds to the bot."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import structlog
from starlette.routing import Route

from bot.commands.access import Access
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.inspector.operator_look import OperatorLook
from bot.features.inspector.page import PATH, LivePage, SignIn
from bot.features.inspector.settings import InspectorSettings
from bot.features.inspector.state import LiveReader
from bot.features.inspector.turn_log import WATCHED, ProcessReports, TurnLog
from bot.reply.parts import Button, Parts, with_buttons
from bot.reply.render import render
from bot.telegram.updates import ButtonPress
from config.values import secret_of
from memory.erasure.questions import NotConfirmed
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope


def feature(services: Services) -> Feature:
    """Return the feature."""
    settings, memory = services.own(InspectorSettings), services.memory
    turns, name_of = TurnLog(services.name_of), services.name_of
    reports = ProcessReports(memory.store, memory.scopes.noted[WATCHED])
    duty = "everything" if services.takes_in and services.works else "web"
    report = partial(
        turns.report,
        reports.process,
        duty if services.takes_in else "worker",
        services.models.conditions,
        memory.capacity.samples,
    )
    look = OperatorLook(memory, services.sentences)
    page = LivePage(
        LiveReader(settings, memory, reports, name_of),
        look,
        SignIn(
            secret_of(settings.inspector_token) or "",
            secret_of(settings.telegram_bot_token) or "",
            memory.store,
        ),
    )
    permission = LookPermission(look, memory.scopes, services.access, services.sentences)
    return Feature(
        name="inspector",
        buttons={permission.verb: permission.press},
        privacy=(permission.part,),
        tasks=(partial(reports.keep_writing, report),),
        observers=(turns.observe,),
        routes=(Route(PATH, page.answer, methods=["GET", "POST"]),),
    )


log = structlog.get_logger(__name__)

_ALLOW, _END = "on", "off"


@dataclass(frozen=True, slots=True)
class LookPermission:
    """Gives the permission and takes it back; in a group only administrators may."""

    look: OperatorLook
    scopes: Scopes
    access: Access
    sentences: Sentences
    verb: ClassVar = "look"

    async def part(self, language: str, conversation: Scope) -> tuple[str, Button]:
        """Return whether the operator may look now, and the button that changes it."""
        until = await self.look.until(conversation)
        key, label, action = "privacy.look", "buttons.let_look", _ALLOW
        values: dict[str, object] = {}
        if until:
            key, label, action = "privacy.looking", "buttons.end_look", _END
            zone = (await self.scopes.read(conversation.facts_scope)).zone
            values = self.sentences.local(language, until, zone)
        button = Button(self.sentences.text(language, label), f"{self.verb}:{action}")
        return self.sentences.text(language, key, **values), button

    async def press(self, pressed: ButtonPress, conversation: Scope, action: str) -> Parts:
        """Let the operator look for an hour, or take that permission back; show how it is now."""
        await self.access.check(pressed)
        if action not in (_ALLOW, _END):
            raise NotConfirmed("unknown")
        change = self.look.allow if action == _ALLOW else self.look.end
        await change(conversation, pressed.update_id)
        log.info("operator may look", conversation=conversation.tag, allowed=action == _ALLOW)
        text, button = await self.part(pressed.sender.language, conversation)
        return with_buttons(render(text), button)
