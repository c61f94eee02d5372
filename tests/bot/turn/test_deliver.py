"""An outbox is sent part by part, and each refusal has the effect that the queue describes."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from bot.reply.parts import Entity, Part
from bot.telegram.chat import Destination
from bot.telegram.errors import (
    BadToken,
    Blocked,
    ChatMigrated,
    FloodWait,
    OutcomeUnknown,
    RefusalReason,
    Refused,
    TelegramError,
    Unreachable,
)
from bot.turn.deliver import Deliverer, Delivery, InDoubt, Parked
from bot.turn.outbox import Outbox
from memory.behaviors.tool_output import OutgoingFile
from memory.queue.open_turn import QuestionErased, Superseded
from memory.store.errors import LeaseLost, StoreFull, StoreUnavailable
from tests.quiet_chat import QuietChat, no_export

CHAT = 7
BOLD = Part("one", (Entity("bold", 0, 3),))
PHOTO = OutgoingFile("chart.png", b"png", kind="photo")
LOOK = Part("Look", file=PHOTO, instead="Not sent.")
KNOWN = OutgoingFile("stamp.jpg", file_id="AgAC", kind="photo")
VOICE = OutgoingFile("answer.ogg", b"OggS", kind="voice")
ONE, TWO, THREE = Part("one"), Part("two"), Part("three")
LOST = LeaseLost("c:7:0")


@dataclass
class ScriptedTelegram(QuietChat):
    """Answers calls from a script, then with message ids from 100 upwards; logs the calls."""

    answers: list[TelegramError | None] = field(default_factory=list)
    waits_s: list[float | FloodWait] = field(default_factory=list)
    delete_errors: list[TelegramError | None] = field(default_factory=list)
    gate: asyncio.Event | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    before_delete: Callable[[], Awaitable[None]] | None = None

    def __post_init__(self) -> None:
        super().__init__()

    async def waits(self, chat_id: int, max_wait_s: float = 20) -> AsyncIterator[float]:
        del chat_id, max_wait_s
        while self.waits_s:
            wait = self.waits_s.pop(0)
            if isinstance(wait, FloodWait):
                raise wait
            yield wait

    def takes_rich(self, chat_id: int) -> bool:
        return chat_id == CHAT

    async def send(self, to: Destination, part: Part, timeout_s: float = 0) -> int:
        assert (to.topic_id, timeout_s) == (3, 10.0)
        message_id = await super().send(to, part)
        await self._answer()
        return message_id

    async def edit(self, chat_id: int, message_id: int, part: Part, timeout_s: float = 0) -> None:
        assert timeout_s == 10.0
        await super().edit(chat_id, message_id, part)
        await self._answer()

    async def _answer(self) -> None:
        self.asked.set()
        if self.gate:
            await self.gate.wait()
        error = self.answers.pop(0) if self.answers else None
        if error:
            raise error

    async def delete(self, chat_id: int, message_id: int) -> None:
        if self.before_delete:
            await self.before_delete()
        await super().delete(chat_id, message_id)
        if self.delete_errors and (error := self.delete_errors.pop(0)):
            raise error

    @property
    def texts(self) -> list[str]:
        return [part.text + "*" * len(part.entities) for _, part in self.sent]


@dataclass
class Marks:
    """Stands for the store: logs all marks, and refuses them from number `refused_from` on."""

    refused_from: int = 99
    refusal: LeaseLost = LOST
    log: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    async def __call__(self, part: int, sent: tuple[int, ...]) -> None:
        self.log.append((part, sent))
        if len(self.log) >= self.refused_from:
            raise self.refusal


@dataclass
class Delivering:
    """A deliverer, with a scripted Telegram and a store that marks parts."""

    telegram: ScriptedTelegram = field(default_factory=ScriptedTelegram)
    marks: Marks = field(default_factory=Marks)
    pauses: list[float] = field(default_factory=list)
    requests: int = 0

    async def __call__(
        self,
        *parts: Part,
        start: int = 0,
        sent: tuple[int, ...] = (),
        rich_parts: int = 0,
        replaces: tuple[int, ...] = (),
    ) -> Delivery:
        to = Destination(CHAT, 3, 55)
        outbox = Outbox(to, parts, said=r"\[x^2\]", rich_parts=rich_parts, replaces=replaces)
        return await self.deliverer.deliver(outbox, start, sent, self.marks, self._requesting)

    @property
    def deliverer(self) -> Deliverer:
        return Deliverer(self.telegram, 10.0, no_export, lambda _: None, pause=self._pause)

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @asynccontextmanager
    async def _requesting(self) -> AsyncIterator[None]:
        self.requests += 1
        yield


@pytest.fixture
def deliver() -> Delivering:
    return Delivering()


async def test_parts_are_sent_in_order_and_all_but_one_are_marked(deliver: Delivering) -> None:
    delivery = await deliver(ONE, TWO, THREE)
    assert deliver.telegram.texts == ["one", "two", "three"]
    assert deliver.marks.log == [(1, (100,)), (2, (100, 101))]
    assert delivery == Delivery("delivered", (100, 101, 102), InDoubt(CHAT, 102))
    replies = [to.reply_to for to, _ in deliver.telegram.sent]
    assert replies == [55, 0, 0]  # only the first part replies to the person's message


async def test_the_next_worker_begins_with_the_part_in_doubt(deliver: Delivering) -> None:
    """It is sent plain, as the parts before it, also if a rich message may replace them."""
    delivery = await deliver(ONE, TWO, THREE, start=1, sent=(90,), rich_parts=2)
    assert deliver.telegram.texts == ["two", "three"]
    assert deliver.marks.log == [(2, (90, 100))]
    assert delivery.sent == (90, 100, 101)


async def test_a_part_whose_formatting_is_refused_goes_as_plain_text(deliver: Delivering) -> None:
    deliver.telegram.answers = [Refused("entities")]
    assert (await deliver(BOLD)).outcome == "delivered"
    assert deliver.telegram.texts == ["one*", "one"]


async def test_a_chat_that_takes_no_files_gets_the_text_of_a_file(deliver: Delivering) -> None:
    file = OutgoingFile("code.py", b"x = 1\n" * 1_000)
    deliver.telegram.answers = [Refused("other")]
    delivery = await deliver(Part("Take this", file=file), TWO)
    first, caption, *code, two = deliver.telegram.texts
    assert (first, caption, two) == ("Take this", "Take this", "two")
    assert "\n".join(code).split() == file.content.decode().split()
    assert (delivery.outcome, len(code), len(delivery.sent)) == ("delivered", 2, 2)


@pytest.mark.parametrize(
    ("part", "refusals", "sent"),
    [
        (LOOK, 1, ["photo Look", "document Look"]),
        (LOOK, 2, ["photo Look", "document Look", "Look\n\nNot sent."]),
        (Part("", file=KNOWN, instead="Not sent."), 1, ["photo ", "Not sent."]),
        (Part("Hello", file=VOICE), 1, ["voice Hello", "Hello"]),
        (Part("", file=VOICE), 1, ["voice "]),
    ],
)
async def test_a_refused_file_of_a_tool_leaves_what_can_be_said(
    deliver: Delivering, part: Part, refusals: int, sent: list[str]
) -> None:
    deliver.telegram.answers = [Refused("other")] * refusals
    delivery = await deliver(ONE, part, TWO, start=1, sent=(90,))
    shown = [
        f"{each.file.kind} {each.text}" if each.file else each.text
        for _, each in deliver.telegram.sent
    ]
    assert shown == [*sent, "two"]
    assert delivery.outcome == "delivered"
    assert len(delivery.sent) == (2 if sent == ["voice "] else 3)


PLAIN = ["$$x^2$$", "one", "two", "three"]


@pytest.mark.parametrize(
    ("answers", "sent", "delivery"),
    [
        ([], ["$$x^2$$", "three"], Delivery("delivered", (100, 101), InDoubt(CHAT, 101))),
        ([Refused("other")], PLAIN, Delivery("delivered", (101, 102, 103), InDoubt(CHAT, 103))),
        ([BadToken("404")], PLAIN, Delivery("delivered", (101, 102, 103), InDoubt(CHAT, 103))),
        ([Blocked()] * 2, PLAIN[:2], Delivery("undeliverable", (), InDoubt(CHAT), "blocked")),
        (
            [OutcomeUnknown("?")],
            ["$$x^2$$", "three"],
            Delivery("unknown", (101,), InDoubt(CHAT, 101)),
        ),
        (
            [FloodWait(2)],
            ["$$x^2$$", "$$x^2$$", "three"],
            Delivery("delivered", (101, 102), InDoubt(CHAT, 102)),
        ),
    ],
    ids=["taken", "400", "404", "blocked", "unknown", "429"],
)
async def test_a_rich_message_stands_for_its_parts_unless_it_is_refused(
    deliver: Delivering, answers: list[TelegramError | None], sent: list[str], delivery: Delivery
) -> None:
    deliver.telegram.answers = answers
    assert await deliver(ONE, TWO, THREE, rich_parts=2) == delivery
    assert deliver.telegram.texts == sent
    assert deliver.requests == len(sent)
    assert deliver.telegram.sent[0][1].is_rich


async def test_a_part_waits_for_its_permit_and_is_marked_each_time(deliver: Delivering) -> None:
    deliver.telegram.waits_s = [1.5, 0.1]
    assert (await deliver(ONE)).outcome == "delivered"
    assert (deliver.pauses, deliver.marks.log) == ([1.5, 0.1], [(0, ()), (0, ())])


async def test_a_turn_whose_permit_comes_late_is_parked_until_then(deliver: Delivering) -> None:
    deliver.telegram.waits_s = [FloodWait(40)]
    with pytest.raises(Parked) as parked:
        await deliver(ONE)
    assert (parked.value.pause_s, deliver.telegram.sent) == (40, [])


async def test_a_turn_is_parked_while_the_token_is_not_accepted(deliver: Delivering) -> None:
    deliver.telegram.answers = [None, BadToken("401")]
    with pytest.raises(Parked):
        await deliver(ONE, TWO)
    assert (deliver.telegram.texts, deliver.pauses) == (["one", "two"], [])


REFUSED = Delivery("undeliverable", (100,), InDoubt(CHAT))
UNKNOWN = Delivery("unknown", (100, 102), InDoubt(CHAT, 102))


@pytest.mark.parametrize(
    ("answer", "delivery"),
    [
        (Blocked(), replace(REFUSED, refused="blocked")),
        (Refused("topic_gone"), replace(REFUSED, refused="topic_gone")),
        (Refused("entities"), replace(REFUSED, refused="entities")),
        (OutcomeUnknown(), UNKNOWN),
    ],
)
async def test_after_a_part_that_is_never_accepted_nothing_is_sent_after_one_in_doubt_the_next_are(
    deliver: Delivering, answer: TelegramError, delivery: Delivery
) -> None:
    deliver.telegram.answers = [None, answer]
    assert await deliver(ONE, TWO, THREE) == delivery
    assert deliver.telegram.texts == ["one", "two", "three"][: 3 if delivery is UNKNOWN else 2]


@pytest.mark.parametrize("replaces", [(), (20, 21, 22)])
async def test_all_further_parts_go_to_the_new_chat_of_a_moved_group(
    deliver: Delivering, replaces: tuple[int, ...]
) -> None:
    """There the ids of a former reply may be other messages, also of other people."""
    deliver.telegram.answers = [ChatMigrated(-100)]
    delivery = await deliver(ONE, TWO, replaces=replaces)
    edited = [chat_id for chat_id, *_ in deliver.telegram.edited]
    assert [*edited, *(to.chat_id for to, _ in deliver.telegram.sent)] == [CHAT, -100, -100]
    assert (delivery.in_doubt.chat_id, deliver.telegram.deleted) == (-100, [])
    deliver.telegram.answers = [ChatMigrated(-100), ChatMigrated(CHAT)] * 50  # no real Telegram
    assert (await deliver(ONE)).outcome == "undeliverable"
    assert len(deliver.telegram.answers) == 98


@pytest.mark.parametrize(
    ("bans_s", "waited_s", "parked_s"),
    [([3, 4], [3, 4], None), ([15, 6], [15], 6), ([21], [], 21)],
    ids=["short", "together more than 20 s", "long"],
)
async def test_short_flood_waits_are_waited_out_and_longer_ones_park_the_turn(
    deliver: Delivering, bans_s: list[float], waited_s: list[float], parked_s: float | None
) -> None:
    deliver.telegram.answers = [FloodWait(ban_s) for ban_s in bans_s]
    if parked_s is None:
        assert (await deliver(ONE)).outcome == "delivered"
    else:
        with pytest.raises(Parked) as parked:
            await deliver(ONE)
        assert parked.value.pause_s == parked_s
    assert deliver.pauses == waited_s


async def test_an_unreachable_telegram_is_called_five_times_before_the_turn_is_parked(
    deliver: Delivering,
) -> None:
    deliver.telegram.answers = [Unreachable() for _ in range(5)]
    with pytest.raises(Parked):
        await deliver(ONE)
    assert deliver.telegram.texts == ["one"] * 5
    assert deliver.pauses == [0.5, 1, 2, 4]


async def test_a_part_is_marked_again_after_a_flood_wait(deliver: Delivering) -> None:
    deliver.telegram.answers = [None, FloodWait(3)]
    await deliver(ONE, TWO)
    assert deliver.marks.log == [(1, (100,)), (1, (100,))]


@pytest.mark.parametrize(("permit_s", "texts"), [([1.5], []), ([], ["one"])])
async def test_nothing_is_sent_if_the_turn_is_refused_after_a_wait(
    deliver: Delivering, permit_s: list[float | FloodWait], texts: list[str]
) -> None:
    """The wait for a permit of ours, or one that Telegram asks for."""
    deliver.telegram.waits_s, deliver.telegram.answers = permit_s, [FloodWait(3)]
    deliver.marks.refused_from = 1
    with pytest.raises(LeaseLost):
        await deliver(ONE)
    assert (deliver.telegram.texts, deliver.telegram.deleted) == (texts, [])


@pytest.mark.parametrize(
    ("answers", "replaces", "refused_from", "deleted"),
    [
        ([], (), 2, [(CHAT, 101)]),
        ([None, OutcomeUnknown()], (), 2, []),
        ([], (20, 21), 1, []),  # the next worker edits the same message
    ],
    ids=["just sent", "its fate is unknown", "edited"],
)
async def test_only_a_part_just_sent_is_deleted_if_the_next_mark_is_refused(
    deliver: Delivering,
    answers: list[TelegramError | None],
    replaces: tuple[int, ...],
    refused_from: int,
    deleted: list[tuple[int, int]],
) -> None:
    deliver.telegram.answers = answers
    deliver.telegram.delete_errors = [OutcomeUnknown()]  # it hides no refusal
    deliver.marks.refused_from = refused_from
    with pytest.raises(LeaseLost):
        await deliver(ONE, TWO, THREE, replaces=replaces)
    assert deliver.telegram.texts == ([] if replaces else ["one", "two"])
    assert deliver.telegram.deleted == deleted


@pytest.mark.parametrize(
    ("answer", "begun", "deleted"),
    [(ChatMigrated(-100), (), [(-100, 100)]), (Blocked(), (90,), [])],
    ids=["our last part", "a part of a dead worker"],
)
async def test_only_our_last_part_is_deleted_if_the_commit_is_refused(
    deliver: Delivering,
    answer: TelegramError,
    begun: tuple[int, ...],
    deleted: list[tuple[int, int]],
) -> None:
    deliver.telegram.answers = [answer]
    parts = [ONE, TWO] if begun else [ONE]
    delivery = await deliver(*parts, start=len(begun), sent=begun, replaces=(100,))
    with pytest.raises(LeaseLost):
        await deliver.deliverer.guard(delivery.in_doubt, refusing())
    assert deliver.telegram.deleted == deleted


async def test_a_part_that_another_worker_may_count_as_sent_is_kept(deliver: Delivering) -> None:
    with pytest.raises(Superseded):
        await deliver.deliverer.guard(InDoubt(CHAT, 100), refusing(Superseded("c:7:0")))
    assert deliver.telegram.deleted == []


async def test_a_step_is_repeated_while_the_store_is_away_or_full(deliver: Delivering) -> None:
    """A new run would send the part again, because nothing says that it was sent."""
    answers: list[Exception | str] = [StoreUnavailable("away"), StoreFull("ballast goes"), "done"]

    async def step() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert await deliver.deliverer.guard(InDoubt(CHAT, 100), step) == "done"
    assert (deliver.pauses, deliver.telegram.deleted) == ([0.5, 1], [])
    answers = [StoreUnavailable("away")] * 20
    with pytest.raises(StoreUnavailable):
        await deliver.deliverer.guard(InDoubt(CHAT, 100), step)
    assert 20 < sum(deliver.pauses[2:]) < 30  # a lease has 30 s


async def test_a_cancelled_step_is_not_repeated(deliver: Delivering) -> None:
    """A process that has to stop would wait for the store."""
    tries, tried, deliverer = Counter[str](), asyncio.Event(), deliver.deliverer
    deliverer.pause = asyncio.sleep

    async def step() -> None:
        tries["step"] += 1
        tried.set()
        raise StoreUnavailable("away")

    guarding = asyncio.create_task(deliverer.guard(InDoubt(CHAT, 100), step))
    await tried.wait()
    guarding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await guarding
    assert tries["step"] == 1


@pytest.mark.parametrize(
    ("answers", "deleted"), [([], [(CHAT, 100)]), ([OutcomeUnknown()], [])], ids=["arrived", "not"]
)
async def test_a_part_that_arrives_although_the_turn_is_cancelled_is_deleted(
    deliver: Delivering, answers: list[TelegramError | None], deleted: list[tuple[int, int]]
) -> None:
    deliver.telegram.answers = answers
    delivering = await _cancelled_while_sending(deliver, ONE, TWO)
    with pytest.raises(asyncio.CancelledError):
        await delivering
    assert (deliver.telegram.texts, deliver.telegram.deleted) == (["one"], deleted)


class _Gate:
    """Holds up whoever waits at it until it is `opened`; `reached` tells that somebody does."""

    def __init__(self) -> None:
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.opened.wait()


async def test_a_part_is_deleted_although_the_turn_is_cancelled_again(deliver: Delivering) -> None:
    gate = _Gate()
    deliver.telegram.before_delete = gate.wait
    delivering = await _cancelled_while_sending(deliver, ONE, TWO)
    await gate.reached.wait()
    delivering.cancel()
    gate.opened.set()
    with pytest.raises(asyncio.CancelledError):
        await delivering
    assert deliver.telegram.deleted == [(CHAT, 100)]


@pytest.mark.parametrize("where", ["step", "delete"])
async def test_a_part_is_deleted_if_the_turn_is_cancelled_before_the_refusal_is_known(
    deliver: Delivering, where: str
) -> None:
    gate, logged = _Gate(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda *said: logged.append(said))

    async def refused() -> None:
        await gate.wait()
        raise LOST

    if where == "delete":
        deliver.telegram.before_delete = gate.wait
    step = refused if where == "step" else refusing()
    guarding = asyncio.create_task(deliver.deliverer.guard(InDoubt(CHAT, 100), step))
    await gate.reached.wait()
    guarding.cancel()
    gate.opened.set()
    with pytest.raises(asyncio.CancelledError):
        await guarding
    assert deliver.telegram.deleted == [(CHAT, 100)]
    del guarding
    await asyncio.sleep(0)
    gc.collect()
    assert logged == []  # asyncio logs an exception that nobody saw


async def _cancelled_while_sending(
    deliver: Delivering, *parts: Part, replaces: tuple[int, ...] = ()
) -> asyncio.Task[Delivery]:
    """Return a delivery that was cancelled while its first part was being sent."""
    deliver.telegram.gate = asyncio.Event()
    delivering = asyncio.create_task(deliver(*parts, replaces=replaces))
    await deliver.telegram.asked.wait()
    delivering.cancel()
    deliver.telegram.gate.set()
    return delivering


def refusing(refusal: LeaseLost = LOST) -> Callable[[], Awaitable[None]]:
    """Return a step that is refused."""

    async def step() -> None:
        raise refusal

    return step


async def test_a_reply_replaces_the_former_one_in_place_by_plain_parts(deliver: Delivering) -> None:
    delivery = await deliver(ONE, TWO, THREE, rich_parts=3, replaces=(20, 21))
    telegram = deliver.telegram
    assert [(id_, part.text) for _, id_, part in telegram.edited] == [(20, "one"), (21, "two")]
    assert telegram.texts == ["three"]
    assert delivery == Delivery("delivered", (20, 21, 100), InDoubt(CHAT, 100))


async def test_surplus_messages_of_the_former_reply_are_deleted(deliver: Delivering) -> None:
    deliver.telegram.delete_errors = [FloodWait(3), None, FloodWait(3), FloodWait(3)]
    delivery = await deliver(ONE, replaces=(20, 21, 22))
    deleted = [(CHAT, 21), (CHAT, 21), (CHAT, 22), (CHAT, 22)]  # after bans of at most 5 s together
    assert (deliver.pauses, deliver.telegram.deleted) == ([3, 3], deleted)
    assert delivery == Delivery("delivered", (20,), InDoubt(CHAT, 20, was_edited=True))


@pytest.mark.parametrize(
    ("refusal", "deleted"), [(QuestionErased("c:7:0"), [(CHAT, 20)]), (LeaseLost("c:7:0"), [])]
)
@pytest.mark.parametrize("when", ["before the commit", "before the next part", "during the edit"])
async def test_a_former_reply_that_was_edited_is_deleted_only_if_its_question_was_erased(
    deliver: Delivering, refusal: LeaseLost, deleted: list[tuple[int, int]], when: str
) -> None:
    """After any other refusal another worker shows its reply in this message."""
    deliver.marks.refused_from, deliver.marks.refusal = 1, refusal
    if when == "during the edit":
        delivering = await _cancelled_while_sending(deliver, ONE, replaces=(20,))
        with pytest.raises(asyncio.CancelledError):
            await delivering
    elif when == "before the commit":
        delivery = await deliver(ONE, replaces=(20,))
        with pytest.raises(type(refusal)):
            await deliver.deliverer.guard(delivery.in_doubt, refusing(refusal))
    else:
        with pytest.raises(type(refusal)):
            await deliver(ONE, TWO, replaces=(20, 21))
    assert deliver.telegram.deleted == deleted


@pytest.mark.parametrize("reason", ["message_gone", "other"])
async def test_a_reply_is_sent_if_the_former_one_cannot_be_edited(
    deliver: Delivering, reason: RefusalReason
) -> None:
    deliver.telegram.answers = [Refused(reason)]
    delivery = await deliver(ONE, replaces=(20,))
    assert (deliver.telegram.texts, deliver.telegram.deleted) == (["one"], [(CHAT, 20)])
    assert delivery == Delivery("delivered", (100,), InDoubt(CHAT, 100))


async def test_a_former_reply_stays_if_its_chat_takes_no_messages(deliver: Delivering) -> None:
    deliver.telegram.answers = [Refused("closed")] * 2
    assert (await deliver(ONE, replaces=(20,))).refused == "closed"
    assert (deliver.telegram.sent, deliver.telegram.deleted) == ([], [])


async def test_an_edit_is_repeated_until_its_outcome_is_known(deliver: Delivering) -> None:
    deliver.telegram.answers = [OutcomeUnknown("timeout"), Refused("entities"), FloodWait(3)]
    delivery = await deliver(BOLD, replaces=(20,))
    assert [len(part.entities) for _, _, part in deliver.telegram.edited] == [1, 1, 0, 0]
    assert (delivery.sent, deliver.telegram.sent, deliver.pauses) == ((20,), [], [0.5, 3])


async def test_a_file_takes_the_place_of_a_former_text(deliver: Delivering) -> None:
    delivery = await deliver(Part("Take this", file=OutgoingFile("a.py", b"x")), replaces=(20,))
    assert (deliver.telegram.edited, deliver.telegram.deleted) == ([], [(CHAT, 20)])
    assert delivery.sent == (100,)
