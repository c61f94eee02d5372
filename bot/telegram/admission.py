"""Who may use the bot: people and groups in the settings, and those whom an admin let in."""

import re
from dataclasses import dataclass

from bot.telegram.updates import IncomingMessage
from config.settings import Settings
from memory.queue.mailbox import Mailbox
from memory.store.store import Store

_OWN_RIGHTS = frozenset({"privacy", "export", "forget"})
OWN_BUTTON = re.compile(r"(?:cancel:[^:]+:)?(?:forget|delete_message)\b|privacy:more\b")
"""How the callback data of buttons below the answers to these commands begins."""


class Members:
    """Whom operators have let in or refused, as this process has read it; ids below 0: groups."""

    def __init__(self, store: Store) -> None:
        self.admitted: frozenset[int] = frozenset()
        self.refused: frozenset[int] = frozenset()
        # People who were in before. Whoever drops what they have waiting also empties it.
        self.removed: set[int] = set()
        self._client = store.client
        self._key = store.keys.access
        self._version: bytes | None = None

    async def refresh(self) -> None:
        """Read the ids if they have changed; else it is one round trip. Raise `StoreError`."""
        key = self._key
        while (version := await self._client.call("GET", key("version"))) != self._version:
            known = self._version
            admitted, refused = await self._client.pipeline(
                [("HKEYS", key("admitted")), ("HKEYS", key("refused"))]
            )
            if self._version != known:
                continue  # Another call has read the list meanwhile; these ids may be older.
            admitted = frozenset(map(int, admitted))
            self.removed |= self.admitted - admitted
            self.admitted, self.refused = admitted, frozenset(map(int, refused))
            self._version = version
            return


@dataclass(frozen=True, slots=True)
class Admission:
    """The rules of one bot; `members` are those whom its admins let in.

    With `ACCESS=open` everybody may use the bot in private, or only the named people if there are
    any. Groups are limited if some are named or if `ACCESS` is another. In a group that is in,
    everybody is served whom no admin has refused.
    """

    settings: Settings
    members: Members

    @property
    def limits_groups(self) -> bool:
        """Whether only some groups may use the bot. Only then do `members` count."""
        return self.settings.access != "open" or bool(self.settings.allowed_group_ids)

    async def drop_removed(self, mailbox: Mailbox) -> None:
        """Drop the waiting messages of people whom an operator removed, and end their turns.

        Each process reads the ids for this, because each may have taken a message in before it
        knew. Raise `StoreError`.
        """
        if self.limits_groups:
            await self.members.refresh()
            for person in tuple(self.members.removed):
                await mailbox.drop_sender(person)
                self.members.removed.discard(person)

    def serves(self, sender_id: int, chat_id: int) -> bool:
        """Say whether somebody may use the bot in a chat, as far as this process knows."""
        if chat_id > 0 or not self.limits_groups:
            return self.serves_person(sender_id)
        admins, refused = self.settings.admin_user_ids, self.members.refused
        return self.serves_group(chat_id) and (sender_id in admins or sender_id not in refused)

    def serves_person(self, id_: int) -> bool:
        """Say whether a person may use the bot in private."""
        if self.settings.access == "open":
            return not self.settings.allowed_user_ids or self.is_named(id_)
        return self.is_named(id_) or id_ in self.members.admitted

    def serves_group(self, id_: int) -> bool:
        """Say whether a group may use the bot, if groups are limited."""
        return id_ in self.settings.allowed_group_ids or id_ in self.members.admitted

    def is_named(self, id_: int) -> bool:
        """Say whether the settings name a person or a group; admins are named."""
        named = self.settings
        lists = (named.allowed_user_ids, named.admin_user_ids, named.allowed_group_ids)
        return any(id_ in each for each in lists)

    async def admits(self, message: IncomingMessage) -> bool:
        """Say whether a message may be answered; raise `StoreError`.

        The members are read only if this process does not know that it may.
        """
        sender, chat_id = message.sender.id, message.chat_id
        if self.limits_groups and not self.serves(sender, chat_id):
            await self.members.refresh()
        return self.serves(sender, chat_id)


def is_own_right(message: IncomingMessage) -> bool:
    """Return whether a message is about what is stored of its sender, which is always answered."""
    return message.kind == "command" and message.command in _OWN_RIGHTS and not message.is_group
