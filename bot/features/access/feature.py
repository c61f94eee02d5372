"""What access adds to the bot: `/people` and `/invite`, for its operators.

`/people` lists who may use the bot and who asks to, with buttons to let in, refuse and remove.
`/invite` makes a link that lets people in, and lists the open links with buttons.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import time

import structlog

from bot.commands.bot_command import ANYTHING, Answer, BotCommand, ButtonHandler
from bot.commands.paged_list import ASK, CONFIRMED, ListChange, ListContent, ListEntry, PagedList
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.access.access_list import INVITATION, MAX_DAYS, MAX_OPEN, MAX_USES, AccessList
from bot.features.access.strangers import Strangers
from bot.reply.parts import Parts
from bot.reply.split import with_line
from bot.runtime.maintenance import repeat
from bot.telegram.bot_api import BotIdentity
from bot.telegram.updates import ButtonPress, ChatMigration, IncomingMessage, Stranger
from memory.erasure.questions import NotConfirmed
from memory.limits.quotas import DAY_S
from memory.memory import Memory
from memory.scopes.log import message_of, seq_of
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope

_TELL_EVERY_S = 2.0

log = structlog.get_logger(__name__)

_ID = re.compile(r"-?\d{1,19}", re.ASCII)
_LET_IN, _REFUSE = "i", "f"
_LAST_WORDS = 4  # messages that are looked through for a person's name

_ARGUMENTS = re.compile(r"(\d{1,4})(?:\s+(\d{1,3}))?", re.ASCII)
_DAYS = 7
_WITHDRAW = "w"
_ON_PEOPLE: Mapping[str, str] = {
    _LET_IN: "buttons.let_in",
    _REFUSE: "buttons.refuse",
    ASK: "buttons.remove",
}
_ON_LINKS: Mapping[str, str] = {_WITHDRAW: "buttons.withdraw"}


@dataclass(frozen=True, slots=True)
class PeopleList:
    """Lists people and groups."""

    verb = "people"
    actions = _ON_PEOPLE

    memory: Memory
    strangers: Strangers
    sentences: Sentences

    async def press_on_notice(
        self, pressed: ButtonPress, _: Scope, rest: str, *, lets_in: bool
    ) -> Parts:
        """Let in or refuse the person or group that a notice names."""
        if not _ID.fullmatch(rest):
            raise NotConfirmed("unknown")
        access, id_ = self.strangers.access, int(rest)
        names = {each.id: each.name for each in await access.list_asking()}
        names |= {each.id: each.name for each in await access.list_admitted()}
        name = f"{names[id_]} ({rest})" if names.get(id_) else rest
        language, presser = pressed.sender.language, pressed.sender.id
        key, decided_by = await self._decide(id_, presser, lets_in=lets_in)
        who = _named(self.sentences, language, decided_by, presser)
        return self.sentences.say(language, key, id=name, by=who)

    async def content(self, language: str, _: Scope, by: int) -> ListContent:
        """Return the requests, then those who were let in, then those named in the settings."""
        admission, text = self.strangers.admission, self.sentences.text
        entries: list[ListEntry] = []
        for asking in await self.strangers.access.list_asking():
            when = self.sentences.moment(language, asking.at)
            values: dict[str, object] = {"id": asking.id, "name": asking.name or "–", "when": when}
            entries.append(ListEntry(str(asking.id), "people.asking", values, without=ASK))
        admitted = await self.strangers.access.list_admitted() if admission.limits_groups else []
        settings = admission.settings
        named = settings.admin_user_ids | settings.allowed_user_ids
        people = [each.id for each in admitted if each.id > 0] + sorted(named)
        sums = await self.memory.usage.totals(people, time())
        tokens = dict(zip(people, sums, strict=True))
        for each in admitted:
            key = f"people.by_{each.way}" if each.id > 0 else "people.group"
            when = self.sentences.moment(language, each.at)
            who = _named(self.sentences, language, each.by, by)
            values = {"id": each.id, "name": each.name or "–", "when": when, "by": who}
            values |= {"tokens": tokens[each.id]} if each.id > 0 else {}
            entries.append(ListEntry(str(each.id), key, values, without=_LET_IN + _REFUSE))
        names, fixed = await self._names(language, sorted(named), by), _LET_IN + _REFUSE + ASK
        for id_ in sorted(named):
            setting = "ADMIN_USER_IDS" if id_ in settings.admin_user_ids else "ALLOWED_USER_IDS"
            values = {"who": names[id_], "setting": setting, "tokens": tokens[id_]}
            entries.append(ListEntry(str(id_), "people.named", values, without=fixed))
        entries += [
            ListEntry(str(id_), "people.named_group", {"id": id_}, without=fixed)
            for id_ in sorted(settings.allowed_group_ids)
        ]
        is_open = settings.access == "open" and not settings.allowed_user_ids
        first = ["people.open"] if is_open else ["people.none"] * (not entries)
        below = (text(language, "people.settings"),) if named or settings.allowed_group_ids else ()
        return ListContent(
            "people.operators" if is_open and not admitted else "people.listed",
            entries,
            above=[text(language, key) for key in first],
            below=below,
            ask="people.remove_ask",
            confirm="buttons.remove",
        )

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Raise `NotConfirmed` for an unknown code, and for people whom the settings name."""
        del pressed, conversation  # only admins come here, and all of it is theirs
        if not _ID.fullmatch(code) or self.strangers.admission.is_named(int(code)):
            raise NotConfirmed("unknown")

    async def act(self, pressed: ButtonPress, _: Scope, action: str, code: str) -> ListChange:
        """Let in, refuse or remove."""
        id_, by = int(code), pressed.sender.id
        if action in (_LET_IN, _REFUSE):
            await self._decide(id_, by, lets_in=action == _LET_IN)
            return ListChange()
        if action != CONFIRMED:
            raise NotConfirmed("unknown")
        removed = await self.strangers.access.decide(id_, by, "remove")
        # Also if it was removed before: the process that removed it may have died here.
        await self.memory.mailbox.drop_sender(id_)
        await self.strangers.admission.drop_removed(self.memory.mailbox)
        if removed.is_new:
            log.warning("person removed", user=id_, by=by)
            self.strangers.say_goodbye(id_, "en")
        return ListChange()

    async def _decide(self, id_: int, by: int, *, lets_in: bool) -> tuple[str, int]:
        """Let in or refuse somebody who asks; return the sentence about it, and who decided."""
        decision = await self.strangers.access.decide(id_, by, "admit" if lets_in else "refuse")
        if not decision.by:
            return "access.nobody", 0
        if decision.is_new:
            log.info("access decided", user=id_, by=by, lets_in=lets_in)
            tell = self.strangers.welcome if lets_in else self.strangers.say_goodbye
            tell(id_, decision.language)
        return ("access.let_in" if decision.is_in else "access.turned_away"), decision.by

    async def _names(self, language: str, people: Sequence[int], by: int) -> dict[int, str]:
        logs = [self.memory.keys.scope(Scope.of_chat(each)).log for each in people]
        newest = [("XREVRANGE", log, "+", "-", "COUNT", _LAST_WORDS) for log in logs]
        replies = await self.memory.client.pipeline(newest) if newest else []
        found = {}
        for id_, reply in zip(people, replies, strict=True):
            messages = (message_of(seq_of(entry), fields) for entry, fields in reply)
            name = next((each.sender_name for each in messages if each.sender_id == id_), "")
            name = self.sentences.text(language, "people.you") if id_ == by else name
            found[id_] = f"{name} ({id_})" if name else str(id_)
        return found


