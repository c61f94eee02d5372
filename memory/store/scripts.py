"""Loads the Lua scripts that make each step of the protocol atomic.

Only this package calls them; every script takes the keys of one conversation in the order of
`ConversationKeys.all`, keys of one person, keys of usage, or one key of its own.
"""

from importlib.resources import files

from memory.store.client import RedisClient, Script

_LUA = files("memory.store") / "lua"
_WITH_BEGIN = ("acquire", "commit")
_WITH_NOTES = (*_WITH_BEGIN, "read_notes")
_WITH_CONSUMERS = ("count_consumers", "remove_consumers")
_WITH_SEND_RATE = ("take_permit", "ban_chat")
_OF_CONVERSATION = (
    *_WITH_BEGIN,
    "append",
    "clear",
    "cut",
    "drop_messages",
    "drop_vectors",
    "erase_person",
    "failed",
    "forwarded",
    "hand_over",
    "intake",
    "learn_vectors",
    "migrate_scope",
    "move",
    "outbox",
    "park",
    "read_notes",
    "renew",
    "revise",
    "sending",
    "set_aside",
    "take_letter",
    "touch",
    "turn_off",
    "turn_on",
    "wipe",
    "write",
)
_OF_PERSON = ("spoke",)
_OF_USAGE = (
    "admit_turn",
    "count_usage",
    "forget_usage",
)
_OF_ONE_KEY = (
    *_WITH_CONSUMERS,
    *_WITH_SEND_RATE,
    "ack",
    "drop_unless_newer",
    "forget_until",
    "lease",
    "note_capacity",
    "postpone",
    "reclaim",
    "release_ballast",
    "renew_wake_up",
    "take_due",
    "unlease",
)


def source(name: str) -> str:
    """Return the whole text of a script, the shared parts in front."""
    parts = ["clock"]
    parts += ["prelude"] if name in _OF_CONVERSATION else []
    parts += ["notes"] if name in _WITH_NOTES else []
    parts += ["begin"] if name in _WITH_BEGIN else []
    parts += ["consumers"] if name in _WITH_CONSUMERS else []
    parts += ["token_sums"] if name in _OF_USAGE else []
    parts += ["send_rate"] if name in _WITH_SEND_RATE else []
    return "\n".join((_LUA / f"{part}.lua").read_text() for part in (*parts, name))


class Scripts:
    """All scripts of the protocol, ready to be called on one client."""

    def __init__(self, client: RedisClient) -> None:
        self._scripts = {
            name: client.script(source(name))
            for name in (*_OF_CONVERSATION, *_OF_PERSON, *_OF_USAGE, *_OF_ONE_KEY)
        }

    def __getitem__(self, name: str) -> Script:
        """Return the script of this name; `KeyError` when there is none."""
        return self._scripts[name]
