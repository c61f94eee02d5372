"""An edit, `/retry` and "ask again" change only what they may, and each only once."""

from dataclasses import replace

import pytest

from bot.commands.erasing import ErasingCommands, Receipts
from bot.telegram.chat import Destination
from bot.telegram.edits import is_about
from bot.telegram.updates import IncomingMessage, Sender, to_bytes
from bot.turn.answer import Answerer
from bot.turn.outbox import Outbox
from bot.turn.request import Request, unpack
from bot.turn.revision import RevisionStep
from memory.limits import quotas
from memory.limits.quotas import Quota
from memory.limits.usage import BilledCall, BillingSource, Tokens
from memory.memory import Memory
from memory.message import Message
from memory.queue.mailbox import Entry
from memory.queue.open_turn import NoTurn, OpenTurn
from memory.scopes.fields import State
from memory.scopes.history import ChatHistory
from memory.scopes.log import Cursor
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.work.item import WorkItem
from tests.bot.features.services import SENTENCES
from tests.bot.telegram import raw
from tests.bot.turn.test_quota import NO_QUOTA, quota_step, request_of
from tests.memory.erasure.test_forgetting import write
from tests.memory.learning.scripted import Notes, ScriptedModel
from tests.memory.turns import ANN, BOB, HERE, begin, clear, finish, read_by, take, texts
from tests.quiet_chat import QuietChat

SAID_AT = 1_700_000_000
EDIT = replace(
    raw.inbound(raw.message("new words")), kind="edit", message_id=11, edited_at=SAID_AT + 900
)
RETRY = replace(EDIT, kind="command", command="retry", text="", message_id=30, edited_at=0)
BEN = Sender(BOB, "Ben")
SILENCE = Outbox(Destination(HERE.chat_id), (), is_unread=True)


class Revising:
    """A step; `turn` and `request` are its newest, `learned` what it had learned."""

    turn: OpenTurn
    request: Request

    def __init__(
        self, memory: Memory, quota: Quota = NO_QUOTA, budget_per_month: str = "0"
    ) -> None:
        self.memory = memory
        self.learned: list[Scope] = []
        counted = quota_step(memory, quota, budget_per_month=budget_per_month)
        self.step = RevisionStep(memory, QuietChat(), counted, SENTENCES, self.learned.append)

    async def __call__(self, update: IncomingMessage, number: int) -> Outbox | None:
        """Run the step for an update, and again each time that its turn begins again."""
        update = replace(update, update_id=number)
        entry = Entry(number, update.sender.id, is_alone=True, body=to_bytes(update))
        await self.memory.mailbox.put(HERE, entry)
        return await self.run()

    async def run(self) -> Outbox | None:
        for _ in range(3):
            self.turn = turn = await take(self.memory)
            self.request = unpack(turn, self.memory.tokens)
            history = await read_by(self.memory, turn)
            try:
                outbox = await self.step.answer(self.request, history)
            except LeaseLost:
                self.memory.scopes.drop(HERE)
                continue
            if outbox:
                await self.memory.turns.write_outbox(turn, outbox.to_bytes())
                await self.memory.turns.commit(turn, [], Cursor())
            return outbox
        raise AssertionError("its turn begins again and again")

    async def close(self, *answer: Message) -> None:
        """Close the turn of the question that is asked again."""
        await self.memory.turns.write_outbox(self.turn, b"[]")
        messages = [*self.request.messages, *answer]
        await self.memory.turns.commit(self.turn, messages, Cursor())


async def tell(memory: Memory, *said: Message, answer: str = "yes") -> None:
    """Store an exchange: messages of Ann, and the answer unless it is empty."""
    number = int(await memory.client.call("INCR", "told"))
    replies = [Message(0, 0, "assistant", answer, SAID_AT, message_ids=(12,))] if answer else []
    await finish(memory, await begin(memory, number), [*said, *replies])


def words(text: str = "old words", *ids: int) -> Message:
    return Message(0, 0, "user", text, SAID_AT, ANN, "Anna", ids or (11,))


TASK = replace(words("⏰ Say hello", -5), replied_to=11)


