"""Random steps of the protocol's own scripts in one conversation: for comparing two servers.

No answer depends on the moment: messages are not gathered, leases outlast the test.
"""

from random import Random

from memory.store.client import Arg, Reply

Step = tuple[str, tuple[Arg, ...]]

_PEOPLE = (7, 8)
_TTL_S = 86_400
_LEASE_MS = 100_000
_HOW = (_LEASE_MS, 0, 0, 32, 0, 0, 0, 0, 12)


class RandomSteps:
    """Draws steps; what it learns of answers makes the next ones meaningful."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._made = 0
        self._token, self._epoch, self._erasure, self._turn = "0:none", "0", "0", "0"

    def next(self) -> Step:
        """Return the name of a script and its arguments."""
        self._made += 1
        make = self._random.choice(
            (*[self._intake] * 4, *[self._acquire] * 3, *[self._in_turn] * 6, self._erase)
        )
        return make()

    def learn(self, script: str, answer: Reply) -> None:
        """Take over whose turn it is."""
        if script == "intake" and answer[0] == b"unmet":
            self._erasure = answer[1].decode()
        begun = answer if script == "acquire" else answer[-1] if script == "commit" else [b""]
        if isinstance(begun, list) and begun[0] == b"turn":
            self._token, self._epoch, self._erasure, self._turn = (
                part.decode() for part in begun[1:5]
            )

    def _intake(self) -> Step:
        update_id = self._made - self._random.choice((0, 0, 0, 1, 5))
        kind = self._random.choice("ttc")
        member = f"{update_id}|{self._random.choice(_PEOPLE)}|{kind}|words"
        forgotten_until = self._random.choice((0, 0, self._made // 2))
        kept = (_TTL_S, 20_000, 10**9)
        return "intake", (update_id, member, *kept, forgotten_until, self._erasure)

    def _acquire(self) -> Step:
        token = self._random.choice(("", "", self._token))
        return "acquire", (token, f"part{self._made}", f"{self._made}-0|1", *_HOW)

    def _in_turn(self) -> Step:
        named = (self._token, self._epoch, self._erasure)
        return self._random.choice(
            (
                ("renew", (*named, _LEASE_MS)),
                ("outbox", (*named, _LEASE_MS, "parts")),
                ("sending", (*named, _LEASE_MS, 1, "100")),
                ("failed", (*named, self._turn, "Error")),
                ("hand_over", (self._token,)),
                ("set_aside", (*named, _LEASE_MS, _TTL_S, "Error", 3, "notice")),
                *[("commit", (*named, self._turn, _TTL_S, "1", "", "", 2, *_HOW, *self._said()))]
                * 3,
            )
        )

    def _said(self) -> tuple[Arg, ...]:
        asked = ("user", f"w{self._made}", self._made, 7, "Ann", "1", 3)
        return (*asked, "assistant", "yes", self._made + 1, 0, "", "", 1)

    def _erase(self) -> Step:
        cut, receipt = self._made // 2, f"receipt{self._made}"
        return self._random.choice(
            (
                ("wipe", (receipt, cut, _TTL_S, self._made - 20)),
                ("erase_person", (receipt, self._random.choice(_PEOPLE), cut)),
                ("clear", (receipt, 7, cut, "", _TTL_S)),
                ("touch", (_TTL_S,)),
                ("read_notes", (0, 0, 12, self._epoch, self._erasure)),
            )
        )
