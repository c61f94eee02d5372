"""Meets people and groups whom the bot does not serve: says one sentence, and asks the admins.

Nothing of what a stranger writes is stored. Intake does not wait until sentences are sent, so
many strangers delay nobody else.
"""

import asyncio
from dataclasses import replace
from typing import NamedTuple

import structlog

from bot.commands.general import LET_IN
from bot.feature import Services
from bot.features.access.access_list import INVITATION, AccessList
from bot.reply.parts import Button, with_buttons
from bot.telegram.admission import is_own_right
from bot.telegram.chat import Destination
from bot.telegram.errors import TelegramError
from bot.telegram.updates import ChatMigration, IncomingMessage, Stranger
from memory.store.errors import StoreError

log = structlog.get_logger(__name__)

_DAY_S = 86_400
_HOUR_S = 3_600
_MAX_NOTICES_AN_HOUR = 20
_MAX_WAITING = 200  # sentences that may wait to be sent; meanwhile further strangers get none
_LEAVE_AFTER_S = 1.0  # Telegram reports a new supergroup and the move there in either order
_TELLING_MS = 60_000
_GIVES_NUMBER = "error.stranger"


class _Saying(NamedTuple):
    """A sentence for a chat. With `leaves_at` (time of the loop) the bot leaves the group then."""

    chat_id: int
    language: str
    key: str
    leaves_at: float = 0


