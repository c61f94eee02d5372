"""What stands behind a command is understood in every language, or people hear that it is not."""

from dataclasses import replace

from bot.commands.command_set import CommandSet
from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.telegram.updates import IncomingMessage, Sender
from tests.bot.commands.test_help import commands as commands  # noqa: PLC0414 - a fixture
from tests.memory.turns import HERE

ANNA, OPERATOR = Sender(7, "Anna"), Sender(1, "Ada")
ASKED = IncomingMessage(
    *(1, 7, 0), is_group=False, message_id=11, sent_at=1_000, sender=ANNA, kind="command", text=""
)
READS_IT_ITSELF = {
    *("start", "stop", "memory", "edited", "off", "recall", "instructions", "reminders"),
    *("inspect", "clear_memory", "invite"),
}


async def said(commands: CommandSet, text: str, sender: Sender = ANNA) -> str:
    command, _, words = text.partition(" ")
    asked = replace(ASKED, command=command, text=words, sender=sender)
    answer = await commands.answer(asked, HERE)
    return "\n".join(part.text for part in answer.parts)


async def test_no_command_ignores_a_word_that_it_does_not_know(commands: CommandSet) -> None:
    for command in {each.name for each in commands.listed} - READS_IT_ITSELF:
        text = await said(commands, f"{command} banana", OPERATOR)
        assert "I don't know what to do with “banana”" in text, command
        assert f"/{command}" in text
    assert "Then reply to it with /broadcast." in await said(commands, "broadcast Hi", OPERATOR)


async def test_a_command_of_others_is_refused_before_it_is_read(commands: CommandSet) -> None:
    assert await said(commands, "stats banana") == "This command is for this bot's operators only."


UNDERSTOOD = {
    "no more announcements": ("mute on", "mute ON", "mute an", "mute вкл"),
    "operator again": ("mute apagar", "mute خاموش"),
    "Did you mean /mute on?": ("mute onn",),
    "After /mute I understand: on, off.": ("mute " + "o" * 4_000,),
    "reply to it with /forget. “/memory My address” lists": ("forget My  address",),
    "Memory is off here:": ("memory aus", "memory выкл"),
    "don't share what they know": ("memory Themen  aus",),
    "no instructions here any more": ("instructions aus",),
    "Send only /usage to see your own limit.": ("usage 123",),
    "Send only /clear, with nothing after it.": ("clear everything",),
    "Send only /help, with nothing after it.": ("help me",),
}


async def test_on_and_off_are_understood_in_every_language(commands: CommandSet) -> None:
    for answer, texts in UNDERSTOOD.items():
        for text in texts:
            assert answer in await said(commands, text)
    es = await said(commands, "mute quizás", replace(ANNA, language="es"))
    assert es.endswith("Después de /mute entiendo: activar, desactivar.")


async def test_an_unknown_command_names_the_nearest_one(commands: CommandSet) -> None:
    near = {"remind": "reminders", "memori": "memory", "document": "documents", "stat": "stats"}
    for text, name in near.items():
        sender = OPERATOR if name == "stats" else ANNA
        answer = f"I don't know this command. Did you mean /{name}?"
        assert await said(commands, text, sender) == answer


async def test_nobody_hears_of_a_command_that_is_not_for_them(commands: CommandSet) -> None:
    assert "broadcast" not in await said(commands, "broadcas")
    for other in ("x" * 32, "language", "topics", "support"):
        assert "Did you mean" not in await said(commands, other)


def test_a_word_means_the_same_in_every_language() -> None:
    catalogue = Catalogue()
    listed = [
        (said, key)
        for sentences in catalogue._sentences.values()
        for key, text in sentences.items()
        if key.startswith("words.")
        for said in text.split(", ")
    ]
    assert all(catalogue.meaning(said) == key[6:].replace("_", " ") for said, key in listed)
    assert Sentences(catalogue).meaning("banana") == ""
