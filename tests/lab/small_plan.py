"""Runs the bot in a container of 512 MB: an ordinary day, then attacks of people and servers.

`python -m tests.lab.small_plan` prints a table. It needs root and a writable cgroup (version 1 or
2) for memory, and about a quarter of an hour. `--only WORD` runs what has this word in its name.
Memory is what the bot's process and those of its parsers have themselves, without cached files,
read every 20 ms; the kernel kills a process of the group that would take more than the limit.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import mcp_types as types
import orjson

from tests.acceptance.rig import ROOT, BotProcess, Rig, open_rig
from tests.bot.parsing.office import word, zipped
from tests.hostile import attacks as hostile
from tests.hostile.test_model_server import PACKED, STREAM, STREAMS, base_url, gzipped, serving
from tests.hostile.untrusted_files import export_of, photo, picture_of_segments
from tests.servers.bot_api import Upload
from tests.servers.mcp_shop import Shop, ShopServer
from tests.servers.model_api import Reply, tool_call
from tests.servers.web_site import HTML, Site
from tests.valkey import ValkeyServer

LIMIT_MB = 512
_MB = 2**20
_ANSWER_S = 120
_SHOWN_CHARS = 60
_ROOT = Path("/sys/fs/cgroup")
_WITH_LOCAL_SITES = (
    "import sys; from tests.acceptance.local_sites import read_local_sites_only as local; local(); "
    "from bot.__main__ import main; sys.exit(main())"
)

Scene = Callable[[Rig], Coroutine[None, None, object]]
Served = AbstractAsyncContextManager[tuple[dict[str, object], Scene]]
"""A hostile server while the block lasts: the bot's settings, and a scene that uses it."""


@dataclass
class Group:
    """A memory cgroup with the limit."""

    folder: Path
    is_v2: bool

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator["Group"]:
        """Make a group; raise `OSError` if that is not allowed here."""
        is_v2 = (_ROOT / "cgroup.controllers").exists()
        group = cls((_ROOT if is_v2 else _ROOT / "memory") / f"ricordo-{os.getpid()}", is_v2)
        group.folder.mkdir()
        try:
            name = "memory.max" if is_v2 else "memory.limit_in_bytes"
            (group.folder / name).write_text(str(LIMIT_MB * _MB))
            yield group
        finally:
            for _ in range(100):
                with suppress(OSError):
                    group.folder.rmdir()
                    break
                time.sleep(0.1)

    @property
    def mb(self) -> int:
        """Memory that the processes themselves have."""
        stated = dict(
            line.split() for line in (self.folder / "memory.stat").read_text().splitlines()
        )
        return int(stated["anon" if self.is_v2 else "total_rss"]) // _MB

    @property
    def killed(self) -> int:
        """Processes that the kernel has killed because the limit was reached."""
        name = "memory.events" if self.is_v2 else "memory.oom_control"
        lines = (self.folder / name).read_text().splitlines()
        return next((int(each.split()[1]) for each in lines if each.startswith("oom_kill ")), 0)


class SmallBot(BotProcess):
    """A bot that is started inside the group."""

    def __init__(self, environment: dict[str, str], group: Group) -> None:
        super().__init__(environment, from_scratch=True)
        self._group = group

    async def _start(self) -> asyncio.subprocess.Process:
        bot = f"-c '{_WITH_LOCAL_SITES}'" if "LOCAL_SITES" in self._environment else "-m bot"
        entering = f"echo $$ > {self._group.folder}/cgroup.procs && exec $0 {bot}"
        return await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", entering, sys.executable),
            cwd=ROOT,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=2**22,
        )


@dataclass
class Watch:
    """What happened during a scene."""

    peak_mb: int = 0
    waits: list[float] = field(default_factory=list)

    async def look(self, group: Group) -> None:
        """Note the memory until cancelled."""
        while True:
            self.peak_mb = max(self.peak_mb, group.mb)
            await asyncio.sleep(0.02)

    async def ask(self, rig: Rig) -> None:
        """Ask as another person until cancelled."""
        person, chat = rig.person(1999, "Ben")
        while True:
            began = time.monotonic()
            sent = await person.say(chat, "Are you there?")
            await chat.wait_for_reply(after=sent, timeout_s=_ANSWER_S)
            self.waits.append(time.monotonic() - began)
            await asyncio.sleep(0.2)


async def send(rig: Rig, *files: Upload, person: int = 1001) -> str:
    """Send files one after the other; return the beginning of the answer to the last one."""
    sender, chat = rig.person(person, f"Person {person}")
    for file in files:
        sent = await sender.send(chat, "document", file)
    reply = await chat.wait_for_reply(after=sent, timeout_s=_ANSWER_S)
    return " ".join(reply.text.split())[:_SHOWN_CHARS]


