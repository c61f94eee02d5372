"""The message with the button of an import shows how far it is."""

import asyncio
from dataclasses import dataclass, field

from bot.commands.sentences import Sentences
from bot.documents.import_progress import ImportProgress
from bot.language.catalogue import Catalogue
from bot.reply.parts import Part
from bot.telegram.errors import OutcomeUnknown
from bot.telegram.updates import IncomingMessage, Sender
from tests.quiet_chat import QuietChat

AGREED = IncomingMessage(1, 7, 0, False, 12, 1, Sender(7, "Ann"), "document", "")  # noqa: FBT003
IMPORTING = "I'm importing it now…"


@dataclass
class Edits(QuietChat):
    """Sets `next` with each edit, and then raises an error, because nothing depends on it."""

    next: asyncio.Event = field(default_factory=asyncio.Event)
    texts: list[tuple[int, int, str]] = field(default_factory=list)

    async def edit(
        self, chat_id: int, message_id: int, part: Part, timeout_s: float = 15.0
    ) -> None:
        del timeout_s
        self.texts.append((chat_id, message_id, part.text))
        self.next.set()
        raise OutcomeUnknown("edit")


async def test_percent_are_shown_at_a_pace_and_end_at_100() -> None:
    """The same percent is not shown twice, and trouble with an edit stops nothing."""
    chat = Edits()
    progress = ImportProgress(chat, Sentences(Catalogue()), every_s=0)
    async with progress.shown(AGREED) as report:
        for percent in (20, 70):
            report(percent)
            await asyncio.wait_for(chat.next.wait(), 5)
            chat.next.clear()
    assert chat.texts == [(7, 12, f"{IMPORTING} {percent} %") for percent in (20, 70, 100)]


async def test_a_quick_import_shows_no_percent() -> None:
    chat = Edits()
    async with ImportProgress(chat, Sentences(Catalogue())).shown(AGREED) as report:
        report(50)
    assert chat.texts == []
