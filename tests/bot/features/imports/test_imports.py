"""Importing talks from other assistants: asked first, stored once, dated, removed as a whole."""

import json
import re
import threading
from collections.abc import Callable
from dataclasses import astuple, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

import orjson
import pytest

from bot.features.documents.feature import feature as documents
from bot.features.documents.text_rag import TextRag, TextRagOptions
from bot.features.imports.feature import _examples
from bot.features.imports.feature import feature as imports
from bot.features.imports.selection import Selection, _sections, read_list
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage, SentFile, from_bytes
from memory import documents as stored
from memory.behaviors.context import CallContext, Person
from memory.documents import Chunk, Library, Section
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.message import Message
from memory.scopes.sources import Trust
from tests.bot.features.files import ANN, Filing
from tests.bot.parsing.exports import BEGAN, chatgpt, claude, zipped
from tests.memory.turns import HERE, clear
from tests.stored import everything_stored
from tests.work import QUADRATIC, ratio

Parts = tuple[Part, ...]
LISBON = ("Trip to Lisbon", "Where do I stay in Lisbon?", "In the Pension Aurora.")
BREAD = ("Bread", "How long does my rye bread bake?", "Fifty minutes at 240 degrees.")
SAILING = ("Sailing", "What is my boat called?", "Your boat is called Zephyr.")


class Importer(Filing):
    """A person who sends exports and presses buttons, without a bot around."""

    def __init__(self, memory: Memory, library: Library) -> None:
        super().__init__(memory, [imports, documents])
        self.memory, self.library = memory, library
        self._updates = count(2)
        [command] = self.features[0].commands
        self._buttons = command.buttons

    async def send(self, content: object, name: str = "conversations.json") -> Parts:
        self.files.content = content if isinstance(content, bytes) else orjson.dumps(content)
        return await self.take(self.sent(name))

    async def take(self, sent: IncomingMessage) -> Parts:
        parts = await super().take(sent)
        for part in parts:
            if part.question:  # its turn stores it with the reply
                await self.memory.questions.ask(HERE, *astuple(part.question))
        return parts

    async def press(self, asked: Parts, button: int = 0) -> list[IncomingMessage]:
        """Press a button; return the message that now waits for its turn, if any."""
        verb, _, nonce = asked[-1].buttons[0][button].callback_data.partition(":")
        pressed = ButtonPress(next(self._updates), "c1", 7, 0, False, 12, ANN, verb)  # noqa: FBT003
        assert await self._buttons[verb](pressed, HERE, nonce)
        keys = self.memory.store.keys.scope(HERE)
        waiting = await self.memory.client.call("ZRANGE", keys.mailbox, -1, -1)
        return [from_bytes(each.split(b"|", 3)[3]) for each in waiting]

    async def bring(self, content: object) -> str:
        """Send an export, agree, and let its turn store it."""
        [agreed] = await self.press(await self.send(content))
        return (await self.take(agreed))[0].text

    async def texts(self) -> list[str]:
        here = await self.memory.scopes.read(HERE)
        return [chunk.text for chunk in here.of_kind(Chunk)]

    async def found(self, question: str) -> str:
        """Return what the model sees of documents for a question."""
        rag = TextRag(self.memory.scopes, self.memory.tokens, TextRagOptions())
        asked = Message(0, 0, "user", question, 0, 7, "Ann")
        return await rag.on_model_invoke(CallContext(HERE, Person(7, "Ann"), 1.8e9), [asked])


@pytest.fixture
def importer(memory: Memory, library: Library) -> Importer:
    return Importer(memory, library)


@pytest.mark.parametrize(
    ("content", "source"),
    [
        (chatgpt(LISBON), "ChatGPT"),
        (zipped(chatgpt(LISBON)), "ChatGPT"),
        (zipped(chatgpt(LISBON), "export/conversations-000.json"), "ChatGPT"),
        (claude(*LISBON), "Claude"),
        (zipped(claude(*LISBON)), "Claude"),
    ],
    ids=("json", "zip", "numbered", "claude", "claude-zip"),
)
async def test_an_export_is_recognised_by_its_content_and_asked_about(
    importer: Importer, content: object, source: str
) -> None:
    asked = await importer.send(content, "whatever.txt")
    assert asked[0].text.startswith(f"Talks from {source}\n")
    assert "Conversations: 1, messages: 2, facts: 0." in asked[0].text
    assert "All on 12 March 2024." in asked[0].text
    assert await importer.texts() == []
    [agreed] = await importer.press(asked)
    assert f"I know your talks from {source} now" in (await importer.take(agreed))[0].text
    assert await importer.texts() == [f"{LISBON[1]}\n{source}: {LISBON[2]}"]
    assert importer.learned == [HERE]