async def talk(rig: Rig) -> None:
    """24 people, five messages each."""

    async def talk(number: int) -> None:
        person, chat = rig.person(2000 + number, f"Person {number}")
        for turn in range(5):
            sent = await person.say(chat, f"Message {turn} about boat {number}, in Oulu, in May")
            await chat.wait_for_reply(after=sent, timeout_s=_ANSWER_S)

    await asyncio.gather(*map(talk, range(24)))


def camera() -> Upload:
    """Return a photo of 12 megapixels and 5 MB."""
    return photo(4_000, 3_000, 5)


def book() -> Upload:
    """Return a Word file of 4.5 MB with 400 kB of text."""
    chance = random.Random(7)
    text = f"<w:p><w:r><w:t>{'A whale sings. ' * 9}</w:t></w:r></w:p>" * 3_000
    head = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    body = f"{head}<w:body>{text}</w:body></w:document>"
    picture = chance.randbytes(int(4.4 * _MB))
    parts: dict[str, str | bytes] = {"word/document.xml": body, "word/media/a.bin": picture}
    return Upload(zipped(parts, word()), "book.docx")


async def eight_photos(rig: Rig) -> None:
    await asyncio.gather(*(send(rig, camera(), person=3000 + number) for number in range(8)))


async def all_at_once(rig: Rig) -> None:
    """Texts, photos and an album at the same time."""
    text = Upload(b"The boat lies in Oulu in May. " * 14_600, "long.txt", "text/plain")
    await asyncio.gather(
        *(send(rig, text, person=4000 + number) for number in range(4)),
        *(send(rig, camera(), person=4100 + number) for number in range(4)),
        send(rig, *[camera()] * 10, person=4200),
        talk(rig),
    )


def sending(*files: Upload) -> Scene:
    """Return a scene in which one person sends files."""
    return lambda rig: send(rig, *files)


def attacking(attack: hostile.Attack) -> Scene:
    """Return a scene in which a stranger carries out an attack of the suite."""

    async def attack_it(rig: Rig) -> None:
        mallory, chat = rig.person(1666, "Mallory")
        group = rig.telegram.group("Mallory's", [mallory])
        await attack.run(hostile.Scene(rig, mallory, chat, group))

    return attack_it


async def eight_ask(rig: Rig, text: str) -> None:
    async def ask(number: int) -> None:
        person, chat = rig.person(5000 + number, f"Person {number}")
        sent = await person.say(chat, text)
        await chat.wait_for_reply(after=sent, timeout_s=_ANSWER_S)

    await asyncio.gather(*map(ask, range(8)))


def using(rig: Rig, tool: str, **arguments: object) -> None:
    """Let the model call a tool when it is asked for."""
    rig.script.on(lambda asked: asked.messages[-1].role == "tool", "Done.")
    rig.script.on("Please use", Reply(tool_calls=(tool_call(tool, **arguments),)))


@asynccontextmanager
async def hostile_model(stream: str) -> AsyncIterator[tuple[dict[str, object], Scene]]:
    """Serve a model that answers everybody with a hostile stream."""
    body, head = STREAMS[stream]
    async with serving(body, STREAM + head) as server:
        yield {"openai_base_url": base_url(server)}, partial(eight_ask, text="Hello")


@asynccontextmanager
async def hostile_page(body: bytes, headers: str) -> AsyncIterator[tuple[dict[str, object], Scene]]:
    """Serve a page that eight people want read."""
    async with Site() as site:
        site.put("/", body, headers, repeats=not headers)

        async def read(rig: Rig) -> None:
            using(rig, "read_page", url=site.at("/"))
            await eight_ask(rig, f"Please use {site.at('/')}")

        yield {"local_sites": "yes"}, read


@asynccontextmanager
async def hostile_tool(text: str, picture: str) -> AsyncIterator[tuple[dict[str, object], Scene]]:
    """Serve an MCP tool that returns a long text or a large picture to eight people."""
    shop = Shop()
    shop.result = text
    shop.files = [types.ImageContent(type="image", data=picture, mime_type="image/png")]

    async def call(rig: Rig) -> None:
        using(rig, "shop__picture", thing="stamp")
        await eight_ask(rig, "Please use the shop")

    async with ShopServer(shop) as server:
        servers = orjson.dumps({"shop": {"url": server.address}}).decode()
        yield {"mcp_servers": servers}, call


