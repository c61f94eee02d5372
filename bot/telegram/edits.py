"""Edited messages: what they are read as, and what they change in a waiting or a stored text.

Pure: nothing here reads or writes anything.
"""

from dataclasses import replace

import telegram

from bot.telegram.updates import (
    EDITABLE,
    AlbumPart,
    Ignored,
    IncomingMessage,
    Stranger,
    Update,
    readable,
    to_bytes,
)
from memory.message import Message, joined, texts_of


def read_edit(message: telegram.Message, read: Update) -> Update:
    """Return an edited message as an edit.

    Commands are not run again. Only a live location is ever edited, each time that it moves.
    """
    if isinstance(read, Stranger):
        return Ignored(read.update_id, "stranger")
    if isinstance(read, AlbumPart):
        edit = read_edit(message, read.message)
        return replace(read, message=edit) if isinstance(edit, IncomingMessage) else edit
    if not isinstance(read, IncomingMessage):
        return read
    if message.location or read.kind not in EDITABLE or not read.text:
        return Ignored(read.update_id, "edit")
    edited_at = int((message.edit_date or message.date).timestamp())
    return replace(read, kind="edit", command="", file=None, edited_at=edited_at)


def edited_entry(edit: IncomingMessage, body: bytes) -> bytes | None:
    """Return the body of a waiting message with its new text.

    Return None if the edit is about another message, and the same body if it changes nothing.
    """
    waiting = readable(body)
    if waiting is None or waiting.sender.id != edit.sender.id:
        return None
    if waiting.kind not in (*EDITABLE, "edit"):
        return None
    replaced, edited = waiting.replaced, waiting
    if replaced is None and waiting.message_id == edit.message_id:
        edited = replace(waiting, text=edit.text)
    elif replaced and waiting.kind == "text":
        if not any(edit.message_id in message.message_ids for message in replaced.question):
            return None
        question = tuple(with_edit(message, edit) for message in replaced.question)
        edited = replace(waiting, replaced=replace(replaced, question=question))
    else:
        return None
    # Times are whole seconds. In the same second the later update has the newer words.
    is_older = (edit.edited_at, edit.update_id) < (waiting.edited_at, waiting.update_id)
    if edited == waiting or is_older:
        return body
    return to_bytes(replace(edited, update_id=edit.update_id, edited_at=edit.edited_at))


def is_about(message_id: int, body: bytes) -> bool:
    """Return whether an entry would answer or change this message, or do the task it asked for."""
    waiting = readable(body)
    if waiting is None:
        return False
    if waiting.replaced and (question := waiting.replaced.question):
        ids = {id_ for each in question for id_ in each.message_ids}
        return message_id in ids | {each.replied_to for each in question if each.is_task}
    about = waiting.replied_to if waiting.is_task else waiting.message_id
    return (waiting.kind == "edit" or waiting.is_task) and about == message_id


def with_edit(message: Message, edit: IncomingMessage) -> Message:
    """Return a stored message with the new words of an edit.

    An edit of another message changes nothing. Neither does one that arrives after a newer edit,
    nor one of several messages whose lengths are unknown because an older version stored them.
    What a photo shows stays: its caption is another message.
    """
    ids = message.message_ids
    if edit.message_id not in ids or message.photo:
        return message
    at = ids.index(edit.message_id)
    times = list(message.edited_at or (0 for _ in ids))
    if edit.edited_at < times[at]:
        return message
    times[at] = edit.edited_at
    if len(ids) == 1:
        return replace(message, text=edit.text, edited_at=tuple(times))
    texts = texts_of(message)
    if not texts:
        return message
    texts[at] = edit.text
    text, lengths = joined(texts)
    return replace(message, text=text, lengths=lengths, edited_at=tuple(times))
