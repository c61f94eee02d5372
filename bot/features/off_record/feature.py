"""Talk off the record: its commands `/off` and `/back`, in private chats only.

Between them the turn protocol keeps the words of the session apart.
"""

import re
import time
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path

from bot.commands.bot_command import ANYTHING, Answer, BotCommand
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.runtime.maintenance import repeat
from bot.telegram.updates import IncomingMessage, to_bytes
from memory.queue.mailbox import Entry, Mailbox
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope
from memory.store.store import Store

_MAX_S = 86_400
_END_EVERY_S = 10.0
_SAID = tomllib.loads(Path(__file__).with_name("duration.toml").read_text("utf-8"))
_UNITS_S = {int(seconds): unit for seconds, unit in _SAID["units"].items()}
_DURATION = re.compile(
    rf"(?:(?:{_SAID['before']}) )?(?:(?P<count>\d{{1,4}}) ?|{_SAID['one']})?"
    rf"(?:{'|'.join(f'({each})' for each in _UNITS_S.values())})\.?(?:{_SAID['after']})?",
    re.IGNORECASE,
)

_PAGE = 100


class OffRecordSessions:
    """Begins and ends sessions off the record."""

    def __init__(self, store: Store, mailbox: Mailbox) -> None:
        self._store = store
        self._mailbox = mailbox

    async def begin(self, conversation: Scope, since: float, until: float, end: Entry) -> None:
        """Begin a session, or change when the open one ends; times are in Unix seconds.

        `end` is the command that is put into the mailbox when the time is over. The index of ends
        is written first, because an entry without a session does no harm.
        """
        store, keys = self._store, self._store.keys
        request = {"since": int(since * 1000), "until": int(until * 1000), "ttl_s": store.ttl_s}
        script = store.call("begin_off_record", conversation, request, end.to_member())
        await store.client.pipeline([("ZADD", keys.off_record, until, conversation.tag), script])

    async def end(self, conversation: Scope, update_id: int, *, is_due: bool) -> int | None:
        """Erase the words of the session; return how many messages it had, None without a session.

        If `is_due`, only a session whose time is over is ended. `update_id` is that of the command.
        A repeat with the same id returns the same number.
        """
        request = {"by": str(update_id), "is_due": is_due}
        messages = int(await self._store.run("end_off_record", conversation, request))
        if messages < 0:
            return None
        await self._store.tell_erased(conversation)
        return messages

    async def end_due(self) -> None:
        """Put the command that ends a session into the mailbox of each whose time is over."""
        client, keys = self._store.client, self._store.keys
        until_now = ("-inf", time.time(), "WITHSCORES", "LIMIT", 0, _PAGE)
        due = await client.call("ZRANGEBYSCORE", keys.off_record, *until_now)
        for tag, noted_end in due:
            conversation = Scope(tag.decode())
            found = await client.call("HGET", keys.scope(conversation).meta, "off_record")
            if found:
                _, until, end = found.split(b"|", 2)
                if int(until) > time.time() * 1000:  # its end was put off
                    await client.call("ZADD", keys.off_record, int(until) / 1000, tag)
                    continue
                if end:  # it is gone once it has ended the session
                    await self._mailbox.put(conversation, Entry.of_member(end))
            # Not if a session has begun meanwhile: then this is the note of its end.
            request = {"member": tag.decode(), "score": repr(noted_end)}
            await self._store.scripts["take_due"]([keys.off_record], request)


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


def duration_s(said: str) -> int:
    """Return the seconds of a time as people write it, 0 if it is not understood."""
    found = _DURATION.fullmatch(said)
    count, *units = found.groups() if found else ("0",)
    if not count:
        units = [unit if len(unit or "") > 1 else None for unit in units]  # a letter needs a number
    return sum(int(count or 1) * s for s, unit in zip(_UNITS_S, units, strict=False) if unit)


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
        said = asked.text.strip()
        seconds = duration_s(said) if said else _MAX_S  # a day if nothing was said
        if not 0 < seconds <= _MAX_S:
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
