"""What a backup keeps of a scope, and which keys of a bot it leaves out.

Keys are read as fields and entries, not with DUMP: Redis ties a DUMP to its own version, so that
it cannot be restored into an older server or from Redis into Valkey. And what was erased since the
backup can be left out only if the scope can be read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory.backup.backup_file import FileRecord
from memory.store.journal import Version

HASHES = ("meta", "learned", "reminders")
STREAMS = ("log", "vectors", "records", "record_vectors")
"""The keys of a scope that a backup holds. They are content, or say how it is numbered."""
SCOPE_KEYS_LEFT_OUT = (
    *("lease", "turn", "mailbox", "seen", "confirm", "dead_letters", "off_record", "albums"),
)
"""The other keys: turns that run or wait, questions, and words that end with a session."""

BOT_KEYS = ("conversations", "scopes", "reminders", "learning", "person", "topic_name")
"""Keys of the whole bot that a restore writes again from what it restores."""
BOT_KEYS_OF_JOURNAL = ("erasures", "erasure_secrets", "access")
"""Keys that a file with only the journal holds too. Of `access` it holds `ACCESS_PARTS`."""
ACCESS_PARTS = ("admitted", "refused")
BOT_KEYS_LEFT_OUT = (
    # Work that runs, and who does it.
    *("ready_queue", "jobs", "job", "job_lease", "due", "learner", "poller", "sweeper", "signals"),
    *("off_record", "dead_letters", "person_epoch", "erased", "migrator", "layout", "restoring"),
    # What belongs to this server or this month.
    *("capacity", "capacity_lease", "ballast", "admins", "models", "send_rate", "last_backup"),
    *("usage", "turns_of", "refused_turn_of", "spent_of"),
    *("reporters", "report_of", "looks", "announcement", "reloads"),
)

META_LEFT_OUT = (
    *("wake_up", "committed", "committed_exchange", "committed_first", "closed", "stopped_by"),
    *(
        "off_record",
        "off_record_said",
        "off_record_ended",
        "met:",
        "sent:",
        "newest:",
        "lexical_only",
        "look",
    ),
)
"""Fields of `meta` about turns that run, or prefixes of such fields."""

_ROWS = 200

Row = tuple[int, dict[bytes, bytes]]
"""One entry of a stream: its number and its fields."""


@dataclass(frozen=True, slots=True)
class StoredScope:
    """All that a backup keeps of a scope, as it was at one moment (`version.read_at`).

    `ttl_s` is how long it still had to live, 0 for ever. `active_at` is its place in the index.
    `is_due`: something waits to be learned.
    """

    tag: str
    version: Version
    ttl_s: float
    active_at: float
    is_due: bool
    topic_named_by: str
    meta: Mapping[bytes, bytes]
    learned: Mapping[bytes, bytes]
    reminders: Mapping[bytes, bytes]
    log: Sequence[Row] = ()
    vectors: Sequence[Row] = ()
    records: Sequence[Row] = ()
    record_vectors: Sequence[Row] = ()

    @property
    def has_content(self) -> bool:
        """Whether anything is worth being stored again."""
        return bool(self.log or self.records or self.learned or self.reminders)

    def to_file(self) -> Iterator[FileRecord]:
        """Yield the records of a file; `from_file` puts them together again."""
        yield {
            "kind": "scope",
            "tag": self.tag,
            "epoch": self.version.epoch,
            "erasure": self.version.erasure,
            "read_at": self.version.read_at,
            "ttl_s": self.ttl_s,
            "active_at": self.active_at,
            "is_due": self.is_due,
            "topic_named_by": self.topic_named_by,
            **{name: _texts(getattr(self, name)) for name in HASHES},
        }
        for name in STREAMS:
            rows = getattr(self, name)
            for first in range(0, len(rows), _ROWS):
                page = [(number, _texts(row)) for number, row in rows[first : first + _ROWS]]
                yield {"kind": name, "rows": page}
        yield {"kind": "scope_end"}


def from_file(head: FileRecord, rest: Iterator[FileRecord]) -> StoredScope:
    """Return the scope that begins with `head`; take its other records from `rest`."""
    streams: dict[str, list[Row]] = {name: [] for name in STREAMS}
    for record in rest:
        if record["kind"] == "scope_end":
            break
        streams[record["kind"]] += [(number, _bytes(row)) for number, row in record["rows"]]
    return StoredScope(
        tag=head["tag"],
        version=Version(head["epoch"], head["erasure"], head["read_at"]),
        ttl_s=head["ttl_s"],
        active_at=head["active_at"],
        is_due=head["is_due"],
        topic_named_by=head["topic_named_by"],
        meta=_bytes(head["meta"]),
        learned=_bytes(head["learned"]),
        reminders=_bytes(head["reminders"]),
        log=streams["log"],
        vectors=streams["vectors"],
        records=streams["records"],
        record_vectors=streams["record_vectors"],
    )


def _texts(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    """Return bytes in a form that JSON has: each byte as the character of its number."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in fields.items()}


def _bytes(fields: Mapping[str, str]) -> dict[bytes, bytes]:
    return {name.encode("latin-1"): value.encode("latin-1") for name, value in fields.items()}
