"""The Telegram of the playground's bot: the page's chats are its `Chat`.

What the bot sends is put into the scene, and what people do becomes raw updates for the bot.
"""
# ruff: noqa: ARG002 - `Telegram` and `Chat` pass more than the page needs

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import count
from mimetypes import guess_type
from typing import Any

import structlog

from bot.playground.scene import (
    BOT,
    BOT_USERNAME,
    DISLIKE,
    PageChat,
    PageDraft,
    PageFile,
    PageMessage,
    PagePerson,
    Scene,
    find_entities,
    raw_chat,
    raw_dislike,
    raw_message,
    raw_press,
)
from bot.reply.parts import Part, well_formed
from bot.telegram.bot_api import BotIdentity, MenuScope
from bot.telegram.chat import Destination, SendListeners
from bot.telegram.connection import Backoff, TelegramHealth
from bot.telegram.errors import IntakeClosed, NotAccepted, Refused, UpdateRefused
from bot.telegram.intake import Accept, RawUpdate
from bot.telegram.telegram import SetupPlan
from config.settings import Settings
from memory.behaviors.tool_output import OutgoingFile
from memory.memory import Memory

log = structlog.get_logger(__name__)

_TYPING_S = 5
_DRAFT_S = 30

Commands = tuple[tuple[str, str], ...]  # names without slash, and descriptions


