"""The rig of scenarios and laboratories: two local servers, a real Valkey, bots as processes."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from memory.queue.ready_queue import GROUP
from memory.store.commands import Arg
from memory.store.keys import Keys
from tests.acceptance.bot_process import BotProcess
from tests.servers.bot_api import BOT, BotApiServer, Chat, MediaKind, Message, Pace, Person, User
from tests.servers.model_api import Call, ChatRequest, Dialect, ModelApiServer, Scripted
from tests.stored import everything_stored
from tests.valkey import free_port, opened

KEY = "sk-secret-of-the-operator"
EMBEDDINGS = "hashed-words"
US = "@ricordo_bot"
ADA = 1009
FOR_SCENARIOS = {
    "COALESCE_S": "0.05",
    # Nobody waits for the end of a lease unless a process is killed, and a busy machine must not
    # end one.
    "LEASE_S": "30",
    # What is learned besides has scenarios of its own, which turn it on.
    "LEARN": "off",
    # So have the bounds for people who write much, and the pace of what is sent.
    "USER_TURNS_PER_MINUTE": "0",
    "SENDS_PER_SECOND": "0",
}
"""What scenarios change of the defaults; laboratories measure with the defaults."""
_END_LEASES = """
for _, name in ipairs({'*:lease', '*:learner', 'poller', 'sweeper'}) do
  for _, key in ipairs(redis.call('KEYS', ARGV[1] .. name)) do redis.call('DEL', key) end
end
for _, stream in ipairs(KEYS) do
  for _, wake_up in ipairs(redis.call('XPENDING', stream, ARGV[2], '-', '+', 1000)) do
    redis.call('XCLAIM', stream, ARGV[2], wake_up[2], 0, wake_up[1], 'IDLE', 600000, 'JUSTID')
  end
