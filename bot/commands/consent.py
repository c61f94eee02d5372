"""Says what tools remember and forget; asks first if the rule wants it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import orjson

from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part
from memory.scopes.writes import ForgetRecord, Keep, Remember, SetDomain, StillTrue, ToolWrite

YES, NO, REWORD = "yes", "no", "reword"
"""The verbs of the buttons; the last one asks for other words."""
_MAX_DOMAIN_CHARS = 2_000
"""More than `MAX_DOMAIN_BYTES`: a person sees all that they agree to."""


_LABELS: Mapping[type[ToolWrite], tuple[str, str]] = {
    ForgetRecord: ("forget", "dont_forget"),
    StillTrue: ("still", "not_still"),
}


def questions(
    sentences: Sentences, language: str, writes: Sequence[ToolWrite], *, are_cards: bool = False
) -> tuple[Part, ...]:
    """Return a question with two buttons for each write that needs an answer.

    `are_cards`: the facts were learned, and a third button asks for other words.
    """
    edit = sentences.text(language, "buttons.edit")
    return tuple(
        replace(
            _described(sentences, language, "ask", write),
            buttons=(
                _row(sentences, language, write),
                *[(Button(edit, f"{REWORD}:{write.nonce}"),)] * are_cards,
            ),
        )
        for write in writes
        if write.nonce
    )


def confirmations(
    sentences: Sentences, language: str, writes: Sequence[ToolWrite]
) -> tuple[Part, ...]:
    """Return a line for each fact that is remembered or forgotten without a question.

    Domain fields are the operator's: their tools say themselves what they did.
    """
    return tuple(
        _described(sentences, language, "did", write)
        for write in writes
        if not write.asks_first and not isinstance(write, SetDomain | Keep)
    )


def _described(sentences: Sentences, language: str, how: str, write: ToolWrite) -> Part:
    """Say exactly what will change ("ask") or has changed ("did")."""
    match write:
        case ForgetRecord():
            key, text = f"{how}_forget", write.old_text
        case StillTrue():
            key, text = "ask_still", write.old_text
        case Remember():
            key, text = f"{how}_replace" if write.old_text else how, write.text
        case SetDomain():
            key, text = how, _fields(write)
        case Keep():
            key, text = how, write.text
    old = write.old_text if isinstance(write, Remember) else ""
    return sentences.say(language, f"consent.{key}", text=text, old=old)[-1]


def _fields(write: SetDomain) -> str:
    """Return the fields as text. JSON that is no object sets nothing, and is shown unchanged."""
    try:
        fields = dict(orjson.loads(write.fields))
    except (TypeError, ValueError):
        return write.fields[:_MAX_DOMAIN_CHARS]
    return "; ".join(f"{name}: {value}" for name, value in fields.items())[:_MAX_DOMAIN_CHARS]


def _row(sentences: Sentences, language: str, write: ToolWrite) -> tuple[Button, ...]:
    yes, no = _LABELS.get(type(write), ("remember", "dont_remember"))
    return (
        Button(sentences.text(language, f"buttons.{yes}"), f"{YES}:{write.nonce}"),
        Button(sentences.text(language, f"buttons.{no}"), f"{NO}:{write.nonce}"),
    )
