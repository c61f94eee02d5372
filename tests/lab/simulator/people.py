"""Two people who write messages, send commands and press buttons.

Telegram delivers each update until a bot has accepted it: late, twice, or out of order.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bot.telegram.errors import NotAccepted
from bot.telegram.updates import ButtonPress, IncomingMessage, Sender
from memory.store.keys import Scope
from tests.lab.simulator import markers
from tests.lab.simulator.audit_turns import Violated
from tests.lab.simulator.bot import SimulatedBot
from tests.lab.simulator.chance import Chance
from tests.lab.simulator.loop import BEGAN, Died, Process, VirtualLoop
from tests.lab.simulator.telegram import Posted, SimulatedTelegram

ANN: Final = Sender(7, "Ann", "Ann")
BOB: Final = Sender(8, "Bob", "Bob")
GROUP: Final = -9
_KINDS: Final = (
    *[
        ("text",) * 8
        + ("new", "help", "clear", "clear", "forget", "delete_message", "delete_message")
    ]
    * 2,
    (
        *("text", "text", "text", "text", "edit", "edit", "edit", "stop", "stop"),
        *("retry", "delete_message", "clear"),
    ),
    ("text", "text", "forget"),
    ("text", "text", "text", "clear", "delete_message"),
)
"""Kinds of actions that a schedule draws from: a mixture, edits and stops, or erasures."""

Running = tuple[Process, SimulatedBot]


@dataclass(frozen=True, slots=True)
class Action:
    """What a person does.

    `kind` is text, `edit` of an earlier text, a command, or `delete_message` (/forget as a reply).
    """

    after_s: float
    sender: Sender
    chat_id: int
    kind: str


def draw_kinds(chance: Chance, *, edits: bool) -> Sequence[str]:
    """Draw the kinds of actions of a schedule; no edits if not wanted."""
    return chance.random.choice(_KINDS if edits else [e for e in _KINDS if "edit" not in e])


def draw_actions(chance: Chance, kinds: Sequence[str], *, alone: bool) -> list[Action]:
    """Draw what people do: bursts, pauses, and sometimes a command."""
    draw = chance.random
    done = []
    for _ in range(draw.randint(3, 9)):
        sender = ANN if alone else draw.choice((ANN, ANN, BOB))
        chat_id = draw.choice((sender.id, GROUP, GROUP))
        done.append(
            Action(draw.choice((0.0, 0.1, 0.4, 1.5, 5.0)), sender, chat_id, draw.choice(kinds))
        )
    return done


class People:
    """Performs actions and presses buttons; `running` returns the bots that run."""

    def __init__(
        self,
        loop: VirtualLoop,
        chance: Chance,
        telegram: SimulatedTelegram,
        running: Callable[[], list[Running]],
    ) -> None:
        self._loop = loop
        self._chance = chance
        self._telegram = telegram
        self._running = running
        self._updates: list[IncomingMessage | ButtonPress] = []
        self._undelivered: Counter[str] = Counter()
        self._on_the_way: set[asyncio.Task[None]] = set()
        self._forgetting: dict[int, int] = {}
        telegram.on_posted = self._read

    @property
    def is_done(self) -> bool:
        """Whether Telegram has delivered everything."""
        return not self._on_the_way

    def has_undelivered(self, tag: str) -> bool:
        """Tell whether Telegram has not delivered all updates of a conversation yet."""
        return self._undelivered[tag] > 0

    def sent_at(self, update_id: int) -> int:
        """Return when a message was sent, in Unix seconds."""
        update = self._updates[update_id - 1]
        return update.sent_at if isinstance(update, IncomingMessage) else 0

    def is_text(self, update_id: int) -> bool:
        """Tell whether an update is a text message."""
        update = self._updates[update_id - 1]
        return isinstance(update, IncomingMessage) and update.kind == "text"

    def message_of(self, update_id: int) -> int:
        """Return the message that an update is about; an edit has that of the text."""
        return self._updates[update_id - 1].message_id

    def may_be_silent(self, update_id: int) -> bool:
        """Tell whether an update needs no answer: an edit, or a press of "ask again"."""
        update = self._updates[update_id - 1]
        return isinstance(update, ButtonPress) or update.kind == "edit"

    def forgetting(self, person: int) -> int:
        """Return the newest update in which a person confirmed `/forget`, 0 for none."""
        return self._forgetting.get(person, 0)

    @property
    def written(self) -> list[IncomingMessage]:
        return [update for update in self._updates if isinstance(update, IncomingMessage)]

    async def act(self, plan: list[Action]) -> None:
        for action in plan:
            await asyncio.sleep(action.after_s)
            self._send(self._message(action))

    def _message(self, action: Action) -> IncomingMessage:
        update_id = len(self._updates) + 1
        own = [m for m in self.written if m.chat_id == action.chat_id and m.sender == action.sender]
        texts = [message for message in own if message.kind == "text"]
        if action.kind == "edit" and texts:
            return replace(
                self._chance.random.choice(texts[-3:]),
                update_id=update_id,
                kind="edit",
                text=markers.user_text(update_id),
                edited_at=int(BEGAN + self._loop.now),
            )
        is_text = action.kind in ("text", "edit")
        return IncomingMessage(
            update_id=update_id,
            chat_id=action.chat_id,
            topic_id=0,
            is_group=action.chat_id < 0,
            message_id=self._telegram.next_id(),
            sent_at=int(BEGAN + self._loop.now),
            sender=action.sender,
            kind="text" if is_text else "command",
            text=markers.user_text(update_id) if is_text else "",
            command="" if is_text else action.kind.replace("delete_message", "forget"),
            replied_to=own[-1].message_id if action.kind == "delete_message" and own else 0,
        )

    def _read(self, posted: Posted) -> None:
        """Read a message of the bot; press a button under it once, twice, or not at all."""
        draw = self._chance.random
        if not posted.part.buttons or draw.random() < 0.2:
            return
        erase, *others = posted.part.buttons[0]
        verb, _, _ = erase.callback_data.partition(":")
        presser = BOB if posted.chat_id == BOB.id else ANN
        if posted.chat_id == GROUP and draw.random() < 0.5:
            presser = BOB
        chosen = others[0] if draw.random() < 0.1 and others else erase
        for _ in range(draw.choice((1, 1, 2))):
            self._loop.call_later(
                draw.uniform(0.05, 4), self._press, posted, presser, chosen.callback_data, verb
            )

    def _press(self, posted: Posted, presser: Sender, data: str, verb: str) -> None:
        update_id = len(self._updates) + 1
        pressed = ButtonPress(
            update_id,
            f"q{update_id}",
            posted.chat_id,
            0,
            posted.chat_id < 0,
            posted.id,
            presser,
            data,
        )
        if verb == "forget":
            self._forgetting[presser.id] = update_id
        self._send(pressed)

    def _send(self, update: IncomingMessage | ButtonPress) -> None:
        self._updates.append(update)
        fate = self._chance.fate("intake")
        after_s = self._chance.random.uniform(0, 9) if fate == "late" else 0
        for _ in range(2 if fate == "twice" else 1):
            task = self._loop.create_task(self._deliver(update, after_s))
            self._on_the_way.add(task)
            task.add_done_callback(self._on_the_way.discard)

    async def _deliver(self, update: IncomingMessage | ButtonPress, after_s: float) -> None:
        """Offer an update to one bot after the other until one has accepted it."""
        tag = Scope.of_chat(update.chat_id).tag
        draw = self._chance.random
        self._undelivered[tag] += 1
        await asyncio.sleep(after_s)
        while True:
            await asyncio.sleep(self._chance.latency() + draw.choice((0, 0, 0, 0.2, 1)))
            bots = self._running()
            if not bots:
                await asyncio.sleep(0.3)
                continue
            process, bot = draw.choice(bots)
            raw = {"update_id": update.update_id, "value": update}
            accepting = process.start(bot.intake.accept(raw))
            await asyncio.wait({accepting})
            error = Died() if accepting.cancelled() else accepting.exception()
            if error is not None and not isinstance(error, NotAccepted | Died | Violated):
                self._telegram.auditor.violated("every error is expected", repr(error))
            if error is None and self._chance.fate("intake") != "acknowledgement lost":
                self._undelivered[tag] -= 1
                if not self._undelivered[tag]:
                    self._telegram.auditor.delivered(tag)
                return
            await asyncio.sleep(draw.uniform(0.2, 3))
