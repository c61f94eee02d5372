"""What an operator's own behavior keeps of a conversation: short texts under names of its choice.

Each rests on the message of the turn in which it was kept, and goes with it: by `/clear`, by
`/forget`, and when that message alone is forgotten. `/export` tells them all. Nothing is kept while
memory is off, and nothing of a turn that brought no answer.
"""

from memory.behaviors.call_context import CallContext
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.writes import Keep, from_json, kept_field, read_kept

MAX_ENTRIES = 100
MAX_CHARS = 1_000


class CannotStore(Exception):  # noqa: N818 - says when
    """Raised for a text that is too long or too many, or when the turn has its answer already."""


class BehaviorStore:
    """The store of one behavior; others do not see it."""

    def __init__(self, scopes: Scopes, behavior: str) -> None:
        self._scopes = scopes
        self._behavior = behavior

    async def read(self, call_context: CallContext) -> dict[str, str]:
        """Return what is kept of this conversation, by name; of this turn, too."""
        here = await self._scopes.current(call_context.conversation)
        found = stored_by_behaviors(here).get(self._behavior, {})
        for turn in (name for name in here.fields if name.startswith("t:")):
            _, _, waiting = here.fields[turn].partition("|")
            self._apply(found, from_json(waiting))
        self._apply(found, call_context.writes or ())
        return found

    async def keep(self, call_context: CallContext, name: str, text: str) -> None:
        """Keep a text, in place of what has this name; "" drops it. Raise `CannotStore`.

        From a tool (with `context.occasion`) or a hook that runs before the answer.
        """
        if call_context.writes is None:
            raise CannotStore("the turn has its answer already")
        known = await self.read(call_context)
        if len(name) + len(text) > MAX_CHARS:
            raise CannotStore(f"more than {MAX_CHARS} characters")
        if text and name not in known and len(known) >= MAX_ENTRIES:
            raise CannotStore(f"more than {MAX_ENTRIES} entries")
        call_context.writes.append(Keep(self._behavior, name, text))

    def _apply(self, found: dict[str, str], writes: object) -> None:
        for write in writes if isinstance(writes, list | tuple) else ():
            if isinstance(write, Keep) and write.behavior == self._behavior:
                found.pop(write.name, None)
                if write.text:
                    found[write.name] = write.text


def stored_by_behaviors(here: ScopeMemory) -> dict[str, dict[str, str]]:
    """Return what all behaviors keep of a conversation, by behavior and name."""
    kept: dict[str, dict[str, str]] = {}
    for field, stored in here.fields.items():
        if (place := kept_field(field)) is not None:
            behavior, name = place
            kept.setdefault(behavior, {})[name] = read_kept(stored)
    return kept
