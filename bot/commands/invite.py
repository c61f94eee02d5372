"""`/invite`: makes a link that lets people in, and lists the open links with buttons."""

import re
from collections.abc import Mapping

import structlog

from bot.commands.bot_command import Answer
from bot.commands.paged_list import ListChange, ListContent, ListEntry, PagedList
from bot.commands.sentences import Sentences
from bot.telegram.admission import INVITATION
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.confirmations import NotConfirmed
from memory.limits.invitations import MAX_DAYS, MAX_OPEN, MAX_USES, Invitations
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_ARGUMENTS = re.compile(r"(\d{1,4})(?:\s+(\d{1,3}))?", re.ASCII)
_LINK_ID = re.compile(r"[0-9a-f]{16}")
_DAYS = 7
_WITHDRAW = "w"


class InviteCommand:
    """Makes links to the bot `username`; `mode` is the setting `ACCESS`."""

    verb = "invites"
    actions: Mapping[str, str] = {_WITHDRAW: "buttons.withdraw"}

    def __init__(
        self, invitations: Invitations, username: str, mode: str, sentences: Sentences
    ) -> None:
        self._invitations = invitations
        self._username = username
        self._mode = mode
        self._sentences = sentences
        self.list = PagedList(self, sentences)

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer `/invite [uses] [days]` with a link to pass on, and the list of open links."""
        language, say = asked.sender.language, self._sentences.say
        if self._mode == "open":
            return Answer(say(language, "invite.off"))
        found = _ARGUMENTS.fullmatch(asked.text.strip() or "1")
        uses, days = (int(found[1]), int(found[2] or _DAYS)) if found else (0, 0)
        if not (0 < uses <= MAX_USES and 0 < days <= MAX_DAYS):
            return Answer(say(language, "invite.usage", max_uses=MAX_USES, max_days=MAX_DAYS))
        code = await self._invitations.make(uses, days, asked.sender.id)
        if code:
            log.info("invitation made", by=asked.sender.id, uses=uses, days=days)
            link = f"https://t.me/{self._username}?start={INVITATION}{code}"
            made = say(language, "invite.made", link=link, uses=uses, days=days)
        else:
            made = say(language, "invite.too_many", max_open=MAX_OPEN)
        shown = await self.list.show(asked, conversation)
        return Answer((*made, *shown.parts))

    async def content(self, language: str, _: Scope) -> ListContent:
        """Return the open invitations."""
        entries = [
            ListEntry(
                each.id,
                "invite.line",
                {
                    "left": each.left,
                    "until": self._sentences.moment(language, each.ends_at),
                    "by": each.by,
                    "made": self._sentences.moment(language, each.made_at),
                },
            )
            for each in await self._invitations.list_open()
        ]
        empty = () if entries else (self._sentences.text(language, "invite.none"),)
        return ListContent("invite.listed", entries, above=empty)

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Raise `NotConfirmed` for an unknown code."""
        del pressed, conversation  # only admins come here
        if not _LINK_ID.fullmatch(code):
            raise NotConfirmed("unknown")

    async def act(self, conversation: Scope, action: str, code: str) -> ListChange:
        """Withdraw an invitation."""
        del conversation
        if action != _WITHDRAW:
            raise NotConfirmed("unknown")
        await self._invitations.withdraw(code)
        return ListChange()