async def test_the_newest_question_is_asked_again_with_all_sent_with_it(memory: Memory) -> None:
    forwarded = replace(words("look", 10), is_first_party=False, forwarded_from="Ben")
    await tell(memory, forwarded, words())
    revising = Revising(memory)
    assert await revising(EDIT, 9) is None
    asked = revising.request
    assert [(m.text, m.forwarded_from) for m in asked.messages] == [
        ("look", "Ben"),
        ("new words", ""),
    ]
    assert (asked.message.text, asked.message.sent_at) == ("look\nnew words", SAID_AT)
    assert (asked.message.message_ids, asked.replaces) == ((10, 11), (12,))
    assert await texts(memory) == []


async def test_a_task_done_since_does_not_make_a_question_an_older_one(memory: Memory) -> None:
    await tell(memory, words())
    await tell(memory, TASK)
    revising = Revising(memory)
    assert await revising(EDIT, 9) is None
    assert (revising.request.message.text, revising.request.replaces) == ("new words", (12,))
    await revising.close()
    # The task now stands before the question that asked for it, and is forgotten with it.
    assert await texts(memory) == [TASK.text, "yes", "new words"]
    found = await memory.forgetting.find_exchange(HERE, 11, with_tasks=True)
    assert [each.text for each in found] == ["new words", TASK.text, "yes"]


async def test_a_task_is_retried_below_the_message_that_asked_for_it(memory: Memory) -> None:
    await tell(memory, words())
    await tell(memory, TASK)
    revising = Revising(memory)
    assert await revising(RETRY, 9) is None
    asked = revising.request
    assert (asked.message.text, asked.to.reply_to) == (TASK.text, 11)
    assert is_about(11, to_bytes(asked.last))


async def test_a_question_that_replied_to_a_photo_is_asked_again_with_it(memory: Memory) -> None:
    await tell(memory, replace(words("[photo] A dog", 10), is_first_party=False, photo="file id"))
    await tell(memory, replace(words(), replied_to=10))
    revising = Revising(memory)
    assert await revising(RETRY, 9) is None
    [shown] = revising.request.last.media
    assert shown.file
    assert (shown.message_id, shown.file.file_id) == (10, "file id")


async def test_a_retry_in_a_new_supergroup_deletes_no_message_with_an_id_of_the_old_group(
    memory: Memory,
) -> None:
    await tell(memory, words())
    revising = Revising(memory)
    assert await revising(replace(RETRY, chat_id=-1009), 9) is None
    assert (revising.request.message.text, revising.request.replaces) == ("old words", ())


async def test_a_question_that_is_forgotten_while_it_is_taken_out_is_not_asked_again(
    memory: Memory,
) -> None:
    await tell(memory, words())

    async def retry(*_: object) -> None:
        await Revising(memory)(RETRY, 9)

    memory.forgetting.messages_leave.append(retry)
    receipts = Receipts(memory.jobs, QuietChat(), SENTENCES)
    commands = ErasingCommands(memory, retry, receipts, SENTENCES)
    nonce = await memory.questions.ask(HERE, "messages", ANN, "1,2@11@0")
    await commands.delete_message(raw.press(raw.pressed()), HERE, nonce)
    assert await memory.turns.acquire(HERE, Cursor()) == NoTurn("empty")


async def test_a_message_that_is_older_only_changes_its_words(memory: Memory) -> None:
    await tell(memory, words())
    revising = Revising(memory)
    assert await revising(replace(EDIT, edited_at=SAID_AT + 901), 9) == SILENCE
    assert await texts(memory) == ["new words", "yes"]
    assert revising.learned == [HERE]


@pytest.mark.parametrize("is_personal", [False, True])
async def test_what_was_said_since_is_learned_again_up_to_a_bound_of_a_day_then_people_are_told(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, *, is_personal: bool
) -> None:
    """Otherwise a person below a quota could have a long talk learned without end."""
    said = []
    monkeypatch.setattr(quotas, "_MAX_LEARNED_AGAIN", 7)
    notes, model = Notes(every=1, is_personal=is_personal), ScriptedModel()
    model.parts = {"notes": {"text": "Has a cat."}}
    memory.enable_learning([notes], model)
    for number in range(3):
        await tell(memory, words("old words", 11 - number))
    await memory.learn(HERE)
    for number in range(4):
        edit = replace(EDIT, message_id=11, text=f"new words {number}", edited_at=SAID_AT + 901)
        said.append(await Revising(memory)(edit, 9 + number))
        await write(memory, HERE, State("{}"))
        await memory.learn(HERE)
    assert notes.batches == [[1, 2, 3, 4, 5, 6]] * 3
    told = replace(SILENCE, parts=SENTENCES.say("de", "edited.hidden"))
    assert said == [SILENCE, SILENCE, told, told]
    assert (await texts(memory))[0] == "new words 3"
    await tell(memory, words("more"))
    await memory.learn(HERE)
    assert notes.batches[-1] == [7, 8]


