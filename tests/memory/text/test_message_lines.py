"""People of one name are told apart, however many a group has."""

from memory.message import Message
from memory.text.message_lines import Speakers
from tests.work import calls


def people(*names: str) -> list[Message]:
    return [Message(n, n, "user", "Hi", 0.0, n, name) for n, name in enumerate(names, start=1)]


def test_each_person_has_a_label_of_their_own() -> None:
    alike = "\u0410nna"  # its first letter is Cyrillic
    several = people("Anna", "ANNA", "Anna (3)", "", "Anna", "Anna (2)", "You (assistant)", alike)
    speakers = Speakers(several)
    assert [*map(speakers.label, several)] == [
        *("Anna", "ANNA (2)", "Anna (3)", "User", "Anna (4)", "Anna (2) (2)", "User (2)"),
        f"{alike} (5)",
    ]


def test_labels_of_many_people_of_one_name_take_linear_time() -> None:
    def labels(count: int) -> int:
        return calls(lambda: Speakers(people(*[""] * count)))

    labels(400)  # the first time fills caches
    assert labels(400) < 2.5 * labels(200)
