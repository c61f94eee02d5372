"""Uploading a file: erasures win, capacity is limited, and a caption is answered afterwards."""

from collections.abc import Callable
from functools import partial

import pytest

from bot.feature import Feature, Services
from bot.features.documents.feature import UploadStep, feature
from bot.model.model_errors import ModelError
from bot.telegram.errors import RefusalReason
from memory import documents as stored
from memory.documents import Chunk, Library
from memory.memory import Memory
from memory.message import Picture
from memory.store.errors import LeaseLost
from tests.bot.features.documents.test_scans import Eyes, partly_scanned, scan
from tests.bot.features.files import MAX_BYTES, Filing
from tests.memory.documents.test_passages import CountedCharacters
from tests.memory.turns import HERE, clear


class Uploads(Filing):
    """A person who sends documents."""

    async def upload(self, name: str = "sea.txt", text: str = "", nbytes: int = 18) -> str | None:
        """Upload a file and return the answer, `None` if there is none."""
        parts = await self.take(self.sent(name, text, nbytes))
        return parts[0].text if parts else None


@pytest.fixture
def uploads(memory: Memory) -> Uploads:
    return Uploads(memory, [feature])


def reading(eyes: Eyes) -> Callable[[Services], Feature]:
    def feature(services: Services) -> Feature:
        given = services.files, services.memory, eyes.read, services.sentences, services.learn
        return Feature(name="documents", file_steps={"document": UploadStep(*given).answer})

    return feature


async def titles(library: Library) -> list[str]:
    return [each.title for each in await library.listed(HERE)]


async def test_a_file_is_fetched_stored_confirmed_and_learned_from(
    uploads: Uploads, library: Library
) -> None:
    said = await uploads.upload()
    assert said
    assert said.startswith("I've read sea.txt.")
    assert uploads.files.requested == [("f1", MAX_BYTES)]
    assert await titles(library) == ["sea.txt"]
    assert uploads.learned == [HERE]


async def test_a_file_that_is_too_big_or_of_another_type_is_not_fetched(uploads: Uploads) -> None:
    too_big, other = await uploads.upload(nbytes=MAX_BYTES + 1), await uploads.upload("a.png")
    assert (too_big or "").startswith("sea.txt is too big for me. I take files of up to 1 MB;")
    assert (other or "").startswith("I can't open a.png.")
    assert uploads.files.requested == []


async def test_if_no_files_are_read_the_answer_to_a_caption_says_so(memory: Memory) -> None:
    said = await Uploads(memory, []).upload(text="What is in it?")
    assert said == "I could only read your words. What you attached I can't see or hear yet."


@pytest.mark.parametrize(
    ("refusal", "said"), [("too_big", "is too big"), ("other", "I couldn't read")]
)
async def test_a_file_that_telegram_does_not_hand_out_is_refused(
    uploads: Uploads, refusal: RefusalReason, said: str
) -> None:
    uploads.files.refusal = refusal
    assert said in (await uploads.upload() or "")
    assert uploads.learned == []


async def test_a_clear_while_a_file_is_fetched_wins(
    uploads: Uploads, library: Library, memory: Memory
) -> None:
    uploads.files.meanwhile = partial(clear, memory, 5)
    with pytest.raises(LeaseLost):
        await uploads.upload()
    assert await titles(library) == []


async def test_a_turn_whose_file_replaced_one_starts_again_and_says_so(uploads: Uploads) -> None:
    await uploads.upload()
    uploads.files.content = b"The whale is grey."
    with pytest.raises(LeaseLost):
        await uploads.upload()
    assert "I've read sea.txt" in (await uploads.upload() or "")


async def test_a_scan_stored_already_is_not_read_again(memory: Memory, library: Library) -> None:
    """The model would read other words, and each turn that starts again would replace its own."""
    uploads = Uploads(memory, [reading(eyes := Eyes("A quokka.", "A whale.", "A gull."))])
    uploads.files.content = scan(1)
    said = await uploads.upload("a.pdf")
    assert "Of these I read: 1." in (said or "")
    assert await uploads.upload("a.pdf") == said
    assert len(eyes.seen) == 1
    uploads.files.content = scan(2)
    with pytest.raises(LeaseLost):  # it has replaced the first one
        await uploads.upload("a.pdf")
    assert "Of these I read: 1, 2." in (await uploads.upload("a.pdf") or "")
    assert len(eyes.seen) == 3
    assert [each.passages for each in await library.listed(HERE)] == [2]


async def test_pages_that_are_pictures_are_read_beside_those_with_text(memory: Memory) -> None:
    uploads = Uploads(memory, [reading(eyes := Eyes("A whale.", "A gull."))])
    uploads.files.content = partly_scanned("The contract of Ann and Ben. " * 9, "Page two.")
    said = await uploads.upload("a.pdf")
    assert "are pictures. Of these I read: 3, 4." in (said or "")
    assert await uploads.upload("a.pdf") == said
    assert len(eyes.seen) == 2
    chunks = (await memory.scopes.read(HERE)).of_kind(Chunk)
    assert [each.place for each in chunks] == ["page 1", "page 2", "page 3", "page 4"]
    scanned = [f"Scanned with an app\n{each}" for each in ("A whale.", "A gull.")]
    assert [each.text for each in chunks[1:]] == ["Page two.", *scanned]


async def test_a_model_that_fails_costs_a_pdf_with_text_only_its_pictures(memory: Memory) -> None:
    class Blinded(Eyes):
        async def read(self, _: Picture) -> str | None:
            raise ModelError("down")

    uploads = Uploads(memory, [reading(Blinded())])
    uploads.files.content = partly_scanned("The contract of Ann and Ben. " * 9)
    assert "I've read a.pdf" in (await uploads.upload("a.pdf") or "")
    uploads.files.content = scan(1)
    with pytest.raises(ModelError):
        await uploads.upload("a.pdf")


async def test_a_conversation_with_too_many_passages_takes_no_more_files(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "MAX_PASSAGES", 1)
    await uploads.upload()
    assert "There's no room for more.txt" in (await uploads.upload("more.txt") or "")
    assert "I've read sea.txt" in (await uploads.upload() or "")


async def test_too_many_passages_are_refused(
    uploads: Uploads, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.features.documents.feature.MAX_PASSAGES", 1)
    uploads.files.content = b"# One\nA\n# Two\nB" + b"\n# More\nC" * 100
    memory.tokens = tokens = CountedCharacters()
    assert "too many pages" in (await uploads.upload("a.md") or "")
    assert 0 < tokens.chars < 100  # the rest is not cut
