"""Measures other stores on labelled conversations, with the same vectors, beside Ricordo.

    python -m tests.lab.peers DIR [DIR ...] [--only PEER,PEER]

Each other store is installed in an environment of its own in `~/.cache/ricordo-peers` (or
`$XDG_CACHE_HOME/ricordo-peers`) and runs `peer_stores.py` in a process with one core and a time
limit. A store that cannot be installed or run is named on stderr with the reason. The output is a
table in Markdown for each DIR (see `conversations`).

recall@k: as in `recall`. `evidence`: mean share of the labelled messages that are told within 700
tokens. For a store these are the messages of which the whole text ends within 700 tokens, if its
results are joined best first; Ricordo packs its own passages, and `ricordo, whole messages` is its
ranking joined like the others. `ms`: CPU of a query. `bytes`: per message, on disk, or in memory.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path

import numpy as np

from bot.prompt.recalled import RecallPacker
from memory.behaviors.context import AgentContext
from memory.memory import Memory
from memory.search.message_search import embedded_text
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.lab.context import DAY_S, SETTINGS, shares
from tests.lab.conversations import Labelled, Question, read_folder
from tests.lab.recall import KS, OPTIONS, ReadyVectors, percent, stored
from tests.valkey import ValkeyServer

TOKENS = 700
INSTALL_S = 900
RUN_S = 900
STORES = Path(__file__).with_name("peer_stores.py")
LLAMA_INDEX = ("llama-index-core", "llama-index-retrievers-bm25")
PEERS: Mapping[str, Sequence[str]] = {
    "dense": (),
    "langgraph": ("langgraph",),
    "lancedb": ("lancedb",),
    "llama_index": LLAMA_INDEX,
    "llama_index_rrf": LLAMA_INDEX,
    "mem0": ("mem0ai",),
    "txtai": ("torch==2.13.0", "txtai"),  # this torch has a build without GPU libraries
}
"""The packages of each store besides numpy, which is all that `dense` needs."""

QUIET = {
    "MEM0_TELEMETRY": "False",
    "LANGSMITH_TRACING": "false",
    "LANCEDB_TELEMETRY": "off",
    "DO_NOT_TRACK": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "HF_HUB_OFFLINE": "1",
    "OPENAI_API_KEY": "none",  # some want one at the start; no request is made
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

Figures = dict[str, list[float]]
"""A value for each question (`bytes`: for each conversation) by the name of a figure."""


class PeerFailed(Exception):
    """Raised when a store cannot be installed or does not answer; the text is the reason."""


def told(tokens: TokenCounter, texts: Sequence[str], ranked: Sequence[int], limit: int) -> set[int]:
    """Return the positions whose whole text ends within `limit` tokens of the joined results."""
    found, used = set(), 0
    for position in ranked:
        used += tokens.count(f"{texts[position]}\n")
        if used > limit:
            break
        found.add(position)
    return found


def judge(figures: Figures, labelled: Labelled, question: Question, ranked: Sequence[int]) -> None:
    """Add recall at each k of one question."""
    for k in KS:
        figures[f"recall@{k}"].append(labelled.share(question, ranked[:k]))


def environment(peer: str) -> tuple[str, str]:
    """Return the Python of a store's environment, made if needed, and the versions in it.

    Raises `PeerFailed`.
    """
    packages = PEERS[peer]
    if not packages:
        return sys.executable, f"numpy {np.__version__}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ricordo-peers"
    place = cache / packages[-1]
    python = str(place / "bin" / "python")
    if not (place / "installed").exists():
        run([sys.executable, "-m", "venv", "--clear", str(place)], INSTALL_S)
        run([python, "-m", "pip", "install", "--quiet", "numpy", *packages], INSTALL_S)
        (place / "installed").touch()
    listed = run([python, "-m", "pip", "list", "--format", "json"], RUN_S)
    versions = {each["name"].casefold(): each["version"] for each in json.loads(listed)}
    names = (package.partition("==")[0] for package in packages)
    return python, ", ".join(f"{name} {versions[name]}" for name in names)


def run(command: Sequence[str], limit_s: float) -> str:
    """Return what a command prints; raise `PeerFailed`."""
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=limit_s,
            env={**os.environ, **QUIET},
        )
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"took longer than {limit_s:.0f} s") from None
    if done.returncode:
        reason = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise PeerFailed(reason[-1])
    return done.stdout


def measured(
    python: str, peer: str, conversations: Sequence[Labelled], tokens: TokenCounter
) -> Figures:
    """Return the figures of one store; raise `PeerFailed`."""
    texts = [[embedded_text(message) for message in each.messages] for each in conversations]
    rows = {}
    for number, each in enumerate(conversations):
        rows[f"texts_{number}"] = each.rows
        rows[f"questions_{number}"] = each.question_rows
    figures: Figures = defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        np.savez(folder / "rows.npz", **rows)  # type: ignore[arg-type]
        said = [
            {"texts": text, "questions": [question.text for question in each.questions]}
            for text, each in zip(texts, conversations, strict=True)
        ]
        (folder / "texts.json").write_text(json.dumps(said))
        run([python, str(STORES), peer, str(folder)], RUN_S)
        answers = json.loads((folder / "answers.json").read_text())
    for labelled, text, answer in zip(conversations, texts, answers, strict=True):
        figures["ms"] += answer["ms"]
        figures["bytes"].append(answer["bytes"] / len(text))
        for question, ranked in zip(labelled.questions, answer["found"], strict=True):
            judge(figures, labelled, question, ranked)
            shown = told(tokens, text, ranked, TOKENS)
            figures["evidence"].append(labelled.share(question, shown))
    return figures


async def ours(
    conversations: Sequence[Labelled], tokens: TokenCounter, redis: str
) -> list[Figures]:
    """Return the figures of Ricordo, and those of its ranking with whole messages."""
    client = await RedisClient.open(redis)
    packer = RecallPacker(tokens, UTC)
    packed: Figures = defaultdict(list)
    whole: Figures = defaultdict(list)
    for labelled in conversations:
        embedder = ReadyVectors()
        memory = Memory(client, 1, tokens, embedder, OPTIONS)
        before = await used_bytes(client)
        history = await stored(memory, embedder, labelled)
        grown = await used_bytes(client) - before
        texts = [embedded_text(message) for message in labelled.messages]
        now = labelled.messages[-1].sent_at + DAY_S
        context = AgentContext(history.conversation, history, now)
        for figures in (packed, whole):
            figures["bytes"].append(grown / len(texts))
        for question in labelled.questions:
            began = time.process_time()
            ranked = [hit.row for hit in await history.find(question.text, max(KS))]
            taken = (time.process_time() - began) * 1000
            found = await history.search(question.text, SETTINGS.recall_k)
            lines = packer.pack(context, found, question.text, TOKENS)
            packed["evidence"].append(shares(labelled, question, lines)["evidence"])
            shown = told(tokens, texts, ranked, TOKENS)
            whole["evidence"].append(labelled.share(question, shown))
            for figures in (packed, whole):
                figures["ms"].append(taken)
                judge(figures, labelled, question, ranked)
    await client.close()
    return [packed, whole]


async def used_bytes(client: RedisClient) -> int:
    """Return the bytes that Redis uses."""
    return int((await client.info("memory"))["used_memory"])


def line(name: str, versions: str, figures: Figures) -> str:
    """Return one row of the table."""
    shares = (*(f"recall@{k}" for k in KS), "evidence")
    cells = [name, versions, *(f"{percent(figures[each]):.1f}" for each in shares)]
    cells += [f"{np.mean(figures['ms']):.2f}", f"{np.mean(figures['bytes']):,.0f}"]
    return f"| {' | '.join(cells)} |"


def report(folder: Path, peers: Sequence[str]) -> None:
    """Print the table of one folder."""
    conversations = read_folder(folder)
    tokens = asyncio.run(TokenCounter.load())
    questions = sum(len(each.questions) for each in conversations)
    ks = " | ".join(f"recall@{k}" for k in KS)
    say(f"\n{folder}, {questions} questions, {time.strftime('%Y-%m-%d')}\n")
    say(f"| store | versions | {ks} | evidence at {TOKENS} | ms | bytes |\n" + "|---" * 9 + "|")
    for peer in peers:
        try:
            python, versions = environment(peer)
            say(line(peer, versions, measured(python, peer, conversations, tokens)))
        except PeerFailed as reason:
            sys.stderr.write(f"{peer} is left out: {reason}\n")
    with tempfile.TemporaryDirectory() as scratch, ValkeyServer(Path(scratch)) as server:
        packed, whole = asyncio.run(ours(conversations, tokens, server.url))
    say(line("ricordo, whole messages", "", whole))
    say(line("ricordo", "", packed))


def say(text: str) -> None:
    """Print one line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--only", default=",".join(PEERS), help="stores, separated by commas")
    chosen = parser.parse_args()
    for each_folder in chosen.folders:
        report(each_folder, chosen.only.split(","))
