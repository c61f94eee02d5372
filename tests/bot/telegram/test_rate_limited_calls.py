"""All calls to a chat share its rate limit. Typing may be left out, an answer waits its time."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from bot.reply.parts import Part
from bot.telegram.bot_api import TelegramClient
from bot.telegram.chat import Destination
from bot.telegram.errors import FloodWait
from bot.telegram.rate_limit import SendRateLimiter
from bot.telegram.telegram_chat import TelegramChat
from bot.turn.deliver import Deliverer, Delivery
from bot.turn.outbox import Outbox
from memory.behaviors.tool_output import OutgoingFile
from tests.bot.telegram.doubles import send_rates_on
from tests.bot.telegram.scripted_api import SENT, TOKEN, ScriptedApi, refusal
from tests.lab.simulator.client import DirectClient
from tests.quiet_chat import no_export

ANNA, BEN = 7, 8
PART = Part("hi")
WITH_FILE = Part("hi", file=OutgoingFile("a.txt", b"a"))
EVERY_KIND = ("say", "edit", "delete", "typing")


async def unmarked(_: int, __: tuple[int, ...]) -> None:
    """Mark nothing: no turn belongs to these messages."""


@dataclass
class Speaker:
    """A chat and a deliverer with one rate limit, and a clock that only their waits move."""

    api: ScriptedApi
    now: float = 50.0
    waited_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Three at once, for the bot as for a private chat. The bot gets one more every 0.1 s.
        send_rates = send_rates_on(DirectClient(lambda: self.now))
        self.limiter = SendRateLimiter(12, send_rates, lambda: self.now)
        self.client = TelegramClient(TOKEN, self.api.url)
        self.chat = TelegramChat(self.client, self.limiter)
        self.deliverer = Deliverer(self.chat, 10.0, no_export, lambda _: None, pause=self._pause)

    async def call(self, kind: str, chat_id: int = ANNA) -> None:
        """Make one call; "say" sends as the bot does, with a permit taken before."""
        match kind:
            case "say":
                await self.say(PART, chat_id=chat_id)
            case "send":
                await self.chat.send(Destination(chat_id), PART)
            case "send_file":
                await self.chat.send(Destination(chat_id), WITH_FILE)
            case "edit":
                await self.chat.edit(chat_id, 9, PART)
            case "delete":
                await self.chat.delete(chat_id, 9)
            case "typing":
                await self.chat.show_typing(Destination(chat_id))

    async def say(self, *parts: Part, chat_id: int = ANNA) -> Delivery:
        if not self.api.acts:
            self.api.script(*[SENT] * len(parts))
        outbox = Outbox(Destination(chat_id), parts, said="said")
        return await self.deliverer.deliver(outbox, 0, (), unmarked)

    async def _pause(self, seconds: float) -> None:
        self.waited_s.append(round(seconds, 6))
        self.now += seconds


@pytest.fixture
async def speaker(api: ScriptedApi) -> AsyncIterator[Speaker]:
    each = Speaker(api)
    yield each
    await each.client.close()


@pytest.mark.parametrize(("chats", "expected_s"), [((7, 7, 7, 7), 1.0), ((7, 8, 9, 10), 0.1)])
@pytest.mark.parametrize("kind", EVERY_KIND)
async def test_every_kind_of_call_takes_a_permit_of_its_chat_and_of_the_bot(
    speaker: Speaker, kind: str, chats: tuple[int, ...], expected_s: float
) -> None:
    await speaker.call(kind, chats[0])
    for chat_id in chats[1:3]:
        await speaker.call("say", chat_id)
    assert speaker.waited_s == []
    await speaker.call("say", chats[3])
    assert speaker.waited_s == [expected_s]
    assert len(speaker.api.calls) == 4


@pytest.mark.parametrize("kind", ["edit", "delete"])
async def test_an_edit_or_delete_counts_and_never_waits(speaker: Speaker, kind: str) -> None:
    """A button's receipt is an edit. While it waited, intake would accept no other update."""
    for _ in range(3):
        await speaker.call("say")
    await speaker.call(kind)
    assert speaker.waited_s == []
    await speaker.call("say")
    assert speaker.waited_s == [2]


async def test_all_parts_of_an_answer_are_sent_in_order(speaker: Speaker, api: ScriptedApi) -> None:
    """A 429 of Telegram adds its wait to the waits of the rate limit."""
    flood = refusal(429, "Too Many Requests: retry after 7", retry_after=7)
    api.script(*[SENT] * 5, flood, *[SENT] * 25)
    texts = [str(number) for number in range(30)]
    delivery = await speaker.say(*map(Part, texts))
    assert (delivery.outcome, len(delivery.sent)) == ("delivered", 30)
    assert [call.parameters["text"] for call in api.calls] == [*texts[:6], *texts[5:]]
    assert speaker.waited_s[:5] == [1, 1, 1, 7, 1]


@pytest.mark.parametrize("kind", ["send", "send_file", "edit", "delete", "typing"])
async def test_any_calls_429_closes_its_chat(speaker: Speaker, api: ScriptedApi, kind: str) -> None:
    api.script(refusal(429, "Too Many Requests: retry after 7", retry_after=7))
    with pytest.raises(FloodWait):
        await speaker.call(kind)
    api.acts.clear()
    await speaker.call("typing")
    assert len(api.calls) == 1
    await speaker.call("say", BEN)
    assert speaker.waited_s == []
    await speaker.call("say")
    assert speaker.waited_s == [7]
    assert [call.parameters["chat_id"] for call in api.calls[1:]] == ["8", "7"]
