"""Reads a 👎 on one of our answers as `/why` in reply to it.

Telegram does not say in which topic the message stands, so our log is searched for it. In a group
only the person who got the answer is heard. Otherwise everybody's 👎 would be answered.
"""

from bot.commands.why import NAME
from bot.telegram.updates import Disliked, IncomingMessage
from memory.memory import Memory
from memory.scopes.message_reading import read_newest
from memory.store.keys import Scope

_MAX_TOPICS = 20


async def asked_why(disliked: Disliked, memory: Memory) -> IncomingMessage | None:
    """Return the command, None if the message is none of our newest answers; raise `StoreError`."""
    tags = await memory.client.call("HKEYS", memory.keys.person(disliked.sender.id))
    spoken_in = (Scope(tag.decode()) for tag in tags)
    topics = {each.topic_id for each in spoken_in if each.chat_id == disliked.chat_id} - {0}
    newest = sorted(topics, reverse=True)[:_MAX_TOPICS]
    for topic_id in (0, *newest):
        scope = await memory.mailbox.resolve(Scope.of_chat(disliked.chat_id, topic_id))
        if await _got_answer(disliked, memory, scope):
            return IncomingMessage(
                update_id=disliked.update_id,
                chat_id=disliked.chat_id,
                topic_id=topic_id,
                is_group=disliked.is_group,
                message_id=disliked.message_id,
                sent_at=disliked.sent_at,
                sender=disliked.sender,
                kind="command",
                text="",
                command=NAME,
                replied_to=disliked.message_id,
            )
    return None


async def _got_answer(disliked: Disliked, memory: Memory, conversation: Scope) -> bool:
    """Return whether the message is an answer there, in a group one to this person."""
    messages = await read_newest(memory.store, conversation)
    exchanges = {
        message.exchange
        for message in messages
        if message.role == "assistant" and disliked.message_id in message.message_ids
    }
    return any(
        message.exchange in exchanges
        and (not disliked.is_group or message.sender_id == disliked.sender.id)
        for message in messages
    )