async def test_a_file_with_the_type_or_beginning_of_an_export_is_none(importer: Importer) -> None:
    file = SentFile("f1", "NOTES.MARKDOWN", "application/zip", 18)
    await importer.take(replace(importer.sent(""), is_group=True, file=file))
    texts = ["[Home](https://a.b) is mine.", "{draft} It is mine."]
    for number, text in enumerate(texts):
        await importer.send(text.encode(), f"notes{number}.md")
    assert await importer.texts() == ["The whale is blue.", *texts]


async def test_an_imported_talk_is_found_with_source_and_date_untrusted(importer: Importer) -> None:
    await importer.bring(chatgpt(LISBON, BREAD, SAILING))
    found = await importer.found("What is the name of my boat?")
    assert re.search(
        r"^\[ChatGPT, imported, 2024-03-14, Sailing\] What is my boat called\?$",
        found,
        re.MULTILINE,
    )
    assert "Zephyr" in await importer.found("What did I ask on 14 March 2024?")
    here = await importer.memory.scopes.read(HERE)
    assert {chunk.trust for chunk in here.of_kind(Chunk)} == {Trust.UNTRUSTED}
    assert here.of_kind(Chunk)[0].happened_at == BEGAN
    # Unlike a file that was just sent, it is not shown for a question that it does not answer.
    assert await importer.found("Hello") == ""


@pytest.mark.parametrize("name", ["memories.json", "memories/account.json"])
async def test_what_claude_remembers_becomes_facts(importer: Importer, name: str) -> None:
    told = "**Work context**\n\nAnn builds boats.\n\n## Life\n- Ann lives in Porto."
    kept = {"conversations_memory": told, "project_memories": {"1": "The boat is blue.", "2": 7}}
    content = kept if "/" in name else [kept]
    asked = await importer.send(zipped(content, name))
    assert asked[0].text.startswith("Talks from Claude\n")
    assert "Conversations: 0, messages: 0, facts: 3." in asked[0].text
    await importer.bring(zipped(content, name))
    facts = ["Ann builds boats.", "Ann lives in Porto.", "The boat is blue."]
    assert sorted(await importer.texts()) == facts


async def test_our_own_export_can_be_read_back(importer: Importer) -> None:
    def message(role: str, text: str, day: int) -> dict[str, object]:
        return {"role": role, "text": text, "sent_at": f"2025-01-{day:02}T10:00:00+00:00"}

    talk = [message("user", "I like tea.", 1), message("assistant", "Noted.", 1)]
    fact = {"text": "Ann likes tea.", "said_at": "2025-01-01T10:00:00+00:00", "ended_at": None}
    ended = {**fact, "text": "Ann likes milk.", "ended_at": "2025-01-01T11:00:00+00:00"}
    messages = [*talk, message("user", "And cake.", 3)]
    made = {"exported_at": "2025-01-05T10:00:00+00:00"}
    export = made | {"messages": messages, "facts": [fact, ended]}
    asked = await importer.send(export)
    assert "Conversations: 2, messages: 3, facts: 1." in asked[0].text
    await importer.bring(export)
    read = ["And cake.", "Ann likes tea.", "I like tea.\nRicordo: Noted."]
    assert sorted(await importer.texts()) == read


async def test_a_pasted_list_is_stored_once_as_a_memory_for_each_line(importer: Importer) -> None:
    def pasted(text: str, at: int = 1_790_000_000) -> IncomingMessage:
        return replace(
            importer.sent(""),
            file=SentFile("", "/import", "", 9, pasted=text, read_as="import"),
            sent_at=at,
        )

    asked = await importer.take(pasted("- I am vegan.\n\n2. My cat is Momo.\n* I am vegan."))
    assert asked[0].text.startswith("Lines: 2.")
    assert await importer.texts() == []
    [agreed] = await importer.press(asked)
    assert "I know your list now" in (await importer.take(agreed))[0].text
    assert sorted(await importer.texts()) == ["I am vegan.", "My cat is Momo."]
    assert "Your list, imported" in await importer.found("What is my cat called?")
    again = await importer.take(pasted("My cat is Momo.", at=1_790_999_999))
    assert "already in my memory" in again[0].text
    assert importer.files.requested == []
    in_group = replace(pasted("I am vegan."), is_group=True)
    assert "in our private chat" in (await importer.take(in_group))[0].text


