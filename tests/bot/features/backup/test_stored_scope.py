"""A backup says of every key whether it holds it."""

from bot.features.backup import saving as stored_scope
from memory.store.keys import Keys, ScopeKeys


def test_every_key_of_a_scope_is_backed_up_or_left_out() -> None:
    listed = [*stored_scope.HASHES, *stored_scope.STREAMS, *stored_scope.SCOPE_KEYS_LEFT_OUT]
    assert sorted(listed) == sorted(ScopeKeys._fields)


def test_every_key_of_a_bot_is_restored_or_left_out() -> None:
    """A new key belongs into one of the lists of `bot/features/backup/saving.py`."""
    attributes = {name for name in vars(Keys(42)) if not name.startswith("_")} - {"prefix"}
    no_keys = {"scope", "base", "index_of"}
    methods = {name for name in vars(Keys) if not name.startswith("_")} - no_keys
    listed = [
        *(stored_scope.BOT_KEYS, stored_scope.BOT_KEYS_OF_JOURNAL, stored_scope.BOT_KEYS_LEFT_OUT)
    ]
    names = [name for each in listed for name in each]
    assert sorted(names) == sorted(attributes | methods)
