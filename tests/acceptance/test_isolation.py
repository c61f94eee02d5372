"""Text of one scope is never seen in another (A1), and nothing erased stays."""

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memory.store.client import RedisClient
from tests.acceptance.buttons import erase_now
from tests.acceptance.memory_model import main_requests, remember_with
from tests.acceptance.rig import US, Rig
from tests.acceptance.talk import ask_and_learn
from tests.servers.bot_api import Chat, Person, Topic, Upload
from tests.servers.model_api import ChatRequest, EmbeddingsRequest
from tests.stored import everything_on_disk, everything_stored

ALL = "state facts synopses"

_SCOPE = re.compile(r"\b(?:canary|asker)-(\d+)")


def tell(scope: int) -> str:
    return f"My secret is canary-{scope}"


def ask(scope: int) -> str:
    return f"What is my secret? I am asker-{scope}"


Place = tuple[int, list[Person], Chat, Topic | None]


def place(rig: Rig, scope: int, of: Sequence[tuple[Person, Chat]], *, forum: bool) -> Place:
    """Return a group or a topic of a forum with its scope; three of the people are its members."""
    members = [person for person, _ in of][:3]
    chat = rig.telegram.group("Club", members[1:], admins=members[:1], forum=forum)
    return scope, members, chat, chat.topic("Secrets") if forum else None


def scopes_in(text: str) -> set[int]:
    """Return the scopes whose secrets or questions are in a text."""
    return set(map(int, _SCOPE.findall(text)))


def mixed_requests(rig: Rig) -> list[set[int]]:
    """Return the scopes of each request that mixes several."""
    found = []
    for call in rig.model.log.calls:
        match call.request:
            case ChatRequest(messages=messages):
                text = "\n".join(f"{m.content} {m.tool_calls}" for m in messages)
            case EmbeddingsRequest(texts=texts):
                text = "\n".join(texts)
            case _:
                continue
        found.append(scopes_in(text))
    assert found
    return [scopes for scopes in found if len(scopes) > 1]


@pytest.mark.timeout(300)
async def test_30_people_in_chats_groups_and_topics_never_see_others_messages(rig: Rig) -> None:
    """All tell a secret and ask for it, all at once, and two people erase theirs."""
    remember_with(rig)
    await rig.start(learn=ALL, learn_every_turns=1, slots=100, documents="off")
    people = [rig.person(10_000 + n, "Somebody") for n in range(30)]
    places = [
        *((person.id, [person], chat, None) for person, chat in people),
        *(place(rig, 20_000 + n, people[n::6], forum=False) for n in range(6)),
        *(place(rig, 30_000 + n, people[n::3], forum=True) for n in range(3)),
    ]

    async def say(words: Callable[[int], str], teller: int) -> None:
        async def say_in(
            scope: int, members: list[Person], chat: Chat, topic: Topic | None
        ) -> None:
            text = words(scope) if chat.kind == "private" else f"{US} {words(scope)}"
            said = await members[teller % len(members)].say(chat, text, topic=topic)
            await chat.wait_for_reply(after=said, topic=topic, timeout_s=120)

        await asyncio.gather(*(say_in(*each) for each in places))

    await say(tell, 0)

    def learned() -> set[str]:
        return {line["conversation"] for line in rig.bot.lines("learned") if line["calls"]}

    await rig.bot.wait_until(lambda: len(learned()) == len(places), timeout_s=120)
    await say(ask, 1)
    assert mixed_requests(rig) == []
    asked = {r.asked: r.memory for r in main_requests(rig)}
    for person, _ in people:
        assert f"Their secret is canary-{person.id}." in asked[ask(person.id)]

    (anna, annas), (ben, bens) = people[:2]
    await erase_now(rig, anna, annas, "/forget")
    await erase_now(rig, ben, bens, "/clear")
    stored = scopes_in((await rig.stored()).decode("latin-1"))
    assert {anna.id, ben.id}.isdisjoint(stored)
    assert {person.id for person, _ in people[2:]} <= stored


KINDS = {b"ultramarine", b"ratatouille", b"mephisto", b"aardvark", b"pancakes"}


async def test_nothing_learned_survives_an_erasure_in_keys_or_on_the_embedded_disk(
    rig: Rig, tmp_path: Path
) -> None:
    """Facts, states, synopses and documents, after /forget and after /clear."""
    folder = tmp_path / "data"
    model = remember_with(rig)
    await rig.start(redis_url="", data_dir=folder, learn=ALL, learn_every_turns=1)
    (anna, annas), (ben, bens) = rig.anna(), rig.ben()
    group = rig.telegram.group("Club", [anna, ben])
    await rig.send(anna, annas, "document", file=Upload(b"On the aardvark.", "zoo.txt"))
    for person, chat, text in (
        (anna, annas, "My colour is called ultramarine"),
        (anna, group, f"{US} my dish is called ratatouille"),
        (ben, group, f"{US} my dish is called pancakes"),
        (ben, bens, "My cat is called mephisto"),
    ):
        await ask_and_learn(rig, person, chat, text)
        if chat.kind == "private":  # so that there is a synopsis as well
            await rig.ask(person, chat, "/new")
            await ask_and_learn(rig, person, chat, "Good morning")
    assert sum("synopses" in batch.known for batch in model.batches) >= 2
    store = await RedisClient.open(f"unix://{folder}/valkey.sock")
    await store.call("CONFIG SET", "rdbcompression", "no")

    async def wait_until_left(*words: bytes) -> None:
        wanted = set(words)
        async with asyncio.timeout(60):
            while {word for word in KINDS if word in everything_on_disk(folder)} != wanted:
                await store.ping()
        kept = await everything_stored(f"unix://{folder}/valkey.sock")
        assert {word for word in KINDS if word in kept} == wanted

    await wait_until_left(*KINDS)
    await erase_now(rig, anna, annas, "/forget")
    await wait_until_left(b"mephisto", b"pancakes")
    await erase_now(rig, ben, bens, "/clear")
    await wait_until_left(b"pancakes")
    await store.close()
    assert b"pancakes" in everything_on_disk(folder)
    for word in (b"Anna", b"zoo.txt"):
        assert word not in everything_on_disk(folder)