ORDINARY: dict[str, Scene] = {
    "24 people, 5 messages each": talk,
    "a photo of 12 megapixels and 5 MB": sending(camera()),
    "8 such photos of 8 people": eight_photos,
    "an album of 10 such photos": sending(*[camera()] * 10),
    "a Word file of 4.5 MB": sending(book()),
    "an export of 50 MB, in a zip": sending(export_of(640, 60, "Where is the boat? äöü " * 34)),
    "4 long texts, 4 photos, an album, 24 people at once": all_at_once,
}
ATTACKS: dict[str, Scene] = {
    "S2: a JPEG of 4 million segments": sending(picture_of_segments(16)),
    "S2: 4 of them": sending(*[picture_of_segments(16)] * 4),
    "S3: 10 small pictures with 20 MB each": sending(*[photo(100, 100, 19.9)] * 10),
    "S4: an export with 2 million messages": sending(export_of(1_000, 2_000, "a")),
    **{attack.name: attacking(attack) for attack in hostile.ATTACKS},
}

SERVERS: dict[str, Callable[[], Served]] = {
    **{f"model: {stream}": partial(hostile_model, stream) for stream in STREAMS},
    "page: an endless one": partial(hostile_page, b"<p>x" * 2**14, ""),
    "page: a gzip bomb": lambda: hostile_page(gzipped(), HTML + PACKED),
    "page: 60,000 nested tables": partial(hostile_page, b"<table><tr><td>" * 60_000, HTML),
    "MCP: a text of 3 MB": partial(hostile_tool, "word " * 600_000, "AAAA"),
    "MCP: a text of 50 MB": partial(hostile_tool, "word " * 10_000_000, "AAAA"),
    "MCP: a picture of 50 MB": partial(hostile_tool, "", "A" * 50 * _MB),
}


async def play(name: str, scene: Scene, rig: Rig, group: Group) -> bool:
    """Play a scene and print its row; return whether the bot still runs."""
    watch, seen, before_mb, killed = Watch(), len(rig.bot.log), group.mb, group.killed
    looking = asyncio.create_task(watch.look(group))
    asking = asyncio.create_task(watch.ask(rig))
    result = "answered"
    playing = asyncio.create_task(scene(rig))
    try:
        async with asyncio.timeout(_ANSWER_S + 30):
            while not playing.done() and rig.bot.is_running:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)
            if not rig.bot.is_running:
                result = "**the bot was killed**"
            else:
                result = str(await playing or result)
                await asyncio.sleep(1)
    except (TimeoutError, AssertionError):
        result = "no answer, or a broken promise"
    finally:
        for task in (looking, asking, playing):
            task.cancel()
        await asyncio.gather(looking, asking, playing, return_exceptions=True)
    held = [line["ms"] for line in rig.bot.log[seen:] if line["event"] == "event loop blocked"]
    waits = watch.waits or [float("nan")]
    memory = before_mb, watch.peak_mb, group.mb, group.killed - killed
    times = f"{median(waits):.2f} s", f"{max(waits):.2f} s", f"{max(held, default=0):.0f} ms"
    row = name, *memory, *times, result
    sys.stdout.write(f"| {' | '.join(map(str, row))} |\n")
    sys.stdout.flush()
    return rig.bot.is_running


async def day(
    server: ValkeyServer,
    folder: Path,
    scenes: dict[str, Scene],
    group: Group,
    settings: dict[str, object] | None = None,
) -> None:
    """Play scenes with one bot, as long as it runs."""
    server.ask("FLUSHALL")
    await asyncio.to_thread(folder.mkdir)
    async with open_rig(server.url, folder, "webhook") as rig:
        rig.bot = SmallBot(rig.environment, group)
        await rig.start(coalesce_s=1, log_level="info", lease_s=30, **settings or {})
        if not settings:  # the first message loads the index, which no scene is to pay for
            await rig.ask(*rig.person(1998, "Cleo"), "Hello")
        for name, scene in scenes.items():
            if not await play(name, scene, rig, group):
                break


async def run(folder: Path, only: str) -> None:
    """Play the ordinary day, then each attack with a new bot."""
    head = "before, MB | most, MB | after, MB | killed | another waits | longest | loop held"
    sys.stdout.write(f"| what | {head} | |\n|{'---|' * 9}\n")
    with Group.opened() as group, ValkeyServer(folder) as server:
        chosen = {name: scene for name, scene in ORDINARY.items() if only in name}
        if chosen:
            await day(server, folder / "day", chosen, group)
        for number, (name, scene) in enumerate(ATTACKS.items()):
            if only in name:
                await day(server, folder / str(number), {name: scene}, group)
        for name, served in SERVERS.items():
            if only in name:
                async with served() as (settings, scene):
                    await day(
                        server, folder / name.replace("/", ""), {name: scene}, group, settings
                    )


def main() -> None:
    """Run everything in a temporary folder."""
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(run(Path(name), only))


if __name__ == "__main__":
    main()
