"""How many turns and files a person may have at once, and how many answers in a time.

Without a bound one person could take every slot of a worker. A turn without a permit gives its
lease back and waits in Redis: it holds no slot, and its conversation keeps its order.

Commands and stored replies have permits of their own, so that they do not wait for a person's slow
answers. They need one because they may wait for the rate limit of their chat.

Each process counts permits for itself. Two workers have twice as many slots, and one person may
have twice as many turns.

A person who has used up their quota gets one notice, then no answer for a while. Only what asks a
model counts against it: of the commands, only `/retry`. Operators are exempt, also from the budget
of the month. A message that is not answered is not remembered, and the notice says so.

In a group all members share Telegram's 20 messages a minute. So each of them has a share, and
commands and the messages of operators count against it. Tasks do not count.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import structlog

from bot.commands.sentences import Sentences
from bot.costs import Budget
from bot.telegram.updates import from_bytes
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.limits.quotas import Verdict
from memory.limits.usage import next_day
from memory.queue.open_turn import OpenTurn, Run
from memory.scopes.history import ChatHistory
from memory.store.errors import StoreError
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

MAX_TURNS_PER_PERSON = 4
"""Answers, and as many commands, that a process works on at once for one person."""
MAX_UPLOADS = 2
"""Files that a process reads at once for all people: each may take a processor and memory."""
MAX_PICTURES = 10  # pictures of one turn; an album has at most so many
SHORT_SOUND_BYTES = 2**20  # four minutes of a voice message; a longer sound counts as a file
_MAX_SHOWN = 20
"""Pictures that models look at at once, in all turns of a process: some 60 MB of its memory."""
_MAX_WAITING = 10_000
"""Conversations that are woken when a permit is free; others wait until their turn is due."""
_Kind = Literal["turns", "short", "uploads", "pictures"]
_Permit = tuple[_Kind, int]
"""What is counted, and for which person; 0 stands for all people."""
_NAMELESS = -1
"""Stands for all who write in the name of a chat: one person may have any number of channels."""
_NAMELESS_SHARE = 2  # together they may have as much as this many people


@dataclass(slots=True)
class Permits:
    """Counts what is under way and remembers what waits; `wake` wakes a conversation.

    One person may have `max_turns` answers, as many short turns, and one upload at once.
    """

    max_turns: int
    wake: Callable[[Scope], Awaitable[None]]
    _under_way: Counter[_Permit] = field(default_factory=Counter)
    _held: dict[Run, list[_Permit]] = field(default_factory=dict)
    _waiting: dict[_Permit, dict[Scope, None]] = field(default_factory=dict)

    def take(self, opened: OpenTurn, *, is_only_sent: bool = False) -> bool:
        """Give a turn its permits, or note that its conversation waits; call `end` after the turn.

        `is_only_sent` says that the reply or a notice only has to be sent.
        """
        needed = _needed(opened, is_only_sent=is_only_sent)
        for permit, count in Counter(needed).items():
            # A stopped turn is never deferred: only this run knows what the person saw of it.
            if count > self._free(permit) and not opened.is_stopped:
                waiting = self._waiting.setdefault(permit, {})
                if len(waiting) < _MAX_WAITING:
                    waiting[opened.lease.conversation] = None
                return False
        self._under_way.update(needed)
        self._held[opened.run] = needed
        return True

    async def end(self, run: Run, *kinds: _Kind) -> None:
        """Take back the permits of a run, or those of these kinds; wake conversations that wait.

        A process may have two runs of one turn: one that has lost the lease and has not ended yet.
        """
        held = self._held.pop(run, [])
        done = [permit for permit in held if not kinds or permit[0] in kinds]
        if left := [permit for permit in held if permit not in done]:
            self._held[run] = left
        self._under_way.subtract(done)
        woken: dict[Scope, None] = {}
        for permit in done:
            waiting = self._waiting.get(permit, {})
            for conversation in list(waiting)[: max(0, self._free(permit))]:
                woken[conversation] = waiting.pop(conversation)
            if not waiting:
                self._waiting.pop(permit, None)
            if not self._under_way[permit]:
                del self._under_way[permit]
        for conversation in woken:
            with suppress(StoreError):  # its turn is tried again when it is due
                await self.wake(conversation)

    def _free(self, permit: _Permit) -> int:
        kind, person = permit
        max_turns = self.max_turns * (_NAMELESS_SHARE if person == _NAMELESS else 1)
        limits = {"pictures": _MAX_SHOWN, "uploads": 1 if person else MAX_UPLOADS}
        return limits.get(kind, max_turns) - self._under_way[permit]


def _needed(opened: OpenTurn, *, is_only_sent: bool) -> list[_Permit]:
    first = opened.entries[0]
    person = first.sender_id if first.sender_id > 0 else _NAMELESS
    if opened.is_stopped:
        return [("turns", person)]
    if is_only_sent:
        return [("short", person)]
    # Commands and files are alone. A question that is answered again has "[photo]" in its texts.
    sent = [
        from_bytes(each.body)
        for each in opened.entries
        if each.is_alone or b"photo" in each.body or b'"voice"' in each.body
    ]
    if first.is_alone and sent[0].kind == "command":
        return [("short", person)]
    photos = [m for each in sent for m in each.media if m.kind == "photo"][:MAX_PICTURES]
    sounds = [each.file for each in sent if each.kind == "voice" and each.file]
    has_long_sound = not all(0 < each.nbytes <= SHORT_SOUND_BYTES for each in sounds)
    needed: list[_Permit] = [("turns", person)]
    if photos or has_long_sound or any(each.is_file for each in sent):
        needed += [("uploads", person), ("uploads", 0)]
    return needed + [("pictures", 0)] * len(photos)


_ERASING = frozenset({"clear", "forget", "stop", "memory", "off"})
"""Commands that erase or stop: if one is refused, it gets a notice, each once a minute."""


@dataclass(frozen=True, slots=True)
class QuotaStep:
    """Counts a message; answers with a notice once a person's quota or the budget is used up."""

    budget: Budget
    sentences: Sentences

    async def answer(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Return None if the message may be answered, else a notice; later ones are empty.

        A question that is answered again was admitted when it was taken out of the history.
        A task must not be missed in silence, so its notice comes each time.
        """
        if request.last.replaced and request.last.replaced.question:
            return None
        if request.last.kind == "edit" and (refused := await self.share(request)):
            return refused
        # The name of a turn is that of its first update, also when it begins again. An edit is an
        # update of its own, so it counts.
        turn = f"{history.conversation.tag}/{request.updates[0].update_id}"
        verdict = await self.admit(request.payer, turn, is_task=request.last.is_task)
        return self._refusal(request, verdict)

    async def share(self, request: Request) -> Outbox | None:
        """Return None, or a notice once a member of a group has used up their share of its answers.

        Tasks do not count: what somebody planned is done. The command `edited` only says what was
        done already.
        """
        last = request.last
        if not last.is_group or last.is_task or last.command == "edited":
            return None
        name = str(request.updates[0].update_id)
        admit = partial(self.budget.quotas.admit_in_group, last.chat_id, last.sender.id, name)
        if last.kind == "command" and last.command in _ERASING:
            return self._refusal(request, await admit(last.command))
        verdict = await admit("message")
        is_asking = verdict is Verdict.ADMITTED and last.kind != "command"
        if not is_asking and verdict is not Verdict.SILENCED:
            for_all = await admit("all")
            verdict = verdict if for_all is Verdict.ADMITTED else for_all
        return self._refusal(request, verdict)

    def _refusal(self, request: Request, verdict: Verdict) -> Outbox | None:
        """Return the notice of a verdict, without parts if it was told, None if there is none."""
        if verdict is Verdict.ADMITTED:
            return None
        log.warning("quota used up", user=request.payer, verdict=verdict.value)
        is_told, is_edit = verdict is Verdict.SILENCED, request.last.kind == "edit"
        key = f"quota.{'edited_' * is_edit}{'task' if request.last.is_task else verdict.value}"
        said = () if is_told else self.sentences.say(request.language, key, unix=next_day())
        return Outbox(request.to, said, is_unread=True)

    async def admit(self, person: int, turn: str, *, is_task: bool = False) -> Verdict:
        """Count a turn and say whether it may be answered; raise `StoreError`.

        A person is told once a day that the bot's budget is used up.
        """
        if person in self.budget.settings.admin_user_ids:
            return Verdict.ADMITTED
        quotas, each = self.budget.quotas, self.budget.quota
        if await self.budget.is_used_up():
            is_first = is_task or await quotas.is_first_today(person, turn, Verdict.BUDGET)
            return Verdict.BUDGET if is_first else Verdict.SILENCED
        if not (each.turns or each.tokens_per_day):
            return Verdict.ADMITTED
        return await quotas.admit(person, turn, each, is_task=is_task)
