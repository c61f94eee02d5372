"""Repeats the attack review with large numbers: `python -m tests.lab.hostile` takes some minutes.

It prints a table: what was sent, how often, how many failed, and the longest time. `--quick` sends
a tenth of the random texts and presses.
"""

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx2

from bot.documents.formats import DocumentRefused, Formats, Limits
from bot.model.embedder import OpenAIEmbedder
from bot.model.model_errors import ModelError
from bot.model.openai_client import open_client
from bot.playground.inspector import Inspector
from bot.playground.inspector_page import InspectorPage
from bot.playground.loopback import LoopbackServer
from bot.playground.scene import Scene
from bot.reply.render import render
from memory.documents.chunking import passages
from memory.search.embeddings import EmbeddingsUnavailable
from memory.text.tokens import TokenCounter
from tests.acceptance.buttons import ask_first
from tests.acceptance.forking import bots_forked
from tests.acceptance.rig import open_rig
from tests.bot.reply.telegram_rules import faults
from tests.hostile.attacks import ATTACKS
from tests.hostile.model_server import Answer, serving
from tests.hostile.shapes import UNITS
from tests.hostile.test_model_server import STREAMS, ask
from tests.hostile.waits import waits_during
from tests.lab.hostile_answers import CHATS, EMBEDDINGS, PAGES
from tests.lab.hostile_files import documents, pdfs
from tests.servers.bot_api import BotApiServer, Button, Message
from tests.valkey import ValkeyServer

Row = tuple[int, int, float]
"""Number of inputs, number of failures, and the longest time in seconds."""


def say(what: str, row: Row) -> None:
    """Print one line of the table."""
    sent, failed, longest_s = row
    sys.stdout.write(f"| {what} | {sent:,} | {failed} | {longest_s * 1000:,.0f} ms |\n")
    sys.stdout.flush()


def markdown(count: int) -> Row:
    """Render random Markdown; a failure is a part that Telegram would refuse."""
    chance, failed, longest = random.Random(13), 0, 0.0
    for _ in range(count):
        text = "".join(chance.choices(UNITS, k=chance.randint(1, 60)))
        began = time.process_time()
        parts = render(text)
        longest = max(longest, time.process_time() - began)
        failed += any(faults(part) for part in parts)
    return count, failed, longest


async def presses(redis: str, folder: Path, forged: int) -> tuple[Row, Row]:
    """Press forged buttons, then buttons shown to another person; nothing may change."""
    chance = random.Random(13)
    async with open_rig(redis, folder, "webhook") as rig:
        await rig.start()
        (anna, annas), (mallory, mallorys) = rig.anna(), rig.person(1666, "Mallory")
        group = rig.telegram.group("Club", [mallory], [anna])
        await rig.ask(anna, annas, "My dog is called Zorro")
        message = await rig.ask(mallory, mallorys, "/privacy")
        texts = {m.id: m.text for m in annas.messages}

        async def press(data: str, under: Message = message) -> float:
            shown = replace(under, keyboard=((Button("x", data),),))
            began = time.monotonic()
            pressed = await mallory.press(shown, "x")
            await rig.telegram.wait_for(lambda: pressed.answer is not None)
            return time.monotonic() - began

        verbs = (
            "forget",
            "clear",
            "admin",
            "mem",
            "doc",
            "dead",
            "yes",
            "no",
            "cancel",
            "delete_message",
            "",
        )
        signs = "0123456789:.-|abcdefkrx'\"\\\n🙂"
        tails = ("".join(chance.choices(signs, k=chance.randint(0, 20))) for _ in range(forged))
        waits = [await press(f"{chance.choice(verbs)}:{tail}") for tail in tails]
        questions = [
            await ask_first(rig, anna, group, "/clear"),
            await ask_first(rig, anna, annas, "/forget"),
        ]
        replayed = [
            await press(form, question)
            for question in questions
            for form in _forms(question)
            for _ in range(9)
        ]
        asked = await rig.ask(anna, annas, "What did I tell you?")
        kept = any("Zorro" in m.content for m in rig.requests[-1].messages) and asked.text
        changed = sum(annas.message(id_) is None for id_ in texts) + (not kept)
        traces = sum("Traceback" in line for line in rig.bot.raw)
        return (forged, changed + traces, max(waits)), (len(replayed), changed, max(replayed))


def _forms(question: Message) -> list[str]:
    """Return the callback data of a question's buttons, and the same with other verbs."""
    shown = [each.callback_data for row in question.keyboard for each in row]
    rests = [data.partition(":")[2] for data in shown]
    others = [f"{verb}:{rest}" for rest in rests for verb in ("clear", "forget", "admin")]
    return [*shown, *others]


