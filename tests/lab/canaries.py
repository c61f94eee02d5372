"""Corrected and deleted facts stay out of later prompts, and words off the record everywhere.

    python -m tests.lab.canaries [--turns 50]

The memory model proposes the old facts again in every batch, in their own words and in others, from
the old messages, also in a batch that was under way. Off the record, a web
process with the embedded server and a worker run.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import orjson

from memory.store.client import RedisClient
from tests.acceptance.asking import ask_and_learn, ask_to_the_end
from tests.acceptance.buttons import ask_for_wording, delete_now
from tests.acceptance.memory_model import Batch, Parts, gullible, main_requests, remember_with
from tests.acceptance.rig import Rig, open_rig
from tests.acceptance.sentences import sentence
from tests.servers.bot_api import Chat, Person
from tests.servers.model_api import ChatRequest, EmbeddingsRequest, Reply
from tests.stored import everything_on_disk, everything_stored
from tests.valkey import ValkeyServer

_CHANGE = sentence("buttons.change_entry")
_BOAT, _CAT = "Aurora", "Mephisto"
_PROPOSED = {
    f"Their boat is {_BOAT}.": (5, 1),
    f"Sails on a vessel that is called {_BOAT}.": (5, 1),
    f"Their cat is {_CAT}.": (3,),
    f"Has a pet with the name {_CAT}.": (3,),
}
"""The old facts, and the numbers of the messages that said or meant them."""

_WINDOW = 4
_SECRET = "zanzibar"


def stubborn(batch: Batch) -> Parts:
    """Return what a gullible model returns, and the old facts from their messages."""
    parts = gullible(batch)
    if "facts" in batch.known:
        said = [
            {"text": text, "message": n, "replaces": None, "repeats": None, "lasts": "always"}
            for text, numbers in _PROPOSED.items()
            for n in numbers
        ]
        parts["facts"] = {"facts": said}
    return parts


async def corrected_and_deleted(turns: int, folder: Path) -> int:
    """Return in how many prompts after the correction something old was looked for and not found.

    Raise `AssertionError` if a prompt has it.
    """
    with ValkeyServer(folder) as valkey:
        async with open_rig(valkey.url, folder, "webhook") as rig:
            model = remember_with(rig)
            await rig.start(
                learn="state facts synopses", learn_every_turns=1, window_messages=_WINDOW
            )
            person, chat = rig.anna()
            await ask_and_learn(rig, person, chat, f"My boat is called {_BOAT}")
            await ask_and_learn(rig, person, chat, f"My cat is called {_CAT}")
            under_way = asyncio.Event()
            model.read = lambda batch: Reply(orjson.dumps(stubborn(batch)).decode(), gate=under_way)
            await ask_to_the_end(rig, person, chat, "She sails well")
            await model.batch_about("sails well")
            await _correct(rig, person, chat)
            model.read = stubborn
            under_way.set()
            before = len(main_requests(rig))
            for number in range(turns):
                question = ("What is my boat called?", "Do I have a cat?", "It rains")[number % 3]
                await ask_and_learn(rig, person, chat, f"{question} ({number})")
            later = main_requests(rig)[before:]
            _check(later)
            return len(later)


async def _correct(rig: Rig, person: Person, chat: Chat) -> None:
    """Edit the facts about the boat, and delete those about the cat."""
    while True:
        shows = await ask_to_the_end(rig, person, chat, "/memory")
        lines = [line for line in shows.text.splitlines() if _BOAT in line or _CAT in line]
        if not lines:
            return
        entry = f"{_CHANGE} {lines[0].split()[1]}"
        if _BOAT in lines[0]:
            asks = await ask_for_wording(rig, person, shows, entry)
            await rig.ask(person, chat, "Sails a dinghy", reply_to=asks)
        else:
            await delete_now(rig, person, shows, entry)


def _check(later: list[ChatRequest]) -> None:
    """Fail if a memory section or, after the window has moved on, a prompt has an old word."""
    for number, request in enumerate(later):
        text = str(request.messages) if number >= _WINDOW else request.memory
        found = [word for word in (_BOAT, _CAT) if word in text]
        assert not found, f"prompt {number} after the correction has {found}:\n{text}"


async def off_the_record(folder: Path) -> None:
    """Talk off the record to a web process and a worker; raise `AssertionError` if a word stays."""
    data = folder / "data"
    async with open_rig("", folder, "webhook") as rig:
        remember_with(rig)
        rig.environment.update({"DATA_DIR": str(data), "LEARN": "state,facts,synopses"})
        await rig.start(learn_every_turns=1)
        redis = f"unix://{data}/valkey.sock"
        worker = rig.another_bot(command="worker", redis_url=redis)
        await worker.start()
        person, chat = rig.anna()
        await rig.ask(person, chat, "My dog is called Rex")
        await rig.ask(person, chat, "/off")
        for number in range(10):
            await rig.ask(person, chat, f"My {_SECRET} is called {_SECRET}-{number}")
        store = await RedisClient.open(redis)
        assert _SECRET.encode() in await everything_stored(redis)
        ended = await rig.ask(person, chat, "/back")
        assert ended.text == sentence("off.ended", messages=20), ended.text
        asked = len(rig.requests)
        for _ in range(5):
            await rig.ask(person, chat, "What did I say last?")
        stored = await everything_stored(redis)
        async with asyncio.timeout(20):
            while _SECRET.encode() in everything_on_disk(data):
                await store.ping()
        await store.close()
        logged = "\n".join((*rig.bot.raw, *worker.raw)).encode()
        prompts = str([request.messages for request in rig.requests[asked:]]).encode()
        requests = (call.request for call in rig.model.log.calls)
        embedded = str([r.texts for r in requests if isinstance(r, EmbeddingsRequest)]).encode()
        for name, content in (
            ("a key", stored),
            ("a log", logged),
            ("a later prompt", prompts),
            ("a request for vectors", embedded),
        ):
            assert _SECRET.encode() not in content, f"{name} has the word"
        served = {line["event"] for line in worker.log}
        assert "turn closed" in served, "the worker had no turn"


def main() -> int:
    """Run both and say that they held."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.canaries", description=__doc__)
    parser.add_argument("--turns", type=int, default=50)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as folder:
        prompts = asyncio.run(corrected_and_deleted(turns, Path(folder)))
    sys.stdout.write(f"{prompts} prompts: no corrected or deleted fact\n")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(off_the_record(Path(folder)))
    sys.stdout.write("off the record: no word in a key, a file, a log or a later prompt\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
