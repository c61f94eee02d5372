"""What documents add to the bot."""

from dataclasses import replace
from functools import partial

from bot.commands.bot_command import BotCommand
from bot.commands.paged_list import PagedList
from bot.feature import Feature, Services
from bot.features.documents.commands import DocumentList
from bot.features.documents.scans import ScanReader, page_text
from bot.features.documents.settings import DocumentSettings
from bot.features.documents.upload import UploadStep
from memory.behaviors.applies_to import reaches_of
from memory.behaviors.text_rag import TextRag, TextRagOptions
from memory.documents.library import Library


def feature(services: Services) -> Feature:
    """Return the feature."""
    settings, memory, sentences = services.settings, services.memory, services.sentences
    library = Library(memory.store, memory.scopes)
    listed = PagedList(DocumentList(library, sentences, services.access), sentences)
    scans = None
    if settings.shows_pictures:
        scans = ScanReader(partial(page_text, services.models.chats[0]))
        memory.on_erased.append(scans.forget)
    upload = UploadStep(services.files, memory, scans, sentences, services.learn)
    return Feature(
        name="documents",
        commands=[BotCommand("documents", listed.show, buttons={DocumentList.verb: listed.press})],
        steps=[upload.answer],
        behaviors=[TextRag(memory.scopes, memory.tokens, _options(services))],
        ways=["way_file"],
    )


def _options(services: Services) -> TextRagOptions:
    """Return what the operator chose; what no feature replaces stays ours."""
    settings, replaced = services.own(DocumentSettings), services.replaced
    options = TextRagOptions(
        namespaces=reaches_of(settings.document_namespaces),
        by_tool=settings.documents == "tool",
    )
    return replace(
        options,
        prompt=replaced.document_prompt or options.prompt,
        tool_prompt=replaced.document_tool_prompt or options.tool_prompt,
        passage=replaced.document_passage or options.passage,
    )