@pytest.mark.parametrize(
    "edit",
    [
        replace(EDIT, text="old words"),
        replace(EDIT, text=""),
        replace(EDIT, message_id=99),
        replace(EDIT, message_id=12),
        replace(EDIT, sender=BEN),
        replace(EDIT, sent_at=SAID_AT + 86_400),
    ],
)
async def test_other_edits_change_nothing(memory: Memory, edit: IncomingMessage) -> None:
    await tell(memory, words())
    assert await Revising(memory)(edit, 9) == SILENCE
    assert await texts(memory) == ["old words", "yes"]


REMINDER = WorkItem(ANN, "Tea", due=4e9, chat_id=HERE.chat_id, message_id=11)


@pytest.mark.parametrize(
    ("stays", "said"),
    [
        (REMINDER, "edited.reminder"),
        (replace(REMINDER, message_id=12), ""),
        (replace(REMINDER, chat_id=HERE.chat_id - 1), ""),
        (replace(REMINDER, due=0), ""),
        (1, "edited.hidden"),
    ],
    ids=["set by it", "set by another", "set in the old group", "not set yet", "deleted"],
)
async def test_a_person_is_told_what_their_edit_does_not_change(
    memory: Memory, stays: WorkItem | int, said: str
) -> None:
    await tell(memory, words())
    if isinstance(stays, WorkItem):
        await tell(memory, words("later", 13))
        await memory.work.add(await memory.scopes.read(HERE), stays)
    else:
        await memory.correcting.hide(HERE, [stays])
    parts = SENTENCES.say("de", said) if said else ()
    assert await Revising(memory)(EDIT, 9) == replace(SILENCE, parts=parts)
    assert (await texts(memory))[:2] == ["new words", "yes"]
    for number in range(6):  # more than a member's share of a group
        await memory.quotas.admit_in_group(HERE.chat_id, ANN, str(number), "message")
    in_group = replace(EDIT, text="newer", is_group=True)
    silence = replace(SILENCE, to=replace(SILENCE.to, reply_to=11))
    assert await Revising(memory)(in_group, 10) == silence


async def test_a_button_asks_once_however_often_it_is_pressed(memory: Memory) -> None:
    await tell(memory, words(), answer="")
    nonce = await memory.questions.ask(HERE, "again", ANN, f"11,{ANN}")
    pressed = replace(EDIT, kind="again", text=nonce, replied_to=11, message_id=40, edited_at=0)
    revising = Revising(memory)
    assert await revising(pressed, 9) is None
    assert (revising.request.message.text, revising.request.replaces) == ("old words", (40,))
    await revising.close()  # without an answer once more
    assert await revising(pressed, 10) == SILENCE
    assert await texts(memory) == ["old words"]


async def test_a_retry_counts_as_a_turn_and_beyond_a_quota_changes_nothing(memory: Memory) -> None:
    await tell(memory, words())
    revising = Revising(memory, Quota(1, 0))
    assert await revising(RETRY, 9) is None
    await revising.close(Message(0, 0, "assistant", "another", SAID_AT))
    notice = await revising(RETRY, 10)
    assert notice
    assert notice.parts != ()
    assert await texts(memory) == ["old words", "another"]


