"""Who may change what is remembered: the rule by itself."""

import pytest

from memory.behaviors.call_context import Asker, is_first_party, may_change

ANN, BOB = 7, 8


class Admins:
    """Knows whether somebody is one, and how often that was asked."""

    def __init__(self, *, is_admin: bool) -> None:
        self.asked = 0
        self._is_admin = is_admin

    async def look_up(self) -> bool:
        self.asked += 1
        return self._is_admin


@pytest.mark.parametrize("senders", [[], [ANN], [BOB], [ANN, BOB], [0]])
async def test_in_private_everything_is_ones_own_and_nobody_is_looked_up(
    senders: list[int],
) -> None:
    admins = Admins(is_admin=False)
    assert await may_change(Asker(ANN, is_group=False, is_admin=admins.look_up), senders)
    assert admins.asked == 0


@pytest.mark.parametrize(
    ("senders", "is_own_word"),
    [([ANN], True), ([ANN, ANN], True), ([BOB], False), ([ANN, BOB], False), ([], False)],
)
async def test_in_a_group_one_changes_ones_own_word_and_an_admin_all(
    senders: list[int], *, is_own_word: bool
) -> None:
    for is_admin in (True, False):
        admins = Admins(is_admin=is_admin)
        asker = Asker(ANN, is_group=True, is_admin=admins.look_up)
        assert await may_change(asker, senders) == (is_own_word or is_admin)
        assert admins.asked == (not is_own_word)


def test_what_nobody_in_particular_said_is_nobodys_own() -> None:
    assert not is_first_party(0, [0])
