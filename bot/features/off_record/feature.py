"""Talk off the record: its commands `/off` and `/back`, in private chats only."""

import re
import time
from dataclasses import replace
from functools import partial

from bot.commands.bot_command import ANYTHING, Answer, BotCommand
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.off_record.sessions import OffRecordSessions
from bot.runtime.maintenance import repeat
from bot.telegram.updates import IncomingMessage, to_bytes
from memory.queue.mailbox import Entry
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope

_MAX_S = 86_400
_END_EVERY_S = 10.0
_UNITS_S = {"m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"(\d{1,4}) ?([mhd])", re.ASCII | re.IGNORECASE)


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory = services.memory
    sessions = OffRecordSessions(memory.store, memory.mailbox)
    commands = OffRecordCommands(sessions, memory.scopes, services.sentences)

    async def is_open(_: IncomingMessage, conversation: Scope) -> bool:
        return await services.access.is_off_record(conversation)

    ending = partial(repeat, sessions.end_due, "off the record", _END_EVERY_S)
    return Feature(
        name="off_record",
        commands=(
            BotCommand("off", commands.off, "private", takes=ANYTHING, section="memory"),
            BotCommand("back", commands.back, "private", section="memory", is_useful=is_open),
        ),
        tasks=(ending,) if services.works else (),
    )


class OffRecordCommands:
    """Begins a session off the record and ends it.

    A group has many people who may count on its memory, so its admins use `/memory off` there.
    """

    def __init__(self, sessions: OffRecordSessions, scopes: Scopes, sentences: Sentences) -> None:
        self._sessions = sessions
        self._scopes = scopes
        self._sentences = sentences

    async def off(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Begin a session, or change when it ends. The bot then gives itself a `/back`."""
        language = asked.sender.language
        if asked.is_group:
            return Answer(self._sentences.say(language, "off.only_private"))
        seconds = _seconds(asked.text.strip())
        if seconds is None:
            return Answer(self._sentences.say(language, "off.usage"))
        until = time.time() + seconds
        # Telegram's ids are positive, so this one says that nobody sent it. It replies to nothing.
        back = replace(asked, update_id=-asked.update_id, command="back", text="")
        back = replace(back, replied_to=0, reply=None)
        end = Entry(back.update_id, asked.sender.id, is_alone=True, body=to_bytes(back))
        await self._sessions.begin(conversation, asked.sent_at, until, end)
        zone = (await self._scopes.read(conversation.facts_scope)).zone
        moment = self._sentences.local(language, until, zone)
        return Answer(self._sentences.say(language, "off.begun", **moment))

    async def back(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """End the session with a receipt; when its time is over, say nothing if it ended before."""
        language, is_due = asked.sender.language, asked.update_id < 0
        if asked.is_group:
            return Answer(self._sentences.say(language, "off.only_private"))
        messages = await self._sessions.end(conversation, asked.update_id, is_due=is_due)
        if messages is None:
            return Answer(() if is_due else self._sentences.say(language, "off.not_off"))
        return Answer(self._sentences.say(language, "off.ended", messages=messages))


def _seconds(said: str) -> int | None:
    """Return how long the session may last: a day if nothing was said, None for a wrong time."""
    if not said:
        return _MAX_S
    found = _DURATION.fullmatch(said)
    seconds = int(found[1]) * _UNITS_S[found[2].lower()] if found else 0
    return seconds if 0 < seconds <= _MAX_S else None