@dataclass(frozen=True, slots=True)
class InviteCommand:
    """Makes links to the bot, and lists them; `mode` is the setting `ACCESS`."""

    verb = "invites"
    actions = _ON_LINKS

    access: AccessList
    me: Callable[[], BotIdentity]
    mode: str
    sentences: Sentences

    @property
    def paged(self) -> PagedList:
        """Shows the links a page at a time."""
        return PagedList(self, self.sentences)

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer `/invite [uses] [days]` with a link to pass on, and the list of open links."""
        language, say = asked.sender.language, self.sentences.say
        if self.mode == "open":
            return Answer(say(language, "invite.off"))
        found = _ARGUMENTS.fullmatch(asked.text.strip() or "1")
        uses, days = (int(found[1]), int(found[2] or _DAYS)) if found else (0, 0)
        if not (0 < uses <= MAX_USES and 0 < days <= MAX_DAYS):
            return Answer(say(language, "invite.usage", max_uses=MAX_USES, max_days=MAX_DAYS))
        code = await self.access.make_invitation(uses, days, asked.sender.id)
        if code:
            log.info("invitation made", by=asked.sender.id, uses=uses, days=days)
            link = f"https://t.me/{self.me().username}?start={INVITATION}{code}"
            until = self.sentences.day(language, time() + days * DAY_S)
            made = say(language, "invite.made", link=link, uses=uses, until=until)
        else:
            made = say(language, "invite.too_many", max_open=MAX_OPEN)
        (listed,) = (await self.paged.show(asked, conversation)).parts
        return Answer(with_line(made, listed))

    async def content(self, language: str, _: Scope, by: int) -> ListContent:
        """Return the open invitations."""
        moment, entries = self.sentences.moment, []
        for each in await self.access.list_invitations():
            made, until = moment(language, each.made_at), moment(language, each.ends_at)
            who = _named(self.sentences, language, each.by, by)
            values = {"left": each.left, "made": made, "until": until, "by": who}
            entries.append(ListEntry(each.id, "invite.line", values))
        empty = () if entries else (self.sentences.text(language, "invite.none"),)
        return ListContent("invite.listed", entries, above=empty)

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Accept each code: only admins come here, and `act` finds only open invitations."""

    async def act(self, _: ButtonPress, __: Scope, action: str, code: str) -> ListChange:
        """Withdraw an invitation."""
        if action != _WITHDRAW:
            raise NotConfirmed("unknown")
        await self.access.withdraw_invitation(code)
        return ListChange()


