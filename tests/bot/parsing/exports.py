"""Made-up exports of other assistants, in the form that they have."""

import io
import zipfile
from datetime import UTC, datetime
from typing import Any

import orjson

BEGAN = datetime(2024, 3, 12, 9, tzinfo=UTC).timestamp()


def chatgpt(*talks: tuple[str, str, str], at: float = BEGAN) -> list[dict[str, Any]]:
    """Return a `conversations.json`: a title, a question and an answer for each talk, a day apart.

    Each talk also has a branch that its person has left.
    """
    return [_chatgpt(at + number * 86_400, *talk) for number, talk in enumerate(talks)]


def _chatgpt(at: float, title: str, question: str, answer: str) -> dict[str, Any]:
    def node(parent: str | None, role: str, *parts: object) -> dict[str, Any]:
        content = {"content_type": "text", "parts": list(parts)}
        message = {"author": {"role": role}, "create_time": at, "content": content}
        return {"parent": parent, "children": [], "message": message}

    mapping = {
        "root": {"parent": None, "children": ["system"], "message": None},
        "system": node("root", "system", "Be brief."),
        "question": node("system", "user", {"asset_pointer": "a picture"}, question),
        "left": node("question", "assistant", "an answer that nobody kept"),
        "answer": node("question", "assistant", answer),
    }
    return {"title": title, "create_time": at, "mapping": mapping, "current_node": "answer"}


def claude(title: str, question: str, answer: str) -> list[dict[str, Any]]:
    """Return Claude's `conversations.json` with one talk."""
    at = "2024-03-12T09:00:00.000000Z"
    content = [{"type": "text", "text": answer}, {"type": "tool_use", "text": None}]
    messages = [
        {"sender": "human", "created_at": at, "text": question},
        {"sender": "assistant", "created_at": at, "text": "", "content": content},
    ]
    return [{"uuid": "1", "name": title, "created_at": at, "chat_messages": messages}]


def gemini(*asked: tuple[str, str, str]) -> list[dict[str, Any]]:
    """Return Gemini's activity of Google Takeout: title, answer and time of each item."""
    items: list[dict[str, Any]] = []
    for title, answer, time in asked:
        items.append({"header": "Gemini Apps", "title": title, "time": time})
        items[-1] |= {"safeHtmlItem": [{"html": answer}]} if answer else {}
    return items


def zipped(conversations: object, name: str = "conversations.json", members: int = 3) -> bytes:
    """Return a zip with these talks and other files, some with a name that leads elsewhere."""
    content = conversations if isinstance(conversations, bytes) else orjson.dumps(conversations)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(members):
            archive.writestr(f"../../{number}.html", b"<p>Hello")
        archive.writestr(name, content)
    return packed.getvalue()
