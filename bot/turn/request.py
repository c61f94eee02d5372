"""What a turn answers: the messages that it took from the mailbox, joined into one."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby

from bot.telegram.chat import Destination
from bot.telegram.updates import MEDIA, STICKER_FILE, WITH_WORDS, IncomingMessage, from_bytes
from memory.message import Message, Picture, joined
from memory.queue.mailbox import Entry
from memory.queue.open_turn import OpenTurn, Run
from memory.scopes.scope_memory import ScopeMemory
from memory.text.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file of a turn."""

    here: ScopeMemory  # as read before the download: after an erasure since, a write is refused
    content: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """What a turn answers.

    Forwarded words are not taken for the person's own, so they are messages of their own. The last
    update decides what kind of answer is due, in which language, and to which message.
    """

    updates: tuple[IncomingMessage, ...]  # as Telegram sent them, at least one
    message: Message  # joins their texts
    messages: tuple[Message, ...]  # its parts, as the history stores them
    entries: tuple[Entry, ...] = ()  # the updates as they wait in the mailbox
    run: Run = field(default_factory=Run, compare=False)  # what the person sees of the reply
    uses_memory: bool = True  # off the record none is read and none is written
    pictures: tuple[Picture, ...] = ()  # for the model, in this turn only
    fetched: list[Fetched] = field(default_factory=list, compare=False)  # for the next step

    @property
    def last(self) -> IncomingMessage:
        """The newest message."""
        return self.updates[-1]

    @property
    def replaces(self) -> tuple[int, ...]:
        """Messages of ours that show the former reply."""
        return self.last.replaced.answer_ids if self.last.replaced else ()

    @property
    def language(self) -> str:
        """The language of the person."""
        return self.last.sender.language

    @property
    def payer(self) -> int:
        """Whose quota and usage this is. A group is one payer for its channels and hidden admins.

        A person may write in the name of any number of channels.
        """
        sender_id = self.message.sender_id
        return sender_id if sender_id > 0 else self.last.chat_id

    @property
    def brings_no_file(self) -> bool:
        """Whether nothing was sent but texts, and stickers, whose emoji says enough."""
        return not self.replaces and {u.file.name for u in self.updates if u.file} <= {STICKER_FILE}

    @property
    def to(self) -> Destination:
        """Where the reply goes."""
        return answer_to(self.last)


def unpack(opened: OpenTurn, tokens: TokenCounter) -> Request:
    """Return what a turn has to answer.

    The joined message is as old as the first one: if a person asks to be forgotten between two of
    them, the first one has to go.
    """
    updates = tuple(from_bytes(entry.body) for entry in opened.entries)
    message, messages = _messages(updates, tokens)
    replaced = updates[-1].replaced
    if replaced and replaced.question:
        messages = tuple(replace(m, tokens=tokens.count(m.text)) for m in replaced.question)
        message = replace(
            messages[-1],
            text="\n".join(each.text for each in messages),
            sent_at=messages[0].sent_at,
            message_ids=tuple(chain.from_iterable(each.message_ids for each in messages)),
            tokens=sum(each.tokens for each in messages),
            is_first_party=all(each.is_first_party for each in messages),
            unseen=", ".join(dict.fromkeys(each.unseen for each in messages if each.unseen)),
        )
    uses_memory = not is_off_record(opened, updates)
    return Request(updates, message, messages, opened.entries, opened.run, uses_memory)


def with_words(request: Request, heard: Sequence[tuple[int, str]], tokens: TokenCounter) -> Request:
    """Return a request in which voice messages and photos have become texts.

    Spoken words stand below their caption. What a photo shows is not the person's own text, so it
    becomes a message of its own, before the caption. A sound that has a name was sent as a file.
    Somebody else may be heard in it, so its words become a message of their own below the caption.
    """
    words = dict(heard)
    updates: list[IncomingMessage] = []
    for update in request.updates:
        said = words.get(update.message_id)
        if said is None or update.kind not in MEDIA:
            updates.append(update)
            continue
        plain = replace(update, kind="text", file=None, unseen="")
        is_photo, photo = update.kind == "photo", update.file if update.kind == "photo" else None
        if update.is_first_party and (is_photo or (update.file and update.file.name)):
            apart = replace(plain, text=said, is_first_party=False, file=photo)
            both = (apart, plain) if is_photo else (plain, apart)
            updates += [each for each in both if each.text]
        else:
            text = "\n".join(filter(None, (update.text, said)))
            updates.append(replace(plain, text=text, file=photo))
    message, messages = _messages(updates, tokens)
    return replace(request, updates=tuple(updates), message=message, messages=messages)


def _messages(
    updates: Sequence[IncomingMessage], tokens: TokenCounter
) -> tuple[Message, tuple[Message, ...]]:
    groups = groupby(updates, key=lambda update: 0 if update.is_first_party else update.update_id)
    parts = [_joined(tuple(group), tokens) for _, group in groups]
    whole = parts[0] if len(parts) == 1 else _joined(updates, tokens)
    return whole, tuple(part for part in parts if part.text)


def is_off_record(opened: OpenTurn, updates: Sequence[IncomingMessage]) -> bool:
    """Return whether any message was sent, or edited, in a session off the record.

    A question that is answered again comes from the history.
    """
    session = opened.off_record
    times = (each.edited_at or each.sent_at for each in updates if not each.replaced)
    return session is not None and any(map(session.covers, times))


def _joined(updates: Sequence[IncomingMessage], tokens: TokenCounter) -> Message:
    texts = [update for update in updates if update.kind in WITH_WORDS]
    text, lengths = joined([each.text if each in texts else None for each in updates])
    first, last = updates[0], updates[-1]
    # Only a text that describes a photo has a file; a sticker's emoji says enough.
    photo = first.file if first.kind == "text" else None
    edits = [(each.edited_at, each.update_id if each.edited_at else 0) for each in updates]
    return Message(
        seq=0,
        exchange=0,
        role="user",
        text=text,
        sent_at=first.sent_at,
        sender_id=last.sender.id,
        sender_name=last.sender.name,
        message_ids=tuple(update.message_id for update in updates),
        tokens=tokens.count(text),
        is_first_party=all(update.is_first_party for update in updates),
        forwarded_from=first.forwarded_from if len(updates) == 1 else "",
        forwarded_at=first.forwarded_at if len(updates) == 1 else 0,
        lengths=lengths if len(updates) > 1 else (),
        unseen=", ".join(dict.fromkeys(each.unseen for each in texts if each.unseen)),
        replied_to=next((each.replied_to for each in texts[::-1] if each.replied_to), 0),
        photo=photo.file_id if photo and photo.name != STICKER_FILE else "",
        album=next((each.album for each in texts if each.album), ""),
        edited_at=tuple(chain(*zip(*edits, strict=True))) if any(map(any, edits)) else (),
    )


def answer_to(asked: IncomingMessage) -> Destination:
    """Return where the reply to a message goes.

    In a group and after `/retry` the reply points at the message that it answers. The reply to a
    task points at the message that asked for the task.
    """
    shows_question = (asked.is_group or asked.is_retried) and asked.message_id > 0
    is_task = asked.message_id < 0
    reply_to = asked.message_id if shows_question else asked.replied_to if is_task else 0
    return Destination(asked.chat_id, asked.topic_id, reply_to)