def _named(sentences: Sentences, language: str, admin: int, reader: int) -> str:
    return f"{admin} ({sentences.text(language, 'people.you')})" if admin == reader else f"{admin}"


def feature(services: Services) -> Feature:
    """Return the feature."""
    strangers, sentences = Strangers(services), services.sentences
    people = PeopleList(services.memory, strangers, sentences)
    listed = PagedList(people, sentences)
    invite = InviteCommand(strangers.access, services.me, services.settings.access, sentences)

    links = {invite.verb: invite.paged.press}
    buttons: dict[str, ButtonHandler] = {
        "let_in": partial(people.press_on_notice, lets_in=True),
        "refuse": partial(people.press_on_notice, lets_in=False),
        people.verb: listed.press,
    }

    async def exported(conversation: Scope, _: ScopeMemory) -> Mapping[str, object]:
        person = conversation.chat_id if conversation.is_private else 0
        return {"access": await strangers.access.stored_of(person) if person else None}

    return Feature(
        name="access",
        commands=(
            BotCommand("people", listed.show, "operators", buttons),
            BotCommand("invite", invite.answer, "operators", links, takes=ANYTHING),
        ),
        arrivals={Stranger: strangers.meet, ChatMigration: strangers.follow},
        tasks=(strangers.run, partial(repeat, strangers.tell_admins, "requests", _TELL_EVERY_S))
        if services.takes_in
        else (),
        forgets=(strangers.access.forget,),
        exports=(exported,),
    )
