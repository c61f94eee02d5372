"""`Reach`: in which conversations a behavior runs, or a namespace of documents is read. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class Reach:
    """The conversations that an operator names; without `targets` all of them.

    A target is `private` (all private chats), `groups`, the id of a chat with all its topics, or
    `<chat id>:<topic id>`. The id of a private chat is that of its person.
    """

    targets: frozenset[str] = frozenset()

    def covers(self, conversation: Scope) -> bool:
        """Return whether the conversation is one of them."""
        if not self.targets:
            return True
        chat = conversation.chat_id
        kind = "private" if chat > 0 else "groups"
        names = {kind, str(chat), f"{chat}:{conversation.topic_id}"} if chat else set()
        return not self.targets.isdisjoint(names)


EVERYWHERE = Reach()


def reaches_of(entries: Iterable[str]) -> dict[str, Reach]:
    """Return the reach of each name; entries are `<name>` or `<name>@<target>`, and add up."""
    targets: dict[str, set[str]] = {}
    for entry in entries:
        name, _, target = entry.partition("@")
        targets.setdefault(name, set()).add(target)
    return {
        name: EVERYWHERE if "" in named else Reach(frozenset(named))
        for name, named in targets.items()
    }
