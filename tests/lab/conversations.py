"""Reads a folder of labelled conversations: `conversations.json` and `embeddings.npz`.

The format is that of LoCoMo and BEAM as prepared for recall measurements. Turns have id, session,
date, speaker and text. Questions have the ids of the turns that answer them. Both have float16 unit
rows. A turn's row is of its `text`, which must be what the product embeds (see `OtherRecipe`). The
data is never part of this repository.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from memory.message import Message
from memory.search.embeddings import Vectors
from memory.search.message_search import RECIPE

RECIPE_OF_TEXT = "speaker words"
"""The recipe of `text` in a folder that does not name one in `recipe` of `embeddings.npz`."""

_FORMATS = ("%I:%M %p on %d %B, %Y", "%B-%d-%Y", "%Y-%m-%d", "%d %B, %Y", "%d %B %Y")
_TURN_S = 30
_PAUSE_S = 86_400


class OtherRecipe(Exception):
    """Raised when the vectors of a folder are of other texts than the product embeds."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the ids of the turns that answer it, and its answer ("" if there is none)."""

    text: str
    category: str
    evidence: frozenset[str]
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Labelled:
    """One conversation: messages with ids and rows, and questions with rows (unit, float32)."""

    name: str
    messages: tuple[Message, ...]
    ids: tuple[str, ...]
    rows: Vectors
    questions: tuple[Question, ...]
    question_rows: Vectors

    def share(self, question: Question, positions: Iterable[int]) -> float:
        """Return the share of a question's evidence among the messages at these positions."""
        found = {self.ids[position] for position in positions}
        return len(question.evidence & found) / len(question.evidence)


def read_folder(folder: Path) -> list[Labelled]:
    """Return all conversations of a folder; raise `OtherRecipe`."""
    conversations = json.loads((folder / "conversations.json").read_text())
    arrays = np.load(folder / "embeddings.npz")
    recipe = str(arrays["recipe"]) if "recipe" in arrays else RECIPE_OF_TEXT
    if recipe != RECIPE:
        raise OtherRecipe(f"{folder} has vectors of {recipe!r}, but the product embeds {RECIPE!r}")
    labelled = [
        Labelled(
            name=str(each["id"]),
            messages=tuple(_messages(each["turns"])),
            ids=tuple(str(turn["id"]) for turn in each["turns"]),
            rows=unit(arrays[f"turns_{each['id']}"]),
            questions=tuple(
                Question(
                    q["question"],
                    str(q["category"]),
                    frozenset(map(str, q["evidence"])),
                    str(q.get("answer") or ""),
                )
                for q in each["questions"]
            ),
            question_rows=unit(arrays[f"questions_{each['id']}"]),
        )
        for each in conversations
    ]
    texts = [turn["text"] for each in conversations for turn in each["turns"]]
    messages = (message for each in labelled for message in each.messages)
    for text, message in zip(texts, messages, strict=True):
        if text != message.embedded_text:
            raise OtherRecipe(
                f"{folder} has a vector of {text[:40]!r}, but the product embeds "
                f"{message.embedded_text[:40]!r}"
            )
    return labelled


def _messages(turns: list[dict[str, str]]) -> list[Message]:
    """Yield messages with rising times: each session later than the one before."""
    messages: list[Message] = []
    session, at = "", 0.0
    for turn in turns:
        if turn["session"] != session:
            session = turn["session"]
            at = max(_time(turn["date"]), at + _PAUSE_S)
        speaker = turn["speaker"]
        text = turn["text"].removeprefix(f"{speaker}: ")
        role = "assistant" if speaker.casefold() == "assistant" else "user"
        messages.append(Message(0, 0, role, text, at, sender_name=speaker))  # type: ignore[arg-type]
        at += _TURN_S
    return messages


def _time(date: str) -> float:
    cleaned = re.sub(r"\s+", " ", date).strip()
    for form in _FORMATS:
        try:
            return datetime.strptime(cleaned, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return 0.0


def unit(rows: Vectors) -> Vectors:
    """Return rows of length 1, float32; no row may be zero."""
    wide = rows.astype(np.float32)
    scaled: Vectors = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return scaled
