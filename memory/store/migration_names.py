"""Old and new names of stored keys and fields, for the migration of data from earlier versions.

Names that are not listed here did not change, or expire within two days and may be lost.
"""

RENAMED_KEYS = {
    "doorbell": "ready",
    "deadletters": "dead_letters",
    "plan": "capacity",
    "reserve": "ballast",
}
"""Keys of the whole bot, without the prefix of the bot.

On a Cluster the two names have different slots, so that `RENAME` fails there. Wake-ups need not be
copied: every start wakes up all conversations with waiting messages. The ballast must not be
copied: delete the old key, and the next look at the capacity allocates a new one.
"""

RENAMED_CAPACITY_FIELDS = {
    "words_only": "lexical_only",
    "told_vectors": "reported_vectors",
    "told_messages": "reported_messages",
    "told:filling": "reported:filling",
    "told:full": "reported:full",
    "told:dropped": "reported:dropped",
}
"""Fields of the hash `capacity`."""

RENAMED_SCOPE_KEYS = {"dead": "dead_letters"}
"""Keys of one scope, without its prefix; both names have the same slot."""

RENAMED_META_FIELDS = {
    "bell": "wake_up",
    "born": "generation",
    "sitting": "session",
    "vec_stamp": "vector_fingerprint",
    "rvec_stamp": "record_vector_fingerprint",
    "words_only": "lexical_only",
}
"""Fields of the hash `meta` of a scope."""

RENAMED_TURN_FIELDS = {"room": "ballast", "by": "begun_by"}
"""Fields of the hash `turn` of a conversation, which exists only while a turn is open."""