class PageTelegram(SendListeners):
    """Implements `Telegram` and `Chat`; `clock` returns Unix seconds."""

    def __init__(self, scene: Scene, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.updates: dict[int, RawUpdate] = {}  # what the bot has not accepted yet, by id
        self.change_count = 0  # grows with each change of what people see
        self._scene = scene
        self._clock = clock
        self._changed = asyncio.Event()
        self._arrived = asyncio.Event()
        self._health = TelegramHealth()
        self.files: dict[str, PageFile] = {}  # every file that was sent, by id
        self._pressed: dict[str, PageChat] = {}
        self._menus: dict[tuple[MenuScope, str], Commands] = {}
        # A restart repeats no id, as long as ids were given more slowly than one a second.
        first = self._now() + 1
        self._message_ids, self._update_ids, self._ids = count(first), count(first), count(first)

    # What the page shows

    def note_change(self) -> None:
        """Wake everybody who waits for a change."""
        self.change_count += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def until_changed(self, seen: int, timeout_s: float) -> None:
        """Wait until `change_count` is above `seen`, at most so long."""
        if self.change_count <= seen:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), timeout_s)

    def draft(self, place: PageChat) -> PageDraft | None:
        """Return what the bot is writing: for 30 seconds, or until its next message."""
        return place.draft if place.draft and self._clock() < place.draft.until else None

    def is_typing(self, place: PageChat) -> bool:
        """Return whether people see "typing…": for five seconds, or until the next message."""
        return self._clock() < place.typing_until

    def menu(self, place: PageChat) -> Commands:
        """Return the commands that the speaker of a place is offered."""
        wide: MenuScope = "groups" if place.is_group else "private"
        for scope in (place.chat_id, wide, "default"):
            for language in (place.speaker.language[:2], ""):
                if menu := self._menus.get((scope, language)):
                    return menu
        return ()

    # What people do

    def say(self, place: PageChat, person: PagePerson, text: str, **more: Any) -> PageMessage:
        """Send a text; `more` are further fields of the message."""
        message = self._new(person, text=text, **{"entities": find_entities(text)} | more)
        place.put(message)
        self._add(place, "message", raw_message(place, message))
        return message

    def send_files(
        self,
        place: PageChat,
        files: Sequence[PageFile],
        caption: str = "",
        reply_to: PageMessage | None = None,
    ) -> None:
        """Send files of the speaker; several photos are an album. The first has the caption."""
        is_album = len(files) > 1 and {file.kind for file in files} == {"photo"}
        more = {"album": f"{self._now()}{len(place.messages)}"} if is_album else {}
        for file in map(self._kept, files):
            self.say(place, place.speaker, caption, file=file, reply_to=reply_to, **more)
            caption = ""

    def edit_message(self, place: PageChat, message: PageMessage, text: str) -> None:
        """Change the text or caption of a person's message."""
        edited = replace(message, text=text, entities=find_entities(text), edited_at=self._now())
        place.put(edited)
        self._add(place, "edited_message", raw_message(place, edited))

    def press(self, place: PageChat, message: PageMessage, callback_data: str) -> None:
        """Press a button of a message, or put a 👎 on an answer; another button does nothing."""
        if callback_data == DISLIKE and message.sender is BOT:
            self._add(place, "message_reaction", raw_dislike(place, message, self._now()))
        elif callback_data in [each.callback_data for row in message.buttons for each in row]:
            press = raw_press(next(self._ids), place, message, callback_data)
            self._pressed[press["id"]] = place
            self._add(place, "callback_query", press)

    def stop(self, place: PageChat) -> None:
        """Press Stop under what the bot is writing, if it is there; the draft stays."""
        draft = self.draft(place)
        if draft and draft.can_stop:
            place.draft = replace(draft, can_stop=False)
            thread = {"message_thread_id": place.topic_id} if place.topic_id else {}
            body = {"chat": raw_chat(place), "draft_id": draft.id} | thread
            self._add(place, "stopped_message_generation", body)

    def _new(self, sender: PagePerson, **content: Any) -> PageMessage:
        return PageMessage(next(self._message_ids), sender, sent_at=self._now(), **content)

    def _add(self, place: PageChat, kind: str, body: dict[str, Any]) -> None:
        place.notice = ""
        number = next(self._update_ids)
        self.updates[number] = {"update_id": number, kind: body}
        self._arrived.set()
        self.note_change()

    def _kept(self, file: PageFile) -> PageFile:
        kept = replace(file, id=f"file-{next(self._ids)}")
        self.files[kept.id] = kept
        return kept

    def _now(self) -> int:
        return int(self._clock())

    # `Telegram`

    @asynccontextmanager
    async def open(
        self, _settings: Settings, _memory: Memory, health: TelegramHealth
    ) -> AsyncIterator["PageTelegram"]:
        """Give this Telegram to a bot; another bot may get it afterwards."""
        self._health = health
        yield self

    @property
    def chat(self) -> "PageTelegram":
        """Where everything is sent."""
        return self

    async def identify(self, *, polls: bool) -> BotIdentity:
        """Return the bot of the page."""
        self._health.identity = me = BotIdentity(
            BOT.id, BOT_USERNAME, BOT.name, can_read_all_group_messages=True
        )
        return me

    def receive(self, accept: Accept, plan: SetupPlan) -> Sequence[Coroutine[Any, Any, None]]:
        """Show the menus, and return what hands updates on."""
        self._menus = {(menu.scope, menu.language): menu.commands for menu in plan.menus}
        self.note_change()
        return [self._keep_handing_on(accept)]

    async def _keep_handing_on(self, accept: Accept) -> None:
        backoff = Backoff("intake", self._health)
        while True:
            self._arrived.clear()
            try:
                await self._hand_on(accept)
                backoff.succeeded()
                await self._arrived.wait()
            except NotAccepted as error:
                await backoff.wait(error)
            except Exception as error:  # the outer fence: the bot would hear nothing any more
                log.exception("update not handed on")
                await backoff.wait(error)

    async def _hand_on(self, accept: Accept) -> None:
        """Hand updates on in order. Once the intake is closed, offer only commands and buttons.

        Raise `NotAccepted` if one was refused; that one stays in `updates`.
        """
        refusal: NotAccepted | None = None
        for number, update in list(self.updates.items()):
            if number not in self.updates:
                continue  # somebody started over meanwhile
            is_closed = isinstance(refusal, IntakeClosed)
            try:
                await accept(update, after_refusal=is_closed)
                self.updates.pop(number, None)
            except (IntakeClosed, UpdateRefused) as error:
                refusal = error if isinstance(error, IntakeClosed) else refusal or error
        if refusal is not None:
            raise refusal

    # `Chat`

    async def waits(self, chat_id: int, max_wait_s: float = 0) -> AsyncIterator[float]:
        """Yield nothing: there is no rate limit."""
        for wait_s in tuple[float, ...]():
            yield wait_s

    async def send(self, to: Destination, part: Part, timeout_s: float = 0) -> int:
        """Put one part into its chat."""
        place = self._place(to.chat_id, to.topic_id)
        replied = part.quote.message_id if part.quote else to.reply_to
        file = self._file(part.file) if part.file else None
        if part.copy_of:
            _, copied = self._find(*part.copy_of)
            part, file = replace(part, text=copied.text, entities=copied.entities), copied.file
        said = {"file": file, "reply_to": place.by_id.get(replied), "asks": part.force_reply}
        message = self._new(BOT, **said)
        self._sent(place, _content(message, part))
        self.note_sent(to)
        return message.id

    def takes_rich(self, chat_id: int) -> bool:
        """Say no: the page shows no rich messages."""
        return False

    def takes_voice(self, chat_id: int) -> bool:
        """Say yes."""
        return True

    async def edit(self, chat_id: int, message_id: int, part: Part, timeout_s: float = 0) -> None:
        """Replace the text and buttons of a message."""
        place, message = self._find(chat_id, message_id)
        edited = _content(message, part)
        if edited != message:
            place.put(replace(edited, edited_at=self._now()))
            self.note_change()

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message, if it is still there."""
        with suppress(Refused):
            del self._find(chat_id, message_id)[0].by_id[message_id]
            self.note_change()

    async def show_typing(self, to: Destination) -> None:
        """Show "typing"."""
        self._place(to.chat_id, to.topic_id).typing_until = self._clock() + _TYPING_S
        self.note_change()

    async def show_draft(self, to: Destination, draft_id: int, part: Part) -> bool:
        """Show what is being written, with a Stop button."""
        draft = PageDraft(draft_id, well_formed(part.text), part.entities, self._clock() + _DRAFT_S)
        self._place(to.chat_id, to.topic_id).draft = draft
        self.note_change()
        return True

    async def react(self, chat_id: int, message_id: int, emoji: str) -> bool:
        """Show our reaction to a message."""
        place, message = self._find(chat_id, message_id)
        place.put(replace(message, reaction=emoji))
        self.note_change()
        return True

    async def name_topic(self, chat_id: int, topic_id: int, name: str) -> None:
        """Refuse: the bot is no administrator of the group."""
        raise Refused("other")

    async def answer_button(self, callback_id: str, text: str = "") -> None:
        """Show the text below the messages, until a person does something else there."""
        if place := self._pressed.pop(callback_id, None):
            place.notice = text
            self.note_change()

    async def is_group_admin(self, chat_id: int, user_id: int) -> bool:
        """Tell whether this person administers the group."""
        return self._place(chat_id, 0).is_group and self._scene.is_group_admin(user_id)

    async def leave(self, chat_id: int) -> None:
        """Refuse: the bot stays in the group."""
        raise Refused("other")

    async def download(self, file_id: str, max_bytes: int) -> bytes:
        """Return the content of a file."""
        file = self.files.get(file_id)
        if file is None:
            raise Refused("other")
        if len(file.content) > max_bytes:
            raise Refused("too_big")
        return file.content

    def _file(self, file: OutgoingFile) -> PageFile:
        if not file.file_id:
            kind = "document" if file.kind == "text" else file.kind
            mime_type = guess_type(file.name)[0] or ""
            return self._kept(PageFile(kind, file.content, file.name, mime_type))
        if file.file_id not in self.files:
            raise Refused("other")
        return self.files[file.file_id]

    def _sent(self, place: PageChat, message: PageMessage) -> None:
        """Put a message of the bot into a place; typing and draft end with it."""
        place.put(message)
        place.draft, place.typing_until = None, 0.0
        self.note_change()

    def _place(self, chat_id: int, topic_id: int) -> PageChat:
        for place in self._scene:
            if (place.chat_id, place.topic_id) == (chat_id, topic_id):
                return place
        raise Refused("other")

    def _find(self, chat_id: int, message_id: int) -> tuple[PageChat, PageMessage]:
        for place in self._scene:
            if place.chat_id == chat_id and (message := place.by_id.get(message_id)):
                return place, message
        raise Refused("message_gone")


def _content(message: PageMessage, part: Part) -> PageMessage:
    text = well_formed(part.text)
    return replace(message, text=text, entities=part.entities, buttons=part.buttons)
