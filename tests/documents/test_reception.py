"""Taking in a file: fences against erasure, room for it, and words that are answered after it."""

from collections.abc import Awaitable, Callable

import pytest

from bot.commands.sentences import Sentences
from bot.documents import reception
from bot.documents.formats import Formats, Limits
from bot.documents.reception import Desk, Reception
from bot.language.catalogue import Catalogue
from bot.telegram.errors import RefusalReason, Refused
from bot.telegram.inbound import Inbound, Sender, SentFile
from memory.documents.library import Library
from memory.keys import Conversation
from memory.memory import Memory
from memory.protocol.turns import LeaseLost

HERE = Conversation.of_chat(7)


class Files:
    """Gives `content`; or refuses, or does something `meanwhile`, as if fetching took long."""

    def __init__(self) -> None:
        self.content = b"The whale is blue."
        self.refusal: RefusalReason | None = None
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        self.asked: list[tuple[str, int]] = []

    async def download(self, file_id: str, most_bytes: int) -> bytes:
        self.asked.append((file_id, most_bytes))
        if self.meanwhile:
            await self.meanwhile()
        if self.refusal:
            raise Refused(self.refusal)
        return self.content


class Bench:
    """A reception, what it fetches, and what it had learned."""

    def __init__(self, memory: Memory, library: Library) -> None:
        self.files = Files()
        self.learned: list[Conversation] = []
        desk = Desk(Formats(Limits()), library, memory.notebooks, memory.tokens, 1_000)
        sentences = Sentences(Catalogue())
        self._reception = Reception(desk, self.files, sentences, self.learned.append)

    async def take(self, name: str = "sea.txt", text: str = "", nbytes: int = 18) -> str | None:
        """Take a file in and return what is said of it."""
        file = SentFile("f1", name, "", nbytes)
        ann = Sender(7, "Ann")
        sent = Inbound(1, 7, 0, False, 11, 1_000, ann, "document", text, file=file)  # noqa: FBT003
        answer = await self._reception.receive(sent, HERE)
        return answer.parts[0].text if answer else None


@pytest.fixture
def bench(memory: Memory, library: Library) -> Bench:
    return Bench(memory, library)


async def titles(library: Library) -> list[str]:
    return [each.title for each in await library.listed(HERE)]


async def test_a_file_is_fetched_stored_told_and_learned(bench: Bench, library: Library) -> None:
    said = await bench.take()

    assert said
    assert said.startswith("I've read sea.txt (passages: 1).")
    assert bench.files.asked == [("f1", 1_000)]
    assert await titles(library) == ["sea.txt"]
    assert bench.learned == [HERE]


async def test_words_with_a_file_are_left_to_be_answered(bench: Bench, library: Library) -> None:
    assert await bench.take(text="What is it?") is None
    assert await titles(library) == ["sea.txt"]


async def test_what_says_to_be_too_big_or_of_another_type_is_not_fetched(bench: Bench) -> None:
    too_big, other = await bench.take(nbytes=1_001), await bench.take("a.zip")

    assert (too_big or "").startswith("sea.txt is too big for me.")
    assert (other or "").startswith("I can't open a.zip.")
    assert bench.files.asked == []


@pytest.mark.parametrize(
    ("refusal", "said"), [("too_big", "is too big"), ("other", "I couldn't read")]
)
async def test_what_telegram_does_not_give_is_told(
    bench: Bench, refusal: RefusalReason, said: str
) -> None:
    bench.files.refusal = refusal

    assert said in (await bench.take() or "")
    assert bench.learned == []


async def test_a_clear_while_a_file_is_fetched_wins(
    bench: Bench, library: Library, memory: Memory
) -> None:
    async def clear() -> None:
        nonce = await memory.erasure.ask(HERE, "clear", 7)
        await memory.erasure.clear(HERE, nonce, 7, 5, as_admin=False)

    bench.files.meanwhile = clear

    with pytest.raises(LeaseLost):
        await bench.take()
    assert await titles(library) == []


async def test_a_turn_whose_file_replaced_another_begins_again_and_then_says_so(
    bench: Bench,
) -> None:
    await bench.take()
    bench.files.content = b"The whale is grey."

    with pytest.raises(LeaseLost):
        await bench.take()
    assert "I've read sea.txt" in (await bench.take() or "")


async def test_where_much_was_read_already_there_is_no_room(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reception, "MOST_PASSAGES_HERE", 1)
    await bench.take()

    assert "There's no room for more.txt" in (await bench.take("more.txt") or "")
    assert "I've read sea.txt" in (await bench.take() or "")


async def test_a_text_of_too_many_passages_is_too_long(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reception, "MOST_PASSAGES", 1)
    bench.files.content = b"# One\nA\n# Two\nB"

    assert "too many pages" in (await bench.take("a.md") or "")
