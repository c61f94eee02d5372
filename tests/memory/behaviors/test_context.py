"""Who may change a memory: the rule alone."""

import pytest

from memory.behaviors.context import Asker, is_first_party, may_change

ANN, BOB = 7, 8


class Admins:
    """Answers whether a person is an administrator, and counts the questions."""

    def __init__(self, *, is_admin: bool) -> None:
        self.asked = 0
        self._is_admin = is_admin

    async def look_up(self) -> bool:
        self.asked += 1
        return self._is_admin


@pytest.mark.parametrize("senders", [[], [ANN], [BOB], [ANN, BOB], [0]])
async def test_in_private_people_may_change_all_without_an_admin_check(senders: list[int]) -> None:
    admins = Admins(is_admin=False)
    assert await may_change(Asker(ANN, is_group=False, is_admin=admins.look_up), senders)
    assert admins.asked == 0


@pytest.mark.parametrize(
    ("senders", "is_own_word"),
    [([ANN], True), ([ANN, ANN], True), ([BOB], False), ([ANN, BOB], False), ([], False)],
)
async def test_in_a_group_people_may_change_their_own_facts_and_admins_all(
    senders: list[int], *, is_own_word: bool
) -> None:
    for is_admin in (True, False):
        admins = Admins(is_admin=is_admin)
        asker = Asker(ANN, is_group=True, is_admin=admins.look_up)
        assert await may_change(asker, senders) == (is_own_word or is_admin)
        assert admins.asked == (not is_own_word)


def test_a_fact_of_an_unknown_sender_belongs_to_no_person() -> None:
    assert not is_first_party(0, [0])