async def test_a_list_is_read_beside_the_loop(
    importer: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def noted(pasted: str, at: float) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return read_list(pasted, at)

    monkeypatch.setattr("bot.features.imports.feature.read_list", noted)
    file = SentFile("", "/import", "", 9, pasted="- I am vegan.", read_as="import")
    await importer.take(replace(importer.sent(""), file=file))
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


LIST = b"""# What you know of me
- [2025-03-01] - Lives in Graz.
2. 2024-12-24: Has a cat called Momo.
* Sails.
- 2099-01-01 - Wants to see the comet.
- 0001-01-01: is no date either.
- 2025-13-01 is no date.
"""


async def test_a_list_in_a_text_file_is_imported_with_its_own_dates_or_read_as_a_document(
    importer: Importer,
) -> None:
    begun = datetime.now(UTC).date()
    asked = await importer.send(LIST, "memories.md")
    assert asked[0].text.startswith("Lines: 6.")
    [row] = asked[-1].buttons
    assert [each.text for each in row] == ["Import", "Read as a document", "Don't import"]
    assert await importer.texts() == []
    [agreed] = await importer.press(asked)
    done = [(await importer.take(agreed))[0].text for _ in range(2)]  # again after a crash
    assert "I know your list now" in done[0]
    shown = "Sails. · Wants to see the comet. · 0001-01-01: is no date either."
    assert done[0].splitlines()[-1] == f"For example: {shown}"
    assert "I know your list now" in done[1]
    here = await importer.memory.scopes.read(HERE)
    chunks = here.of_kind(Chunk)
    at = {each.text: datetime.fromtimestamp(each.said_at, UTC).date() for each in chunks}
    today = (begun, datetime.now(UTC).date())
    undated = {*shown.split(" · "), "2025-13-01 is no date."}
    assert {text for text, day in at.items() if day in today} == undated
    dated = {text: str(day) for text, day in at.items() if text not in undated}
    assert dated == {"Lives in Graz.": "2025-03-01", "Has a cat called Momo.": "2024-12-24"}
    assert "already in my memory" in (await importer.send(LIST, "again.txt"))[0].text

    other = await importer.send(b"- Salt\n- Bread\n", "shopping.txt")
    [as_document] = await importer.press(other, button=1)
    assert "I've read shopping.txt" in (await importer.take(as_document))[0].text
    titles = [each.title for each in await importer.library.listed(HERE)]
    assert sorted(titles) == ["Your list, imported", "shopping.txt"]


async def test_lines_without_bullets_are_a_list_only_behind_the_command(importer: Importer) -> None:
    plain = b"Lives in Graz.\nSails."
    importer.files.content = plain
    sent = importer.sent("me.txt", "text/plain")
    assert sent.file
    by_command = replace(sent, file=replace(sent.file, read_as="import"))
    assert "Lines: 2." in (await importer.take(by_command))[0].text
    assert "I've read me.txt" in (await importer.send(plain, "me.txt"))[0].text
    assert "I've read ci.txt" in (await importer.send(b"- name: x\n  run: y", "ci.txt"))[0].text
    export = orjson.dumps(chatgpt(LISBON), option=orjson.OPT_INDENT_2)
    assert "Talks from ChatGPT" in (await importer.send(export, "a.txt"))[0].text


async def test_a_talk_is_stored_once_however_often_it_is_brought(importer: Importer) -> None:
    await importer.bring(chatgpt(LISBON, BREAD))
    assert "already in my memory" in (await importer.send(chatgpt(LISBON, BREAD)))[0].text
    asked = await importer.send(zipped(chatgpt(LISBON, BREAD, SAILING)))
    assert "Conversations: 1, messages: 2" in asked[0].text
    assert "not stored twice: 2." in asked[0].text
    [agreed] = await importer.press(asked)
    for _ in range(2):  # the turn is repeated after a crash
        assert "I know your talks from" in (await importer.take(agreed))[0].text
    assert len(await importer.texts()) == 3
    titles = [each.title for each in await importer.library.listed(HERE)]
    assert [title.partition(",")[0] for title in titles] == ["ChatGPT", "ChatGPT"]
    assert len({*titles}) == 2


async def test_what_an_export_holds_twice_is_stored_once(importer: Importer) -> None:
    fact = {"text": "Ann likes tea.", "said_at": "2025-01-01T10:00:00+00:00", "ended_at": None}
    later = fact | {"said_at": "2025-02-01T10:00:00+00:00"}
    own = {"exported_at": "2025-03-01T10:00:00+00:00", "messages": [], "facts": [fact, later]}
    await importer.bring(own)
    twice = chatgpt(LISBON) + chatgpt(LISBON, BREAD)
    # The talk about Lisbon is twice in the file, but not yet in the memory.
    assert "already in my memory" not in (await importer.send(twice))[0].text.lower()
    await importer.bring(twice)
    assert len(await importer.texts()) == 3


async def test_nothing_is_stored_after_no_or_if_a_clear_comes_between(importer: Importer) -> None:
    asked = await importer.send(chatgpt(LISBON))
    assert await importer.press(asked, button=1) == []
    asked = await importer.send(chatgpt(LISBON))
    with pytest.MonkeyPatch.context() as full:
        full.setattr("memory.queue.mailbox.MAX_UPDATES", 0)
        with pytest.raises(NotConfirmed):
            await importer.press(asked)
    [agreed] = await importer.press(await importer.send(chatgpt(LISBON)))
    importer.files.meanwhile = partial(clear, importer.memory, 5)
    assert "no longer valid" in (await importer.take(agreed))[0].text
    importer.files.meanwhile = None
    forged = replace(agreed, file=SentFile("f1", "a.json", "", 1, "x"))
    assert "no longer valid" in (await importer.take(forged))[0].text
    assert await importer.texts() == []


async def test_a_removed_import_leaves_no_byte(importer: Importer, valkey: str) -> None:
    await importer.bring(chatgpt(LISBON, BREAD))
    await importer.memory.learn(HERE)
    assert b"Aurora" in await everything_stored(valkey)
    (document,) = await importer.library.listed(HERE)
    await importer.library.remove(HERE, document.key)
    stored = await everything_stored(valkey)
    for word in (b"Aurora", b"Lisbon", b"rye bread", b"imported"):
        assert word not in stored


async def test_the_preview_says_what_there_is_no_room_for(
    importer: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "MAX_PASSAGES", 2)
    asked = await importer.send(chatgpt(LISBON, BREAD, SAILING))
    assert "left out: 1." in asked[0].text
    await importer.bring(chatgpt(LISBON, BREAD, SAILING))
    asked_then = [text.partition("\n")[0] for text in await importer.texts()]
    assert asked_then == [BREAD[1], SAILING[1]]
    assert "no room" in (await importer.send(chatgpt(LISBON)))[0].text


async def test_in_a_group_an_export_is_not_even_fetched(importer: Importer) -> None:
    sent = replace(importer.sent("chatgpt.zip"), is_group=True)
    assert "in our private chat" in (await importer.take(sent))[0].text
    assert importer.files.requested == []


_MB = 2**20
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a bomb": (partial(zipped, b"[" + b" " * (80 * _MB)), "too many pages"),
    "10,000 members": (partial(zipped, chatgpt(LISBON), members=10_000), "too many pages"),
    "no talks in the zip": (partial(zipped, b"[]", "photos.json"), "can't open"),
    "deep lists": (lambda: b"[" * 500_000, "damaged"),
    "deep objects": (lambda: b'[{"mapping":' + b'{"a":' * 300_000, "damaged"),
    "half a zip": (lambda: zipped(chatgpt(LISBON))[:150], "damaged"),
    "not UTF-8": (lambda: b'[{"mapping": "\xff"}]', "damaged"),
    "no messages": (lambda: b'[{"mapping": {}}]', "no messages"),
    "a huge number": (lambda: b'[{"mapping": {}, "create_time": ' + b"9" * 900_000, "damaged"),
    "nodes in a circle": (
        lambda: b'[{"mapping": {"a": {"parent": "a"}}, "current_node": "a"}]',
        "no messages",
    ),
    "a lie about its size": (
        lambda: zipped(b"[" + b" " * _MB).replace(
            (_MB + 1).to_bytes(4, "little"), (9).to_bytes(4, "little")
        ),
        "damaged",
    ),
    "an encrypted zip": (
        lambda: zipped(chatgpt(LISBON), members=0).replace(
            b"PK\x01\x02\x14\x03\x14\0\0", b"PK\x01\x02\x14\x03\x14\0\1"
        ),
        "password",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_file_is_refused_with_a_sentence(importer: Importer, name: str) -> None:
    make, said = HOSTILE[name]
    answer = await importer.send(make())
    assert said in answer[0].text
    assert not answer[0].buttons
    assert await importer.texts() == []


async def test_half_an_emoji_or_nonsense_in_a_talk_spoils_nothing(importer: Importer) -> None:
    odd = chatgpt(("\ud83d Odd", "A \ud83d half?", "Yes\0."))[0]
    odd["create_time"] = "never"
    nonsense = [odd, {"mapping": {"a": 1, "b": {"message": {"content": {"parts": 3}}}}}, 5, None]
    await importer.bring(json.dumps(nonsense).encode())
    assert await importer.texts() == ["A ? half?\nChatGPT: Yes."]


def test_examples_show_only_what_one_sees() -> None:
    unseen = ("\u200b\u202e", "\u200b" * 200, "Tea\u202e")
    assert _examples(Selection("x", [Section(text, "", 1.0) for text in unseen])) == ["Tea"]


def test_many_answers_in_a_row_take_no_longer_than_their_length() -> None:
    def together(count: int) -> Callable[[], object]:
        talk = {"title": "", "messages": [["assistant", "x" * 600, 1.0]] * count}
        return lambda: _sections(talk, "Ricordo")

    assert ratio(together(4_800), together(300), QUADRATIC) < QUADRATIC
