"""Photos of a turn: one that cannot be seen hides no other, and all together are bounded."""

from dataclasses import replace
from typing import Any

from structlog.testing import capture_logs

from bot.features.pictures.feature import PictureStep
from bot.parsing.pictures import MAX_PICTURE_BYTES, MAX_SHOWN_BYTES
from bot.telegram.errors import Refused
from bot.telegram.updates import IncomingMessage, MediaKind, SentFile, to_bytes
from bot.turn.answer import Answerer, AnswerStep, FileSteps
from bot.turn.outbox import Outbox
from bot.turn.permits import MAX_UPLOADS, SHORT_SOUND_BYTES, Permits
from bot.turn.request import Request, unpack
from memory.memory import Memory
from memory.message import ImageDetail
from memory.queue.mailbox import Entry
from memory.queue.open_turn import Lease, OpenTurn, Run
from memory.scopes.history import ChatHistory
from memory.scopes.log import Delta
from memory.store.keys import Scope
from tests.bot.features.services import SENTENCES, services_of
from tests.bot.parsing.test_pictures import drawn, noise
from tests.bot.telegram import raw
from tests.bot.telegram.test_intake import album_photo
from tests.memory.conftest import TOKENS
from tests.quiet_chat import QuietChat


class Files(QuietChat):
    """A chat with files; `fetched` has the bound of each download."""

    def __init__(self, *files: bytes) -> None:
        super().__init__()
        self._files = files
        self.fetched: list[int] = []

    async def download(self, file_id: str, max_bytes: int) -> bytes:
        self.fetched.append(max_bytes)
        content = self._files[int(file_id)]
        if not content:
            raise Refused("other")
        return content


def photos(*nbytes: int) -> list[IncomingMessage]:
    photo = raw.inbound(album_photo(1, chat=raw.PRIVATE))
    return [
        replace(photo, message_id=id_, file=SentFile(str(id_), "", "image/jpeg", size))
        for id_, size in enumerate(nbytes)
    ]


def turn(chat: int, person: int, *sent: IncomingMessage) -> OpenTurn:
    entries = tuple(
        Entry(1, person, is_alone=each.kind == "command", body=to_bytes(each)) for each in sent
    )
    lease = Lease(Scope.of_chat(chat), "token", "0", "0")
    return OpenTurn(lease, "t", 1, b"", 0, (), 0, "", entries, Delta(("0", "0"), 0, 0, {}, None))


async def see(memory: Memory, chat: Files, detail: ImageDetail, *sent: IncomingMessage) -> Request:
    step = PictureStep(chat, detail, memory.tokens, SENTENCES)
    request = unpack(turn(1, 1, *sent), memory.tokens)
    here = await ChatHistory.read(memory.histories, Scope.of_chat(1))
    return await step.answer(request, here) or request


async def test_a_photo_that_cannot_be_seen_does_not_hide_the_others(memory: Memory) -> None:
    chat = Files(drawn(30, 20, "JPEG"), b"broken", b"", drawn(20, 30, "PNG"))
    sent = photos(1, 1, 1, 1, MAX_PICTURE_BYTES + 1)
    heic = SentFile("0", "IMG_1.HEIC", "image/heic", 1)
    sent.append(replace(sent[0], message_id=9, file=heic))
    request = await see(memory, chat, "high", *sent)
    seen = [(each.message_id, each.width, each.detail) for each in request.pictures]
    assert seen == [(0, 30, "high"), (3, 20, "high")]
    keys = ("not_all", "damaged", "gone", "too_big", "heic")
    said = [SENTENCES.text("de", f"pictures.{key}", read=2, count=6) for key in keys]
    assert request.run.media_notes == (" ".join(said),)


async def test_what_a_model_sees_of_an_album_and_what_is_fetched_is_bounded(memory: Memory) -> None:
    heavy = drawn(30, 20, "JPEG") + bytes(MAX_PICTURE_BYTES - 2_000)
    chat = Files(*[heavy] * 4)
    request = await see(memory, chat, "low", *photos(*[0] * 4))
    assert chat.fetched[:3] == [MAX_PICTURE_BYTES] * 3
    assert chat.fetched[3] < 5 * 2**20
    assert sum(len(each.content) for each in request.pictures) < MAX_SHOWN_BYTES
    request = await see(memory, Files(*[noise(600, 500)] * 6), "low", *photos(*[1] * 6))
    assert (len(request.pictures), request.run.media_notes) == (6, ())
    assert sum(len(each.content) for each in request.pictures) <= 5 * MAX_SHOWN_BYTES


async def no_wake(_: Scope) -> None:
    pass


