"""Edited messages: what they are read as, and what they change in a waiting or a stored text.

Pure: nothing here reads or writes anything.
"""

from collections.abc import Sequence
from dataclasses import replace

import telegram

from bot.telegram.updates import (
    EDITABLE,
    AlbumPart,
    Ignored,
    IncomingMessage,
    ReplyTarget,
    Stranger,
    Update,
    readable,
    to_bytes,
)
from memory.message import Message, joined, texts_of

_NO_WORDS = "…"  # stands for a caption that was removed, where a message must have some text


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
    if message.location or read.kind not in EDITABLE or not (read.text or read.file):
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
    # Times are whole seconds. In the same second the later update has the newer words.
    before, now = (waiting.edited_at, waiting.update_id), (edit.edited_at, edit.update_id)
    replaced, edited = waiting.replaced, waiting
    if replaced is None and waiting.message_id == edit.message_id:
        edited = replace(waiting, text=edit.text) if before < now else waiting
    elif replaced and waiting.kind == "text":
        if not any(edit.message_id in message.message_ids for message in replaced.question):
            return None
        question = tuple(with_edits(replaced.question, edit))
        edited = replace(waiting, replaced=replace(replaced, question=question))
    else:
        return None
    if edited == waiting:
        return body
    edited_at, update_id = max(before, now)
    return to_bytes(replace(edited, update_id=update_id, edited_at=edited_at))


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


def with_edits(question: Sequence[Message], edit: IncomingMessage) -> list[Message]:
    """Return the messages of a question with the new words of an edit.

    A photo without words, which has only what it shows, gets its caption as a message of its own.
    A caption that was removed goes, unless no message would be left. The caption of a sound stays:
    only "heard wrong" edits a sound, and that changes what was heard.
    """
    about = [message for message in question if edit.message_id in message.message_ids]
    is_heard = any(not (each.photo or each.is_first_party) for each in about)
    stays = [each for each in about if each.photo or (is_heard and each.is_first_party)]
    edited = [each if each in stays else with_edit(each, edit, question) for each in question]
    if edit.text and about and about[-1].photo:
        caption = replace(about[-1], text="", seq=0, is_first_party=True, photo="", edited_at=())
        edited.insert(question.index(about[-1]) + 1, with_edit(caption, edit, question))
    said = [each for each in edited if each.text != _NO_WORDS or each in question]
    return edited if edit.text or not said else said


def target_again(question: Message, said: Sequence[Message]) -> ReplyTarget | None:
    """Return the photo that a question replied to, to be shown again, None if there is none."""
    photo = next((m.photo for m in said if m.photo and question.replied_to in m.message_ids), "")
    return ReplyTarget(question.replied_to, "", 0, "", photo=photo) if photo else None


def with_edit(message: Message, edit: IncomingMessage, beside: Sequence[Message] = ()) -> Message:
    """Return a stored message with the new words of an edit.

    An edit of another message changes nothing. Neither does one that arrives after a newer edit,
    one without words if no photo is among the messages `beside`, nor one of several messages whose
    lengths are unknown because an older version stored them.
    What a photo shows stays: its caption is another message, or, if it got one later, stands below.
    """
    ids = message.message_ids
    if edit.message_id not in ids or not (edit.text or any(each.photo for each in beside)):
        return message
    at, count = ids.index(edit.message_id), len(ids)
    stamps = [*message.edited_at, *(0 for _ in range(2 * count))][: 2 * count]
    if (edit.edited_at, edit.update_id) < (stamps[at], stamps[count + at]):
        return message
    stamps[at], stamps[count + at] = edit.edited_at, edit.update_id
    if count == 1:
        shown = [message.text.partition("\n")[0]] if message.photo else []
        text = "\n".join((*shown, edit.text)).strip() or _NO_WORDS
        return replace(message, text=text, edited_at=tuple(stamps))
    texts = texts_of(message)
    if not texts:
        return message
    texts[at] = edit.text or None
    text, lengths = joined(texts)
    return replace(message, text=text or _NO_WORDS, lengths=lengths, edited_at=tuple(stamps))
