"""Uploading a file: erasures win, capacity is limited, and a caption is answered afterwards."""

from collections.abc import Awaitable, Callable

import pytest

from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.documents import upload
from bot.documents.formats import Formats, Limits
from bot.documents.imports import Imports
from bot.documents.upload import FileReader, Upload
from bot.language.catalogue import Catalogue
from bot.telegram.errors import RefusalReason, Refused
from bot.telegram.updates import IncomingMessage, Sender, SentFile
from memory.documents.library import Library
from memory.memory import Memory
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from tests.quiet_chat import QuietChat

HERE = Scope.of_chat(7)


class Files(QuietChat):
    """Downloads `content`, or is refused; calls `meanwhile` first, as if the download took long."""

    def __init__(self) -> None:
        super().__init__()
        self.content = b"The whale is blue."
        self.refusal: RefusalReason | None = None
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        self.requested: list[tuple[str, int]] = []

    async def download(self, file_id: str, max_bytes: int) -> bytes:
        self.requested.append((file_id, max_bytes))
        if self.meanwhile:
            await self.meanwhile()
        if self.refusal:
            raise Refused(self.refusal)
        return self.content


class Uploads:
    """An upload with its chat, and the conversations that it asked to learn from."""

    def __init__(self, memory: Memory, library: Library) -> None:
        self.files = Files()
        self.learned: list[Scope] = []
        reader = FileReader(self.files, Formats(Limits()), memory.tokens, 1_000)
        sentences = Sentences(Catalogue())
        brought = Imports(library, memory.confirmations, memory.tokens, sentences)
        self._upload = Upload(reader, brought, memory.scopes, sentences, self.learned.append)

    async def take(self, name: str = "sea.txt", text: str = "", nbytes: int = 18) -> str | None:
        """Upload a file and return the answer, `None` if there is none."""
        file = SentFile("f1", name, "", nbytes)
        ann = Sender(7, "Ann")
        sent = IncomingMessage(1, 7, 0, False, 11, 1_000, ann, "document", text, file=file)  # noqa: FBT003
        answer = await self._upload.receive(sent, HERE)
        return answer.parts[0].text if isinstance(answer, Answer) else None


@pytest.fixture
def uploads(memory: Memory, library: Library) -> Uploads:
    return Uploads(memory, library)


async def titles(library: Library) -> list[str]:
    return [each.title for each in await library.listed(HERE)]


async def test_a_file_is_fetched_stored_confirmed_and_learned_from(
    uploads: Uploads, library: Library
) -> None:
    said = await uploads.take()

    assert said
    assert said.startswith("I've read sea.txt (passages: 1).")
    assert uploads.files.requested == [("f1", 1_000)]
    assert await titles(library) == ["sea.txt"]
    assert uploads.learned == [HERE]


async def test_a_caption_is_left_for_the_model_to_answer(
    uploads: Uploads, library: Library
) -> None:
    assert await uploads.take(text="What is it?") is None
    assert await titles(library) == ["sea.txt"]


async def test_a_file_that_is_too_big_or_of_another_type_is_not_fetched(
    uploads: Uploads,
) -> None:
    too_big, other = await uploads.take(nbytes=1_001), await uploads.take("a.png")

    assert (too_big or "").startswith("sea.txt is too big for me.")
    assert (other or "").startswith("I can't open a.png.")
    assert uploads.files.requested == []


@pytest.mark.parametrize(
    ("refusal", "said"), [("too_big", "is too big"), ("other", "I couldn't read")]
)
async def test_a_file_that_telegram_does_not_hand_out_is_refused(
    uploads: Uploads, refusal: RefusalReason, said: str
) -> None:
    uploads.files.refusal = refusal

    assert said in (await uploads.take() or "")
    assert uploads.learned == []


async def test_a_clear_while_a_file_is_fetched_wins(
    uploads: Uploads, library: Library, memory: Memory
) -> None:
    async def clear() -> None:
        nonce = await memory.confirmations.ask(HERE, "clear", 7)
        await memory.forgetting.clear(HERE, nonce, 7, 5, as_admin=False)

    uploads.files.meanwhile = clear

    with pytest.raises(LeaseLost):
        await uploads.take()
    assert await titles(library) == []


async def test_a_turn_whose_file_replaced_another_starts_again_and_then_says_so(
    uploads: Uploads,
) -> None:
    await uploads.take()
    uploads.files.content = b"The whale is grey."

    with pytest.raises(LeaseLost):
        await uploads.take()
    assert "I've read sea.txt" in (await uploads.take() or "")


async def test_a_conversation_with_too_many_passages_takes_no_more_files(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "MAX_PASSAGES_HERE", 1)
    await uploads.take()

    assert "There's no room for more.txt" in (await uploads.take("more.txt") or "")
    assert "I've read sea.txt" in (await uploads.take() or "")


async def test_a_file_with_too_many_passages_is_refused(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "MAX_PASSAGES", 1)
    uploads.files.content = b"# One\nA\n# Two\nB"

    assert "too many pages" in (await uploads.take("a.md") or "")