async def test_pictures_need_a_permit_like_files_and_another_until_the_turn_ends() -> None:
    woken: list[Scope] = []

    async def wake(conversation: Scope) -> None:
        woken.append(conversation)

    permits, album = Permits(4, wake), photos(*[1] * 10)
    words = raw.inbound(raw.message("a photo"))
    first = turn(1, 1, *album)
    assert permits.take(first)
    assert not permits.take(turn(2, 1, *album))  # one person reads one at a time
    assert permits.take(turn(3, 1, words))
    assert permits.take(turn(4, 2, *album))
    assert not permits.take(turn(5, 3, album[0]))  # the process reads at most so many
    assert MAX_UPLOADS == 2
    await permits.end(first.run, "uploads")
    assert not permits.take(turn(5, 3, album[0]))  # and models look at twenty
    await permits.end(first.run)
    assert permits.take(turn(5, 3, album[0]))
    assert Scope.of_chat(2) in woken


async def test_a_command_and_what_only_has_to_be_sent_need_another_permit_of_their_person() -> None:
    """Such a turn may wait 20 s until its chat takes a message, and one person has many chats."""
    permits, words = Permits(1, no_wake), raw.inbound(raw.message("hi"))
    assert permits.take(turn(1, 1, words))
    stored, other = turn(2, 1, words), turn(3, 1, words)
    assert permits.take(stored, is_only_sent=True)
    assert not permits.take(other, is_only_sent=True)
    await permits.end(stored.run)
    command = turn(4, 1, raw.inbound(raw.message("/privacy")))
    assert permits.take(command)
    await permits.end(command.run)
    assert permits.take(other, is_only_sent=True)


async def test_a_stopped_turn_goes_on_at_once_and_counts_as_an_answer() -> None:
    """Only its run knows what the person has seen of the answer."""
    permits, words = Permits(1, no_wake), raw.inbound(raw.message("hi"))
    first, stopped = turn(1, 1, words), replace(turn(2, 1, words), is_stopped=True)
    assert permits.take(first)
    assert permits.take(stopped)
    await permits.end(first.run)
    assert not permits.take(turn(3, 1, words))
    await permits.end(stopped.run)
    assert permits.take(turn(3, 1, words))


async def test_a_run_that_has_lost_its_lease_gives_its_permit_back() -> None:
    """It may end after the next run of its turn has begun here; until November 2026 it lost it."""
    words = raw.inbound(raw.message("a photo"))
    permits, lost = Permits(2, no_wake), turn(1, 1, words)
    for each in (lost, replace(lost, run=Run())):
        assert permits.take(each)
    assert not permits.take(turn(2, 1, words))
    await permits.end(lost.run)
    assert permits.take(turn(2, 1, words))


def sound(nbytes: int) -> IncomingMessage:
    voice = {"file_id": "1", "file_unique_id": "1", "duration": 1, "file_size": nbytes}
    return raw.inbound(raw.message(voice=voice))


async def test_a_long_sound_needs_a_permit_until_all_files_of_its_turn_are_read(
    memory: Memory,
) -> None:
    """Without permits, as many sounds of 20 MB would be in memory as there are turns."""
    permits, steps = Permits(4, no_wake), list[str]()
    opened = turn(1, 1, sound(SHORT_SOUND_BYTES + 1))
    request = unpack(opened, TOKENS)

    async def listen(given: Request, _: ChatHistory) -> Request:
        steps.append("heard")
        return replace(given, uses_memory=False)

    async def read(given: Request, _: ChatHistory) -> None:
        assert not given.uses_memory
        assert not permits.take(turn(2, 1, sound(0)))
        steps.append("read")

    assert permits.take(opened)
    for chat in range(3, 5):
        assert permits.take(turn(chat, 1, *[sound(SHORT_SOUND_BYTES)] * 3))
    here = await ChatHistory.read(memory.histories, Scope.of_chat(1))
    services = services_of(memory)
    files, at_work, sentences = services.files, services.at_work, services.sentences
    file_steps = FileSteps([("voice", listen), ("voice", read)], permits, files, at_work, sentences)
    assert await file_steps.answer(request, here)
    assert steps == ["heard", "read"]
    assert permits.take(turn(2, 1, sound(0)))


async def test_a_wrong_result_is_logged_and_ignored(memory: Memory) -> None:
    request = unpack(turn(1, 1, sound(1)), TOKENS)
    here = await ChatHistory.read(memory.histories, Scope.of_chat(1))
    said = Outbox(request.to, ())

    async def mistaken(_: Request, __: ChatHistory) -> Any:
        return "a text"

    async def answer(_: Request, __: ChatHistory) -> Outbox:
        return said

    services = services_of(memory)
    files, at_work, sentences = services.files, services.at_work, services.sentences
    asked: list[tuple[MediaKind, AnswerStep]] = [("voice", mistaken), ("voice", answer)]
    of_files = FileSteps(asked, Permits(4, no_wake), files, at_work, sentences)
    of_all = Answerer([mistaken, answer], sentences, lambda _: None)
    for each in (of_files, of_all):
        with capture_logs() as logged:
            assert await each.answer(request, here) == said
        assert [line["event"] for line in logged] == ["class failed"]
        assert logged[0]["error"].endswith("mistaken returned str")
