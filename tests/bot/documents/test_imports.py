"""Importing talks from other assistants: asked first, stored once, dated, removed as a whole."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count

import orjson
import pytest

from bot.commands.bot_command import Answer
from bot.commands.bring_along import ImportCommand
from bot.commands.sentences import Sentences
from bot.documents import imports
from bot.documents.formats import Formats, Limits
from bot.documents.imports import Imports
from bot.documents.upload import FileReader, Upload
from bot.language.catalogue import Catalogue
from bot.telegram.packing import from_bytes
from bot.telegram.updates import ButtonPress, IncomingMessage, Sender, SentFile
from memory.behaviors.call_context import CallContext, Person
from memory.behaviors.text_rag import TextRag, TextRagOptions
from memory.documents.library import Library
from memory.memory import Memory
from memory.message import Message
from memory.scopes.sources import Trust
from memory.store.keys import Scope
from tests.bot.documents.exports import BEGAN, chatgpt, claude, zipped
from tests.bot.documents.test_upload import Files
from tests.stored import everything_stored

HERE = Scope.of_chat(7)
ANN = Sender(7, "Ann")
LISBON = ("Trip to Lisbon", "Where do I stay in Lisbon?", "In the Pension Aurora.")
BREAD = ("Bread", "How long does my rye bread bake?", "Fifty minutes at 240 degrees.")
SAILING = ("Sailing", "What is my boat called?", "Your boat is called Zephyr.")


class Importer:
    """A person who sends exports and presses buttons, without a bot around."""

    def __init__(self, memory: Memory, library: Library) -> None:
        self.memory, self.library, self.files = memory, library, Files()
        self.sentences = Sentences(Catalogue())
        reader = FileReader(self.files, Formats(Limits()), memory.tokens, 2**20)
        stored = Imports(library, memory.confirmations, memory.tokens, self.sentences)
        self.learned: list[Scope] = []
        self._updates = count(2)
        learn = self.learned.append
        self._upload = Upload(reader, stored, memory.scopes, self.sentences, learn)
        self._command = ImportCommand(memory.confirmations, memory.mailbox, self.sentences)

    def sent(self, name: str, mime_type: str = "") -> IncomingMessage:
        file = SentFile("f1", name, mime_type, 100)
        return IncomingMessage(1, 7, 0, False, 11, 1_790_000_000, ANN, "document", "", file=file)  # noqa: FBT003

    async def send(self, content: object, name: str = "conversations.json") -> Answer:
        self.files.content = content if isinstance(content, bytes) else orjson.dumps(content)
        return await self.take(self.sent(name))

    async def take(self, sent: IncomingMessage) -> Answer:
        answer = await self._upload.receive(sent, HERE)
        assert isinstance(answer, Answer)
        return answer

    async def press(self, asked: Answer, button: int = 0) -> IncomingMessage | None:
        """Press a button; return the message that now waits for its turn, if any."""
        verb, _, nonce = asked.parts[-1].buttons[0][button].callback_data.partition(":")
        pressed = ButtonPress(next(self._updates), "c1", 7, 0, False, 12, ANN, verb)  # noqa: FBT003
        command = self._command
        press = {
            "import": command.agree,
            "read_document": command.read_document,
            "dont_import": command.refuse,
        }[verb]
        assert await press(pressed, HERE, nonce)
        keys = self.memory.store.keys.scope(HERE)
        waiting = await self.memory.client.call("ZRANGE", keys.mailbox, 0, -1)
        return from_bytes(waiting[-1].split(b"|", 3)[3]) if waiting else None

    async def bring(self, content: object) -> str:
        """Send an export, agree, and let its turn store it."""
        agreed = await self.press(await self.send(content))
        assert agreed
        return (await self.take(agreed)).parts[0].text

    async def texts(self) -> list[str]:
        here = await self.memory.scopes.read(HERE)
        return [chunk.text for chunk in here.chunks]

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

    assert asked.parts[0].text.startswith(f"Talks from {source}\n")
    assert "Conversations: 1, messages: 2, facts: 0." in asked.parts[0].text
    assert "12 March 2024" in asked.parts[0].text
    assert await importer.texts() == []
    agreed = await importer.press(asked)
    assert agreed
    assert (
        f"your talks from {source} are in my memory" in (await importer.take(agreed)).parts[0].text
    )
    assert await importer.texts() == [f"{LISBON[1]}\n{source}: {LISBON[2]}"]
    assert importer.learned == [HERE]


async def test_an_imported_talk_is_found_with_its_source_and_date_and_is_untrusted(
    importer: Importer,
) -> None:
    await importer.bring(chatgpt(LISBON, BREAD, SAILING))

    found = await importer.found("What is the name of my boat?")
    assert re.search(
        r"^\[ChatGPT, imported \d+ \w+ \d{4}, 2024-03-14, Sailing\] What is my boat called\?$",
        found,
        re.MULTILINE,
    )
    assert "Zephyr" in await importer.found("What did I ask on 14 March 2024?")
    here = await importer.memory.scopes.read(HERE)
    assert {chunk.trust for chunk in here.chunks} == {Trust.UNTRUSTED}
    assert here.chunks[0].happened_at == BEGAN
    # Unlike a file that was just sent, it is not shown for a question that it does not answer.
    assert await importer.found("Hello") == ""


@pytest.mark.parametrize("name", ["memories.json", "memories/account.json"])
async def test_what_claude_remembers_becomes_facts(importer: Importer, name: str) -> None:
    told = "**Work context**\n\nAnn builds boats.\n\n## Life\n- Ann lives in Porto."
    kept = {"conversations_memory": told, "project_memories": {"1": "The boat is blue.", "2": 7}}

    content = kept if "/" in name else [kept]
    asked = await importer.send(zipped(content, name))

    assert asked.parts[0].text.startswith("Talks from Claude\n")
    assert "Conversations: 0, messages: 0, facts: 3." in asked.parts[0].text
    await importer.bring(zipped(content, name))
    assert sorted(await importer.texts()) == [
        "Ann builds boats.",
        "Ann lives in Porto.",
        "The boat is blue.",
    ]


async def test_our_own_export_can_be_read_back(importer: Importer) -> None:
    def message(role: str, text: str, day: int) -> dict[str, object]:
        return {"role": role, "text": text, "sent_at": f"2025-01-{day:02}T10:00:00+00:00"}

    talk = [message("user", "I like tea.", 1), message("assistant", "Noted.", 1)]
    fact = {"text": "Ann likes tea.", "said_at": "2025-01-01T10:00:00+00:00", "ended_at": None}
    ended = {**fact, "text": "Ann likes milk.", "ended_at": "2025-01-01T11:00:00+00:00"}
    export = {
        "exported_at": "2025-01-05T10:00:00+00:00",
        "messages": [*talk, message("user", "And cake.", 3)],
        "facts": [fact, ended],
    }

    asked = await importer.send(export)

    assert "Conversations: 2, messages: 3, facts: 1." in asked.parts[0].text
    await importer.bring(export)
    assert sorted(await importer.texts()) == [
        "And cake.",
        "Ann likes tea.",
        "I like tea.\nRicordo: Noted.",
    ]


async def test_a_pasted_list_becomes_a_memory_for_each_line_and_is_stored_once(
    importer: Importer,
) -> None:
    def pasted(text: str, at: int = 1_790_000_000) -> IncomingMessage:
        return replace(
            importer.sent(""), file=SentFile("", "/import", "", 9, pasted=text), sent_at=at
        )

    asked = await importer.take(pasted("- I am vegan.\n\n2. My cat is Momo.\n* I am vegan."))
    assert asked.parts[0].text.startswith("Your list\n\nLines: 2.")
    assert await importer.texts() == []
    agreed = await importer.press(asked)
    assert agreed
    assert "your list is in my memory" in (await importer.take(agreed)).parts[0].text
    assert sorted(await importer.texts()) == ["I am vegan.", "My cat is Momo."]
    assert "Your list, imported" in await importer.found("What is my cat called?")
    again = await importer.take(pasted("My cat is Momo.", at=1_790_999_999))
    assert "already in my memory" in again.parts[0].text
    assert importer.files.requested == []
    in_group = replace(pasted("I am vegan."), is_group=True)
    assert "in our private chat" in (await importer.take(in_group)).parts[0].text


LIST = b"""# What you know of me
- [2025-03-01] - Lives in Graz.
2. 2024-12-24: Has a cat called Momo.
* Sails.
- 2099-01-01 - Wants to see the comet.
- 2025-13-01 is no date.
"""


async def test_a_list_in_a_text_file_is_imported_with_its_own_dates_or_read_as_a_document(
    importer: Importer,
) -> None:
    asked = await importer.send(LIST, "memories.md")
    assert asked.parts[0].text.startswith("Your list\n\nLines: 5.")
    [row] = asked.parts[-1].buttons
    assert [each.text for each in row] == ["Import", "Read as a document", "Don't import"]
    assert await importer.texts() == []
    agreed = await importer.press(asked)
    assert agreed
    for _ in range(2):  # the turn is repeated after a crash
        assert "your list is in my memory" in (await importer.take(agreed)).parts[0].text
    here = await importer.memory.scopes.read(HERE)
    at = {chunk.text: datetime.fromtimestamp(chunk.said_at, UTC).date() for chunk in here.chunks}
    today = datetime.now(UTC).date()
    dated = {text: "today" if day == today else str(day) for text, day in at.items()}
    assert dated == {
        "Lives in Graz.": "2025-03-01",
        "Has a cat called Momo.": "2024-12-24",
        "Sails.": "today",
        "Wants to see the comet.": "today",
        "2025-13-01 is no date.": "today",
    }
    assert "already in my memory" in (await importer.send(LIST, "again.txt")).parts[0].text

    other = await importer.send(b"- Salt\n- Bread\n", "shopping.txt")
    as_document = await importer.press(other, button=1)
    assert as_document
    assert "I've read shopping.txt" in (await importer.take(as_document)).parts[0].text
    titles = [each.title.partition(",")[0] for each in await importer.library.listed(HERE)]
    assert sorted(titles) == ["Your list", "shopping.txt"]


async def test_lines_without_bullets_are_a_list_only_behind_the_command(
    importer: Importer,
) -> None:
    plain = b"Lives in Graz.\nSails."
    importer.files.content = plain
    sent = importer.sent("me.txt", "text/plain")
    assert sent.file
    by_command = replace(sent, file=replace(sent.file, read_as="list"))
    assert "Lines: 2." in (await importer.take(by_command)).parts[0].text
    assert "I've read me.txt" in (await importer.send(plain, "me.txt")).parts[0].text
    code = b"- name: x\n  run: y"
    assert "I've read ci.txt" in (await importer.send(code, "ci.txt")).parts[0].text
    export = orjson.dumps(chatgpt(LISBON), option=orjson.OPT_INDENT_2)
    assert "Talks from ChatGPT" in (await importer.send(export, "a.txt")).parts[0].text


async def test_a_talk_is_stored_once_however_often_it_is_brought(importer: Importer) -> None:
    await importer.bring(chatgpt(LISBON, BREAD))
    assert "already in my memory" in (await importer.send(chatgpt(LISBON, BREAD))).parts[0].text

    asked = await importer.send(zipped(chatgpt(LISBON, BREAD, SAILING)))
    assert "Conversations: 1, messages: 2" in asked.parts[0].text
    assert "not stored twice: 2." in asked.parts[0].text
    agreed = await importer.press(asked)
    assert agreed
    for _ in range(2):  # the turn is repeated after a crash
        assert "are in my memory now" in (await importer.take(agreed)).parts[0].text
    assert len(await importer.texts()) == 3
    titles = [each.title for each in await importer.library.listed(HERE)]
    assert [title.partition(",")[0] for title in titles] == ["ChatGPT", "ChatGPT"]
    assert len({*titles}) == 2


async def test_nothing_is_stored_after_no_or_if_a_clear_comes_between(importer: Importer) -> None:
    asked = await importer.send(chatgpt(LISBON))
    assert await importer.press(asked, button=1) is None
    agreed = await importer.press(await importer.send(chatgpt(LISBON)))
    assert agreed

    async def clear() -> None:
        nonce = await importer.memory.confirmations.ask(HERE, "clear", 7)
        await importer.memory.forgetting.clear(HERE, nonce, 7, 5, as_admin=False)

    importer.files.meanwhile = clear
    assert "no longer valid" in (await importer.take(agreed)).parts[0].text
    importer.files.meanwhile = None
    forged = replace(agreed, file=SentFile("f1", "a.json", "", 1, "x"))
    assert "no longer valid" in (await importer.take(forged)).parts[0].text
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
    monkeypatch.setattr(imports, "MAX_PASSAGES_HERE", 2)

    asked = await importer.send(chatgpt(LISBON, BREAD, SAILING))

    assert "left out: 1." in asked.parts[0].text
    await importer.bring(chatgpt(LISBON, BREAD, SAILING))
    assert [text.partition("?")[0] for text in await importer.texts()] == [
        "How long does my rye bread bake",
        "What is my boat called",
    ]
    assert "no room" in (await importer.send(chatgpt(LISBON))).parts[0].text


async def test_in_a_group_an_export_is_not_even_fetched(importer: Importer) -> None:
    sent = replace(importer.sent("chatgpt.zip"), is_group=True)

    assert "in our private chat" in (await importer.take(sent)).parts[0].text
    assert importer.files.requested == []


_MB = 2**20
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a bomb": (partial(zipped, b"[" + b" " * (80 * _MB)), "too many pages"),
    "10,000 members": (partial(zipped, chatgpt(LISBON), members=10_000), "too many pages"),
    "no talks in the zip": (partial(zipped, b"[]", "photos.json"), "can't open"),
    "deep lists": (lambda: b"[" * 500_000, "damaged"),
    "deep objects": (lambda: b'[{"mapping":' + b'{"a":' * 300_000, "damaged"),
    "half a zip": (lambda: zipped(chatgpt(LISBON))[:150], "damaged"),
    "other JSON": (lambda: b'{"a": [1, 2]}', "can't open"),
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

    assert said in answer.parts[0].text
    assert not answer.parts[0].buttons
    assert await importer.texts() == []


async def test_half_an_emoji_or_nonsense_in_a_talk_spoils_nothing(importer: Importer) -> None:
    odd = chatgpt(("\ud83d Odd", "A \ud83d half?", "Yes\0."))[0]
    odd["create_time"] = "never"
    nonsense = [odd, {"mapping": {"a": 1, "b": {"message": {"content": {"parts": 3}}}}}, 5, None]

    await importer.bring(json.dumps(nonsense).encode())

    assert await importer.texts() == ["A ? half?\nChatGPT: Yes."]
