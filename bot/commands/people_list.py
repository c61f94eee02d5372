"""`/people`: who may use the bot, who asks to, and buttons to let in, refuse and remove."""

import re
from collections.abc import Mapping
from time import time

import structlog

from bot.commands.bot_command import Answer
from bot.commands.paged_list import ASK, CONFIRMED, ListChange, ListContent, ListEntry, PagedList
from bot.commands.sentences import Sentences
from bot.commands.strangers import Strangers
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.confirmations import NotConfirmed
from memory.limits.access_list import Admitted
from memory.memory import Memory
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_ID = re.compile(r"-?\d{1,19}", re.ASCII)
_LET_IN, _REFUSE = "i", "f"


class PeopleList:
    """Lists people and groups; `by` is the admin who pressed a button of the list."""

    verb = "people"
    actions: Mapping[str, str] = {
        _LET_IN: "buttons.let_in",
        _REFUSE: "buttons.refuse",
        ASK: "buttons.remove",
    }

    def __init__(
        self, memory: Memory, strangers: Strangers, sentences: Sentences, by: int = 0
    ) -> None:
        self._memory = memory
        self._strangers = strangers
        self._sentences = sentences
        self._by = by

    async def show(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command with the first page."""
        return await PagedList(self, self._sentences).show(asked, conversation)

    async def press(self, pressed: ButtonPress, conversation: Scope, rest: str) -> tuple[Part, ...]:
        """Turn the page or act on an entry."""
        source = PeopleList(self._memory, self._strangers, self._sentences, pressed.sender.id)
        return await PagedList(source, self._sentences).press(pressed, conversation, rest)

    async def let_in(self, pressed: ButtonPress, _: Scope, rest: str) -> tuple[Part, ...]:
        """Let in the person or group that a notice names."""
        return await self._decided(pressed, rest, lets_in=True)

    async def refuse(self, pressed: ButtonPress, _: Scope, rest: str) -> tuple[Part, ...]:
        """Refuse the person or group that a notice names."""
        return await self._decided(pressed, rest, lets_in=False)

    async def content(self, language: str, _: Scope) -> ListContent:
        """Return the requests, then those who were let in, then those named in the settings."""
        admission, text = self._strangers.admission, self._sentences.text
        entries = [
            ListEntry(
                str(each.id),
                "people.asking",
                {**_who(each.id, each.name), "when": self._sentences.moment(language, each.at)},
                without=ASK,
            )
            for each in await self._memory.access.list_asking()
        ]
        admitted = await self._memory.access.list_admitted() if admission.limits_groups else []
        named = admission.admins | admission.named_people
        people = [each.id for each in admitted if each.id > 0] + sorted(named)
        sums = await self._memory.usage.totals(people, time())
        tokens = dict(zip(people, sums, strict=True))
        entries += [self._admitted(language, each, tokens.get(each.id, 0)) for each in admitted]
        for id_ in (*sorted(named), *sorted(admission.named_groups)):
            key = "people.named" if id_ > 0 else "people.named_group"
            values = {"id": id_, "tokens": tokens.get(id_, 0)} if id_ > 0 else {"id": id_}
            entries.append(ListEntry(str(id_), key, values, without=_LET_IN + _REFUSE + ASK))
        is_open = admission.mode == "open" and not admission.named_people
        above = (text(language, "people.open"),) if is_open else ()
        if not entries and not above:
            above = (text(language, "people.none"),)
        below = (text(language, "people.settings"),) if named or admission.named_groups else ()
        return ListContent(
            "people.listed",
            entries,
            above=above,
            below=below,
            ask="people.remove_ask",
            confirm="buttons.remove",
        )

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Raise `NotConfirmed` for an unknown code, and for people whom the settings name."""
        del pressed, conversation  # only admins come here, and all of it is theirs
        if not _ID.fullmatch(code) or self._strangers.admission.is_named(int(code)):
            raise NotConfirmed("unknown")

    async def act(self, conversation: Scope, action: str, code: str) -> ListChange:
        """Let in, refuse or remove."""
        del conversation
        id_ = int(code)
        if action == CONFIRMED:
            await self._remove(id_)
        elif action in (_LET_IN, _REFUSE):
            await self._decide(id_, self._by, lets_in=action == _LET_IN)
        else:
            raise NotConfirmed("unknown")
        return ListChange()

    async def _remove(self, id_: int) -> None:
        removed = await self._memory.access.remove(id_, self._by)
        # Also if it was removed before: the process that removed it may have died here.
        await self._memory.mailbox.drop_sender(id_)
        await self._memory.drop_removed()
        if removed.is_new:
            log.warning("person removed", user=id_, by=self._by)
            self._strangers.say_goodbye(id_, "en")

    async def _decided(self, pressed: ButtonPress, rest: str, *, lets_in: bool) -> tuple[Part, ...]:
        if not _ID.fullmatch(rest):
            raise NotConfirmed("unknown")
        language, by = pressed.sender.language, pressed.sender.id
        key, who = await self._decide(int(rest), by, lets_in=lets_in)
        return self._sentences.say(language, key, id=rest, by=who)

    async def _decide(self, id_: int, by: int, *, lets_in: bool) -> tuple[str, int]:
        """Let in or refuse somebody who asks; return the sentence about it, and who decided."""
        decision = await self._memory.access.decide(id_, by, lets_in=lets_in)
        if not decision.by:
            return "access.nobody", 0
        if decision.is_new:
            log.info("access decided", user=id_, by=by, lets_in=lets_in)
            tell = self._strangers.welcome if lets_in else self._strangers.say_goodbye
            tell(id_, decision.language)
        return ("access.let_in" if decision.is_in else "access.turned_away"), decision.by

    def _admitted(self, language: str, each: Admitted, tokens: int) -> ListEntry:
        values = {
            **_who(each.id, each.name),
            "when": self._sentences.moment(language, each.at),
            "by": each.by,
            "tokens": tokens,
        }
        key = f"people.by_{each.way}" if each.id > 0 else "people.group"
        if each.id < 0:
            del values["tokens"]
        return ListEntry(str(each.id), key, values, without=_LET_IN + _REFUSE)


def _who(id_: int, name: str) -> dict[str, object]:
    return {"name": name or "–", "id": id_}
