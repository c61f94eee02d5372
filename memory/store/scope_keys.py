"""`ScopeKeys`: the names of all keys of one scope; `Keys.scope` makes them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScopeKeys:
    """The keys of one scope. A script takes those that it uses."""

    meta: str
    lease: str
    turn: str
    mailbox: str
    seen: str
    log: str
    vectors: str
    confirm: str
    learned: str
    records: str
    record_vectors: str
    dead_letters: str
    work: str
    off_record: str
    albums: str

    @property
    def all(self) -> tuple[str, ...]:
        """Return all keys."""
        return (
            *(self.meta, self.lease, self.turn, self.mailbox, self.seen, self.log, self.vectors),
            *(self.confirm, self.learned, self.records, self.record_vectors, self.dead_letters),
            *(self.work, self.off_record, self.albums),
        )

    @property
    def turn_keys(self) -> tuple[str, ...]:
        """Return the keys of intake and turns, which need neither confirmations nor albums."""
        return tuple(key for key in self.all if key not in (self.confirm, self.albums))

    @property
    def step_keys(self) -> tuple[str, ...]:
        """Return the keys of a step that changes only the open turn and its lease."""
        return self.meta, self.lease, self.turn

    @property
    def run_keys(self) -> tuple[str, ...]:
        """Return the keys of a step that also looks for messages which follow those of the turn."""
        return *self.step_keys, self.mailbox, self.seen

    @property
    def of_records(self) -> tuple[str, ...]:
        """Return the keys of what was learned, for a reader."""
        return self.meta, self.learned, self.records, self.record_vectors

    @property
    def of_writes(self) -> tuple[str, ...]:
        """Return the keys of what was learned and of all else that expires with it."""
        return (
            *(*self.of_records, self.turn, self.mailbox, self.seen, self.log, self.vectors),
            self.dead_letters,
        )
