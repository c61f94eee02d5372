"""The rig of the black-box tests: two local servers, a real Valkey, and the bot as a process."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import orjson

from memory.queue.ready_queue import GROUP
from memory.store.commands import Arg
from memory.store.keys import Keys
from tests.acceptance.forked import Forked
from tests.servers.bot_api import BOT, BotApiServer, Chat, MediaKind, Message, Pace, Person, User
from tests.servers.model_api import Call, ChatRequest, Dialect, ModelApiServer, Scripted
from tests.stored import everything_stored
from tests.valkey import free_port, opened

ROOT = Path(__file__).parents[2]
KEY = "sk-secret-of-the-operator"
US = "@ricordo_bot"
START_S = 60
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


class BotProcess:
    """One bot, whose log is read line by line.

    A launcher forks it if there is one, otherwise `python -m bot` starts it. `command` follows
    that, such as `web`. It runs in the folder that `PWD` names.
    """

    launcher: ClassVar[Callable[[Mapping[str, str]], str] | None] = None

    def __init__(
        self, environment: dict[str, str], *, from_scratch: bool = False, command: str = ""
    ) -> None:
        self._environment = environment
        self._command = command.split()
        self._from_scratch = from_scratch
        self._process: asyncio.subprocess.Process | Forked | None = None
        self._reading: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()
        self.log: list[dict[str, Any]] = []
        self.raw: list[str] = []

    @property
    def is_running(self) -> bool:
        """Whether it was started and its end was not seen yet."""
        return self._process is not None and self._process.returncode is None

    def peak_mb(self) -> int:
        """Return the most memory that the bot's process has taken so far (Linux)."""
        assert self._process
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1024

    def cpu_s(self) -> float:
        """Return the CPU time of the bot's main thread, which runs the event loop (Linux)."""
        assert self._process
        return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[0]) / 1e9

    async def start(self, *, until: str = "serving") -> None:
        """Start the bot; return when the log reports `until`."""
        seen = len(self.log)
        self._process = await start_process(
            self._environment, self._command, from_scratch=self._from_scratch
        )
        self._reading = asyncio.create_task(self._read())
        await self.wait_for_log(until, after=seen, timeout_s=START_S)

    async def stop(self) -> int:
        """End the bot as a platform does; return its exit status."""
        return await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """End the bot as a crash does."""
        await self._end(signal.SIGKILL)

    def hang_up(self) -> None:
        """Send the signal at which servers read their settings again."""
        self._signal(signal.SIGHUP)

    def pause(self) -> None:
        """Stop the bot anywhere, as a suspended machine does."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    async def exit_status(self, within_s: float = START_S) -> int:
        """Wait until the bot ends by itself; return its exit status."""
        assert self._process
        assert self._reading
        async with asyncio.timeout(within_s):
            await self._reading
            return await self._process.wait()

    async def wait_for_log(
        self, event: str, *, after: int = 0, timeout_s: float = 60, **fields: object
    ) -> dict[str, Any]:
        """Return the first line from `after` on that reports `event`, with these fields."""
        wanted = {"event": event, **fields}.items()

        def found() -> dict[str, Any] | None:
            return next((line for line in self.log[after:] if wanted <= line.items()), None)

        try:
            async with asyncio.timeout(timeout_s), self._news:
                await self._news.wait_for(found)
        except TimeoutError:
            raise TimeoutError(f"no {event!r} in the log:\n" + "\n".join(self.raw[-30:])) from None
        line = found()
        assert line
        return line

    async def wait_until(self, is_true: Callable[[], bool], timeout_s: float = 60) -> None:
        """Wait until a condition holds; it is checked after every line of the log."""
        async with asyncio.timeout(timeout_s), self._news:
            await self._news.wait_for(is_true)

    def check_log(self) -> None:
        """Fail if the log holds an unhandled error or a secret."""
        text = "\n".join(self.raw)
        assert "Traceback" not in text, text[-4000:]
        for name in ("OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN"):
            secret = self._environment[name]
            assert not secret or secret not in text

    async def _end(self, number: signal.Signals) -> int:
        if self._process is None or self._process.returncode is not None:
            return self._process.returncode or 0 if self._process else 0
        self._signal(number)
        try:
            return await self.exit_status(60)
        except TimeoutError:
            # A process that is left alive would keep the event loop of its test from closing.
            self._signal(signal.SIGKILL)
            await self._process.wait()
            raise TimeoutError("the bot did not end:\n" + "\n".join(self.raw[-30:])) from None

    def _signal(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    async def _read(self) -> None:
        assert self._process
        assert self._process.stdout
        async for raw in self._process.stdout:
            line = raw.decode().rstrip()
            try:
                entry = orjson.loads(line)
            except orjson.JSONDecodeError:
                entry = {"event": line}
            async with self._news:
                self.raw.append(line)
                self.log.append(entry)
                self._news.notify_all()


class Rig:
    """Everything that a scenario uses."""

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

    def another_bot(
        self, *, from_scratch: bool = False, command: str = "", **settings: object
    ) -> BotProcess:
        """Return a second process on the same Redis, not started yet."""
        changed = {name.upper(): str(value) for name, value in settings.items()}
        environment = self.environment | {"PORT": "0"} | changed
        other = BotProcess(environment, from_scratch=from_scratch, command=command)
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
            return sum(line["messages"] for line in self.bot.log if line["event"] == "learned")

        await self.bot.wait_until(lambda: learned() >= messages)

    async def close(self) -> None:
        """End all processes and check their logs."""
        for process in (self.bot, *self._others):
            await process.stop()
        for process in (self.bot, *self._others):
            process.check_log()


async def start_process(
    environment: dict[str, str],
    command: Sequence[str],
    *,
    from_scratch: bool = False,
    log: BinaryIO | None = None,
) -> asyncio.subprocess.Process | Forked:
    """Start a bot, forked if there is a launcher; it writes to `log`, or to `stdout` without one.

    `command` follows `python -m bot`.
    """
    if BotProcess.launcher and not from_scratch:
        preloading = {k: v for k, v in environment.items() if k.startswith(("LD_", "FAKETIME"))}
        return await Forked.start(BotProcess.launcher(preloading), environment, command, log)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", *command),
        cwd=environment.get("PWD", ROOT),
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=log or asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=2**22,
    )


async def run_command(
    environment: dict[str, str], *command: str, from_scratch: bool = False
) -> tuple[int, str]:
    """Run a command, such as `check`, to its end, forked if possible; return status and output."""
    process = await start_process(environment, command, from_scratch=from_scratch)
    assert process.stdout
    output = await process.stdout.read()
    return await process.wait(), output.decode()


@asynccontextmanager
async def open_rig(
    redis: str,
    folder: Path,
    mode: Literal["polling", "webhook"] = "polling",
    pace: Pace | None = None,
    bot: User = BOT,
) -> AsyncIterator[Rig]:
    """Give a rig whose bot is not started yet; `pace` says how Telegram repeats its deliveries."""
    script = Scripted()
    model = ModelApiServer(script, dialect=Dialect(api_key=KEY))
    async with BotApiServer(bot=bot, pace=pace) as telegram, model:
        port = free_port()
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "TELEGRAM_API_URL": telegram.url,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_EMBEDDING_MODEL": "hashed-words",
            "REDIS_URL": redis,
            "PORT": str(port),
            "COALESCE_S": "0.05",
            # Nobody waits for the end of a lease unless a process is killed, and a busy machine
            # must not end one.
            "LEASE_S": "30",
            # What is learned besides has scenarios of its own, which turn it on.
            "LEARN": "off",
            "HINTS": "off",
            # So have the bounds for people who write much, and the pace of what is sent.
            "USER_TURNS_PER_MINUTE": "0",
            "SENDS_PER_SECOND": "0",
        }
        if mode == "webhook":
            environment["WEBHOOK_URL"] = f"http://127.0.0.1:{port}"
        rig = Rig(telegram, model, script, environment)
        try:
            yield rig
        finally:
            await rig.close()