end
"""


class Rig:
    """The world of a bot: Telegram and its people, a model, a Redis, and the bot's processes."""

    def __init__(
        self,
        telegram: BotApiServer,
        model: ModelApiServer,
        script: Scripted,
        environment: dict[str, str],
    ) -> None:
        self.telegram = telegram
        self.model = model
        self.script = script
        self.environment = environment
        self.bot = BotProcess(environment)
        self._dialect = model.dialect
        self._others: list[BotProcess] = []

    async def start(self, **settings: object) -> BotProcess:
        """Start the bot; keywords are settings, such as `window_messages=4`."""
        self.environment.update({name.upper(): str(value) for name, value in settings.items()})
        await self.bot.start()
        return self.bot

    async def start_with_anna(self, **settings: object) -> tuple[Person, Chat]:
        """Start the bot; return Anna and her private chat."""
        await self.start(**settings)
        return self.anna()

    async def start_with_ada(self, **settings: object) -> tuple[Person, Chat]:
        """Start the bot with an operator; return Ada, who is it, and her private chat."""
        await self.start(admin_user_ids=ADA, **settings)
        return self.person(ADA, "Ada")

    def another_bot(self, *, command: str = "", module: str = "", **settings: object) -> BotProcess:
        """Return a second process on the same Redis, not started yet."""
        changed = {name.upper(): str(value) for name, value in settings.items()}
        environment = self.environment | {"PORT": "0"} | changed
        other = BotProcess(environment, command=command, module=module)
        self._others.append(other)
        return other

    async def start_apart(self, workers: int = 1, **settings: Any) -> list[BotProcess]:
        """Start a process that takes updates in, which is `bot`, and workers; return these."""
        self.bot = self.another_bot(command="web", port=self.environment["PORT"])
        others = [
            self.another_bot(command="worker", webhook_url="", **settings) for _ in range(workers)
        ]
        await asyncio.gather(*(each.start() for each in (self.bot, *others)))
        return others

    async def restart(self) -> BotProcess:
        """Kill the bot, let the time of its leases pass, and start a new process."""
        await self.bot.kill()
        await self.end_leases()
        await self.bot.start()
        return self.bot

    async def end_leases(self) -> None:
        """End all leases except those of work items, as `LEASE_S` seconds without a process do.

        `test_workers` waits for these seconds.
        """
        streams = self.keys.ready_queue, self.keys.jobs
        await self.redis("EVAL", _END_LEASES, 2, *streams, self.keys.prefix, GROUP)

    def anna(self, language: str = "en") -> tuple[Person, Chat]:
        return self.person(1001, "Anna", language)

    def ben(self, language: str = "en") -> tuple[Person, Chat]:
        return self.person(1002, "Ben", language)

    def person(self, user_id: int, name: str, language: str = "en") -> tuple[Person, Chat]:
        person = self.telegram.user(user_id, name, language_code=language)
        return person, self.telegram.private_chat(person)

    async def ask(self, person: Person, chat: Chat, text: str, **how: Any) -> Message:
        """Send a message and return the bot's answer."""
        said = await person.say(chat, text, **how)
        return await chat.wait_for_reply(after=said)

    async def send(
        self, person: Person, chat: Chat, kind: MediaKind, *file: Any, **how: Any
    ) -> Message:
        """Send a file or a sample, as `Person.send` does, and return the bot's answer."""
        return await chat.wait_for_reply(after=await person.send(chat, kind, *file, **how))

    async def say_until_asked(self, person: Person, chat: Chat, text: str) -> Message:
        """Send a message; return it as soon as the model is asked."""
        said = await person.say(chat, text)
        await self.wait_until_asked(text)
        return said

    async def wait_until_asked(self, text: str, *, times: int = 1) -> None:
        """Wait until the model was asked `times` times with this text."""

        def asks(call: Call) -> bool:
            return isinstance(call.request, ChatRequest) and text in call.request.asked

        await self.model.wait_for(asks, count=times)

    @property
    def keys(self) -> Keys:
        return Keys(self.telegram.bot.id)

    async def redis(self, *command: Arg) -> Any:
        """Send one command to the bot's Redis; return the reply."""
        async with opened(self.environment["REDIS_URL"]) as client:
            return await client.call(*command)

    async def stored(self) -> bytes:
        """Return all that is stored in the bot's Redis, uncompressed."""
        return await everything_stored(self.environment["REDIS_URL"])

    @property
    def requests(self) -> list[ChatRequest]:
        """Every request for an answer so far."""
        return self.model.log.chats

    async def wait_until_learned(self, messages: int) -> None:
        """Wait until this process has stored this many vectors."""

        def learned() -> int:
            return sum(line["messages"] for line in self.bot.lines("learned"))

        await self.bot.wait_until(lambda: learned() >= messages)

    async def close(self) -> None:
        """End all processes; check their logs, and that the model server refused nothing.

        A scenario that gives that server another dialect expects refusals.
        """
        for process in (self.bot, *self._others):
            await process.stop()
        for process in (self.bot, *self._others):
            process.check_log()
        if self.model.dialect is self._dialect:
            assert self.model.log.refusals == []


def environment_of(
    folder: Path, telegram_url: str, token: str, model_url: str, redis: str
) -> dict[str, str]:
    """Return the environment of a bot between these servers, with its home in the folder."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TELEGRAM_BOT_TOKEN": token,
        "TELEGRAM_API_URL": telegram_url,
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": model_url,
        "OPENAI_EMBEDDING_MODEL": EMBEDDINGS,
        "REDIS_URL": redis,
        "HINTS": "off",
    }


@asynccontextmanager
async def open_rig(
    redis: str,
    folder: Path,
    mode: Literal["polling", "webhook"] = "polling",
    pace: Pace | None = None,
    bot: User = BOT,
    settings: Mapping[str, str] = FOR_SCENARIOS,
) -> AsyncIterator[Rig]:
    """Give a rig whose bot is not started yet and has these settings.

    `pace` says how Telegram repeats its deliveries.
    """
    script = Scripted()
    model = ModelApiServer(script, dialect=Dialect(api_key=KEY))
    async with BotApiServer(bot=bot, pace=pace) as telegram, model:
        port = str(free_port())
        environment = environment_of(folder, telegram.url, telegram.token, model.base_url, redis)
        environment |= {"PORT": port, **settings}
        if mode == "webhook":
            environment["WEBHOOK_URL"] = f"http://127.0.0.1:{port}"
        rig = Rig(telegram, model, script, environment)
        try:
            yield rig
        finally:
            await rig.close()