class Strangers:
    """Decides about messages of strangers; `run` sends sentences, `tell_admins` asks the admins."""

    def __init__(self, services: Services) -> None:
        store = services.memory.store
        self.admission = services.admission
        self.access = AccessList(store, self.admission.members)
        self._chat = services.chat
        self._sentences = services.sentences
        self._notices = services.notices
        self._telling = store.lease(store.keys.access("telling"), _TELLING_MS)
        self._sayings: asyncio.Queue[_Saying] = asyncio.Queue(_MAX_WAITING)

    async def meet(self, stranger: Stranger) -> IncomingMessage | None:
        """Return the message if it may be answered after all; raise `StoreError`."""
        message = stranger.message
        if is_own_right(message) and await self.access.knows(message.sender.id):
            return replace(message, text="")
        if await self.admission.admits(message):
            return message
        log.info("stranger", user=message.sender.id, chat=message.chat_id)
        if message.is_group:
            return await self._meet_group(stranger)
        sender, mode, about = message.sender, self.admission.settings.access, ""
        key = _GIVES_NUMBER if mode == "open" else "access.invited_only"
        if message.command == "start" and message.text.startswith(INVITATION):
            code, about = message.text.removeprefix(INVITATION), ":link"
            if mode != "open":
                if await self.access.use_invitation(code, sender.id, sender.name):
                    log.info("person let in", user=sender.id, way="link")
                    return replace(message, text=LET_IN)
                key = "access.bad_link"
        elif mode == "ask":
            outcome = await self.access.ask_in(sender.id, sender.name, sender.language)
            key = f"access.{'asked' if outcome == 'waiting' else outcome}"
        await self._say_once(message, key, about)
        return None

    async def follow(self, moved: ChatMigration) -> None:
        """If a group that was in has become a supergroup, let the supergroup in."""
        old, new = moved.old_chat_id, moved.new_chat_id
        if not self.admission.limits_groups:
            return
        await self.admission.members.refresh()
        if self.admission.serves_group(old) and not self.admission.serves_group(new):
            listed = await self.access.list_admitted()
            name, by = next(((each.name, each.by) for each in listed if each.id == old), ("", 0))
            await self.access.admit_group(new, name, by)

    async def run(self) -> None:
        """Send the planned sentences to strangers, until cancelled."""
        while True:
            saying = await self._sayings.get()
            try:
                await self._say(saying)
            except (TelegramError, StoreError) as error:
                log.warning("stranger not told", reason=type(error).__name__)

    async def tell_admins(self) -> None:
        """Tell admins about new requests to come in; raise `StoreError`.

        One process at a time does so, with at most `_MAX_NOTICES_AN_HOUR`.
        """
        if self.admission.settings.access != "ask":
            return
        if not (await self.access.list_asking(untold=True) and await self._telling.hold()):
            return
        try:
            for asking in await self.access.list_asking(untold=True):
                if await self.access.count_this_hour("notices") > _MAX_NOTICES_AN_HOUR:
                    if await self.access.may_tell("how_many", _HOUR_S):
                        count = len(await self.access.list_asking())
                        await self._notices.say("access.more_want_in", {"count": count})
                    return
                await self._telling.hold()
                id_ = asking.id
                key = "access.wants_in" if id_ > 0 else "access.group_wants_in"
                buttons = {"buttons.let_in": f"let_in:{id_}", "buttons.refuse": f"refuse:{id_}"}
                if await self._notices.say(key, {"name": asking.name, "id": id_}, buttons):
                    await self.access.mark_told(id_)
        finally:
            await self._telling.release()

    def welcome(self, id_: int, language: str) -> None:
        """Plan to tell somebody that they are in now."""
        self._plan(_Saying(id_, language, "access.welcome" if id_ > 0 else "access.group_welcome"))

    def say_goodbye(self, id_: int, language: str, after_s: float = 0) -> None:
        """Plan to leave a group that was refused or removed; a person is told nothing."""
        if id_ < 0:
            leaves_at = asyncio.get_running_loop().time() + after_s
            self._plan(_Saying(id_, language, "access.group_refused", leaves_at))

    async def _meet_group(self, stranger: Stranger) -> IncomingMessage | None:
        message, admission = stranger.message, self.admission
        group, language = message.chat_id, message.sender.language
        if not admission.limits_groups or admission.serves_group(group):
            return None
        settings = admission.settings
        is_admin = message.sender.is_person and message.sender.id in settings.admin_user_ids
        if is_admin and settings.access != "open":
            await self.access.admit_group(group, stranger.place, message.sender.id)
            return message
        if settings.access == "ask":
            outcome = await self.access.ask_in(group, stranger.place or str(group), language)
            if outcome in ("asked", "waiting"):
                await self._say_once(message, "access.group_asked")
                return None
        self.say_goodbye(group, language, _LEAVE_AFTER_S)
        return None

    async def _say_once(self, message: IncomingMessage, key: str, about: str = "") -> None:
        if await self.access.may_tell(f"{message.chat_id}{about}", _DAY_S):
            self._plan(_Saying(message.chat_id, message.sender.language, key))

    def _plan(self, saying: _Saying) -> None:
        try:
            self._sayings.put_nowait(saying)
        except asyncio.QueueFull:
            log.warning("stranger not told", reason="TooManyStrangers")

    async def _say(self, saying: _Saying) -> None:
        chat_id = saying.chat_id
        if not saying.leaves_at:
            await self._send(saying)
            return
        await asyncio.sleep(saying.leaves_at - asyncio.get_running_loop().time())
        await self.admission.members.refresh()
        if self.admission.serves_group(chat_id):
            return
        try:
            if await self.access.may_tell(f"{chat_id}:leave", _HOUR_S):
                await self._send(saying)
        finally:
            await self._chat.leave(chat_id)
            log.info("group left", chat=chat_id)

    async def _send(self, saying: _Saying) -> None:
        async for wait_s in self._chat.waits(saying.chat_id):
            await asyncio.sleep(wait_s)
        said = self._sentences.say(saying.language, saying.key, id=saying.chat_id)
        if saying.key == _GIVES_NUMBER:
            label = self._sentences.text(saying.language, "buttons.copy_number")
            said = with_buttons(said, Button(label, copies=str(saying.chat_id)))
        for part in said:
            await self._chat.send(Destination(saying.chat_id), part)
