"""Puts this room together from the settings; used by the composition root alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.commands.buttons import Act
from bot.commands.document_list import VERB, DocumentList
from bot.commands.general import Handler
from bot.commands.sentences import Sentences
from bot.documents.formats import Formats, Limits
from bot.documents.upload import Desk, Upload
from bot.telegram.chat import Chat
from bot.turn.answer import Receive
from config.settings import Settings
from memory.behaviors.text_rag import TextRag, TextRagOptions
from memory.documents.library import Library
from memory.memory import Memory
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class DocumentRoom:
    """What a bot does with files; `receive` is missing where it takes none."""

    receive: Receive | None
    commands: Mapping[str, Handler]
    buttons: Mapping[str, Act]


def document_room(
    settings: Settings,
    memory: Memory,
    telegram: Chat,
    sentences: Sentences,
    learn: Callable[[Scope], None],
) -> DocumentRoom:
    """Return the room; `learn` has a conversation embedded in the background."""
    library = Library(memory.store, memory.scopes)
    desk = Desk(
        formats=Formats(Limits()),
        library=library,
        scopes=memory.scopes,
        tokens=memory.tokens,
        max_bytes=int(settings.max_document_mb * 2**20),
    )
    reception = Upload(desk, telegram, sentences, learn)
    listing = DocumentList(library, sentences, telegram)
    return DocumentRoom(
        receive=None if settings.documents == "off" else reception.receive,
        commands={"documents": listing.show},
        buttons={VERB: listing.remove},
    )


def text_rag(settings: Settings, memory: Memory) -> TextRag:
    """Return the behavior that tells the model what documents say."""
    options = TextRagOptions(
        namespaces=settings.document_namespaces, by_tool=settings.documents == "tool"
    )
    return TextRag(memory.scopes, memory.tokens, options)