async def timed(runs: list[Callable[[], Awaitable[object]]]) -> Row:
    """Run one after the other; an unexpected exception is a failure."""
    failed, longest = 0, 0.0
    for run in runs:
        began = time.monotonic()
        try:
            await run()
        except (DocumentRefused, ModelError, EmbeddingsUnavailable):
            pass
        except Exception as error:  # noqa: BLE001 - counted
            sys.stdout.write(f"{error!r}\n")
            failed += 1
        longest = max(longest, time.monotonic() - began)
    return len(runs), failed, longest


async def files() -> None:
    """Read all malicious files."""
    reader, tokens = Formats(Limits()), await TokenCounter.load()

    async def cut(content: bytes) -> None:
        sections = await reader.sections(content, "markdown")
        await asyncio.to_thread(passages, sections, tokens)

    say("PDFs", await timed([partial(reader.sections, c, "pdf") for _, c in pdfs()]))
    say("documents", await timed([partial(cut, c) for _, c in documents()]))


async def answers() -> None:
    """Ask a malicious model server."""

    async def chat(answer: Answer) -> None:
        async with serving(answer) as server:
            await ask(server.base_url)

    async def embed(body: bytes) -> None:
        async with (
            serving(Answer.whole(lambda: [body])) as server,
            open_client(server.base_url, None, 5) as client,
        ):
            rows = await OpenAIEmbedder(client, "m", None, 20).embed(["hello"])
            norms = (rows**2).sum(axis=1)
            if not (
                (abs(norms - 1) < 0.01) | (norms == 0)
            ).all():  # a zero vector is allowed: it finds nothing
                raise ValueError(rows)

    streams = [Answer.streamed(body, head) for body, head in STREAMS.values()]
    streams += [Answer.streamed(pieces.__iter__) for pieces in CHATS.values()]
    say("chat streams", await timed([partial(chat, a) for a in streams]))
    say("embeddings", await timed([partial(embed, b) for b in EMBEDDINGS.values()]))


async def _page_text(answer: httpx2.Response) -> str:
    """Return the text of a page, "" for any other answer."""
    is_page = answer.headers.get("content-type", "").startswith("text/html")
    return (await answer.aread()).decode() if is_page else ""


async def pages() -> None:
    """Send requests that the playground's page must refuse or answer without harm."""
    async with BotApiServer() as telegram:
        scene = Scene(telegram)
        app = InspectorPage(telegram, scene, Inspector(telegram, scene), "").app()
        async with LoopbackServer(app) as server, httpx2.AsyncClient(trust_env=False) as client:

            async def request(method: str, path: str, headers: dict[str, str]) -> None:
                url = server.url + path
                with suppress(httpx2.InvalidURL, TimeoutError):
                    async with (
                        asyncio.timeout(5),
                        client.stream(method, url, headers=headers) as got,
                    ):
                        opened = method == "POST" and got.status_code < 400
                        script = "<script>alert" in (await _page_text(got))
                        if got.status_code >= 500 or opened or script:
                            raise ValueError(f"{method} {path[:60]}: {got.status_code}")

            say("page requests", await timed([partial(request, *r) for r in PAGES]))


async def waits(server: ValkeyServer, folder: Path) -> None:
    """Print how long another person waits, before and during each attack."""
    sys.stdout.write("\n| attack | quiet | median | longest | loop held |\n|---|---|---|---|---|\n")
    for number, attack in enumerate(ATTACKS):
        server.ask("FLUSHALL")
        own_folder = folder / str(number)
        own_folder.mkdir()
        async with open_rig(server.url, own_folder, "webhook") as rig:
            found = await waits_during(attack, rig)
        held = ", ".join(f"{line['ms']} ms {line['place']}" for line in found.held) or "never"
        times = " | ".join(f"{s * 1000:.0f} ms" for s in (found.quiet, found.usual, found.longest))
        sys.stdout.write(f"| {attack.name} | {times} | {held} |\n")
        sys.stdout.flush()


async def run(folder: Path, share: int) -> None:
    """Send everything and print the results."""
    sys.stdout.write("| sent | inputs | failures | longest |\n|---|---|---|---|\n")
    say("random Markdown texts", markdown(20_000 // share))
    await answers()
    await pages()
    await files()
    with ValkeyServer(folder) as server:
        (folder / "presses").mkdir()
        forged, replayed = await presses(server.url, folder / "presses", 4_000 // share)
        say("forged presses", forged)
        say("replays by others", replayed)
        await waits(server, folder)


def main() -> None:
    """Run everything in a temporary folder."""
    share = 10 if "--quick" in sys.argv else 1
    with tempfile.TemporaryDirectory() as name, bots_forked(Path(name)):
        asyncio.run(run(Path(name), share))


if __name__ == "__main__":
    main()