@pytest.mark.parametrize(
    ("way", "bound", "is_told"),
    [
        *(("edit", "turns", True), ("edit", "budget", False)),
        *(("retry", "tokens", False), ("retry", "turns", True)),
        *(("again", "budget", True), ("again", "tokens", False)),
    ],
)
async def test_beyond_a_quota_nothing_of_the_old_exchange_goes(
    memory: Memory, way: str, bound: str, *, is_told: bool
) -> None:
    answer = "" if way == "again" else "yes"
    await tell(memory, words(), answer=answer)
    quota = Quota(1 if bound == "turns" else 0, 1 if bound == "tokens" else 0)
    revising = Revising(memory, quota, "0.000001" if bound == "budget" else "0")
    quotas = revising.step.quota
    assert await quotas.admit(ANN, "before") == "admitted"
    call = BilledCall(BillingSource("answer", "m"), Tokens(output=9), ANN, HERE.tag)
    await memory.usage.count([call])
    if is_told:
        assert await quotas.admit(ANN, "told") == bound
    nonce = await memory.questions.ask(HERE, "again", ANN, f"11,{ANN}")
    again = replace(EDIT, kind="again", text=nonce, replied_to=11, message_id=40, edited_at=0)
    notice = await revising({"edit": EDIT, "retry": RETRY, "again": again}[way], 9)
    assert notice is not None
    assert (bool(notice.parts), notice.is_unread, notice.replaces) == (not is_told, True, ())
    question = "new words" if way == "edit" else "old words"
    assert await texts(memory) == [question, *filter(None, [answer])]
    assert revising.request.replaces == ()
    assert revising.learned == ([HERE] if way == "edit" else [])


async def test_a_question_that_an_earlier_clear_spared_is_asked_again(memory: Memory) -> None:
    """A clear may be carried out late. What was sent after its update stays all the same."""
    await clear(memory, 0)
    await tell(memory, words())  # sent long before the clear was carried out, but after its update
    revising = Revising(memory)
    assert await revising(RETRY, 9) is None
    assert revising.request.message.text == "old words"


async def test_an_apology_asks_about_what_an_earlier_step_has_heard(memory: Memory) -> None:
    async def hear(given: Request, _: ChatHistory) -> Request:
        return replace(given, message=replace(given.message, text="Hello"))

    async def fail(_: Request, __: ChatHistory) -> Outbox:
        raise TimeoutError

    answerer = Answerer([hear, fail], SENTENCES, lambda _: None)
    history = await ChatHistory.read(memory.histories, HERE)
    [apology] = (await answerer.answer(request_of("voice", "", 1), history)).parts
    assert apology.question


async def test_a_stopped_retry_does_not_bring_an_erased_question_back(memory: Memory) -> None:
    """A clear spares the `/retry`, which came after it. The question came before."""
    revising = Revising(memory)
    answerer = Answerer([revising.step.answer], SENTENCES, lambda _: None)
    await tell(memory, words())
    assert await revising(RETRY, 9) is None
    history = await ChatHistory.read(memory.histories, HERE)
    stopped = await answerer.stop(revising.request, history)
    assert (len(stopped.parts), stopped.is_unread) == (1, False)
    await clear(memory, 8)
    stopped = await answerer.stop(revising.request, history)
    assert (len(stopped.parts), stopped.is_unread) == (0, True)


@pytest.mark.parametrize("is_newest", [True, False])
async def test_edits_after_a_newer_one_change_nothing(memory: Memory, *, is_newest: bool) -> None:
    await tell(memory, words())
    if not is_newest:
        await tell(memory, words("later", 13))
    revising = Revising(memory)
    asks_again = await revising(replace(EDIT, text="newest words"), 10) is None
    if asks_again:
        await revising.close()
    assert asks_again is is_newest
    assert await revising(replace(EDIT, edited_at=EDIT.edited_at - 1), 9) == SILENCE
    assert (await texts(memory))[0] == "newest words"


SHOWN = replace(words("[photo] A dog"), is_first_party=False, photo="file id")


@pytest.mark.parametrize("is_newest", [True, False])
async def test_a_photo_gets_the_caption_that_it_had_not_and_loses_the_one_it_had(
    memory: Memory, *, is_newest: bool
) -> None:
    await tell(memory, SHOWN)
    if not is_newest:
        await tell(memory, words("later", 13))
    revising = Revising(memory)
    asks_again = await revising(replace(EDIT, text="Which breed?"), 9) is None
    assert asks_again is is_newest
    if is_newest:
        said = [(each.text, each.is_first_party) for each in revising.request.messages]
        assert said == [(SHOWN.text, False), ("Which breed?", True)]
        await revising.close()
    else:
        assert (await texts(memory))[0] == "[photo] A dog\nWhich breed?"
    removed = replace(EDIT, text="")
    if await revising(removed, 10) is None:
        await revising.close()
    assert (await texts(memory))[0] == SHOWN.text
    assert "Which breed?" not in await texts(memory)
