"""`/start`, `/help`, `/new`, `/ask` and `/retry`; and the menus of commands."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from bot.commands.access import Access
from bot.commands.bot_command import ANYTHING, Answer, Audience, BotCommand, Section, ShownOnTop
from bot.commands.immediate import message_of, put_press
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Parts
from bot.reply.render import render
from bot.telegram.bot_api import BotIdentity, CommandMenu, Description, MenuScope
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.store.keys import Scope

LISTED: dict[str, tuple[Audience, ...]] = {
    "private": ("everyone", "private"),
    "group": ("everyone", "groups"),
}
"""Which commands menus and /help list in a private chat and in a group."""

LET_IN = "let_in"  # the text of the `/start` of somebody who has just been let in
_START = "start"
_STARTERS = ("help", "memory", "privacy")  # the commands that the buttons below `/start` ask for


def what_to_send(ways: Iterable[str], sentences: Sentences, language: str) -> str:
    """Return what people can send; `ways` beside text are keys in the table `start`."""
    said = [sentences.text(language, f"start.{way}") for way in ways]
    if not said:
        return sentences.text(language, "start.only_text")
    return sentences.text(language, "start.ways", ways=sentences.joined(language, said))


@dataclass(frozen=True, slots=True)
class GeneralCommands:
    """Answers what needs no memory; `ways` are what people can send beside text."""

    me: BotIdentity
    memory: Memory
    access: Access
    ways: Sequence[str]
    sentences: Sentences
    others: Sequence[BotCommand]

    @property
    def listed(self) -> Sequence[BotCommand]:
        """These commands and the others, in the order of the table `commands`."""
        ours = (
            BotCommand(_START, self.start, "unlisted", {_START: self.press}, takes=ANYTHING),
            BotCommand("ask", self.ask, "groups"),
            BotCommand("new", self.new),
            BotCommand("help", self.help),
        )
        keys = (*self.sentences.keys(), "commands.help")
        order = {key: place for place, key in enumerate(keys)}
        listed = (*ours, *self.others)
        return sorted(listed, key=lambda each: order.get(f"commands.{each.name}", 0))

    async def start(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say what the bot does, what to try, and who reads it.

        `asked.text` is the payload of the link that the person followed; an unknown one is ignored.
        """
        language, text = asked.sender.language, self.sentences.text
        if asked.sender in self.access.operators:
            await self.access.operators.note_language(asked.sender)
        if asked.is_group:
            hears_all = self.me.can_read_all_group_messages
            keys = ("start.group",) if hears_all else ("start.group", "start.unheard")
            return Answer(self.sentences.say(language, *keys, username=self.me.username))
        ways = what_to_send(self.ways, self.sentences, language)
        name = asked.sender.first_name or asked.sender.name
        hello = text(language, "start.private", name=name, bot=self.me.name)
        texts = [text(language, "start.let_in")] * (asked.text == LET_IN)
        texts += [f"{hello} {ways}", text(language, "start.try")]
        rows = [
            (Button(text(language, f"buttons.start_{each}"), f"{_START}:{each}"),)
            for each in _STARTERS
            if any(command.name == each for command in self.listed)
        ]
        *before, last = render("\n\n".join(texts))
        return Answer((*before, replace(last, buttons=tuple(rows))))

    async def press(self, pressed: ButtonPress, here: Scope, command: str) -> Parts:
        """Have the command of a button answered below, as if the person had sent it."""
        if command not in _STARTERS:
            raise NotConfirmed("unknown")
        await put_press(self.memory.mailbox, here, replace(message_of(pressed), command=command))
        return ()

    async def ask(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Explain `/ask`; with a question behind it, it never comes here."""
        return Answer(self.sentences.say(asked.sender.language, "ask.empty"))

    async def new(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """End the session: earlier messages leave the window, memory stays.

        Off the record only the words of that session go.
        """
        key = "off.new" if await self.access.is_off_record(conversation) else "new.done"
        return Answer(self.sentences.say(asked.sender.language, key), ends_session=True)

    async def help(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """List the commands that apply here in three sections, and for operators theirs."""
        place = "group" if asked.is_group else "private"
        language, text = asked.sender.language, self.sentences.text
        here = [each for each in self.listed if each.audience in LISTED[place]]
        useful = [
            each for each in here if not each.is_useful or await each.is_useful(asked, conversation)
        ]
        how = [text(language, f"help.{place}", username=self.me.username)]
        if not asked.is_group:
            if self.ways:
                how.append(what_to_send(self.ways, self.sentences, language))
            how.append(text(language, "help.ways"))
        elif not self.me.can_read_all_group_messages:
            how.append(text(language, "start.unheard", username=self.me.username))
        texts = [" ".join(how)]
        for section in get_args(Section):
            names = [command.name for command in useful if command.section == section]
            texts.append(f"{text(language, f'help.of_{section}')}\n{self._lines(language, names)}")
        texts.append(text(language, "help.asks_first"))
        if not asked.is_group and asked.sender in self.access.operators:
            names = [each.name for each in self.listed if each.audience == "operators"]
            texts += [text(language, "help.operators"), self._lines(language, names)]
        return Answer(render("\n\n".join(texts)))

    def _lines(self, language: str, names: Sequence[str]) -> str:
        text = self.sentences.text
        return "\n".join(
            text(language, "help.line", command=name, does=text(language, f"commands.{name}"))
            for name in names
        )


class RetryCommand:
    """`/retry` and the buttons under apologies: the newest question, or that one, is asked again.

    All wait in the mailbox. `bot.turn.revision` carries out the first two in the conversation's
    order. The messages of a turn that was given up return to the mailbox as they were.
    """

    def __init__(self, memory: Memory, access: Access, sentences: Sentences) -> None:
        self._questions = memory.questions
        self._letters = memory.dead_letters
        self._mailbox = memory.mailbox
        self._access = access
        self._sentences = sentences
        buttons = {"again": self._press, "letter": self._press_letter}
        self.command = BotCommand("retry", self.answer, buttons=buttons)

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say that there is no question."""
        return Answer(self._sentences.say(asked.sender.language, "retry.nothing"))

    async def _press(self, pressed: ButtonPress, here: Scope, nonce: str) -> Parts:
        """Put the question into its place in the conversation; the reply replaces the apology."""
        if message_id := await self._checked(pressed, here, nonce, "again"):
            again = replace(message_of(pressed), kind="again", text=nonce)
            await put_press(self._mailbox, here, replace(again, replied_to=int(message_id)))
        return ()

    async def _press_letter(self, pressed: ButtonPress, here: Scope, nonce: str) -> Parts:
        letter = await self._checked(pressed, here, nonce, "letter")
        if (outcome := await self._letters.retry(here, letter)) != "begun":
            raise ShownOnTop(f"retry.{outcome}")
        return self._sentences.say(pressed.sender.language, "retry.begun")

    async def _checked(self, pressed: ButtonPress, here: Scope, nonce: str, kind: str) -> str:
        """Return what is asked again; "" if it was already. Its asker and admins may press."""
        about = await self._questions.check(here, nonce, kind, None)
        again, _, asker = about.partition(",")
        if again:
            await self._access.check(pressed, [int(asker)])
        return again


def menus(
    sentences: Sentences, commands: Sequence[BotCommand], operators: Iterable[int]
) -> Iterator[CommandMenu]:
    """Yield all menus; the English one also serves languages that have none."""
    private = LISTED["private"]
    scopes: list[tuple[MenuScope, tuple[Audience, ...]]] = [
        ("private", private),
        ("groups", LISTED["group"]),
        *((operator, (*private, "operators")) for operator in sorted(operators)),
    ]
    for scope, audiences in scopes:
        names = [command.name for command in commands if command.audience in audiences]
        for language in sentences.languages:
            listed = tuple((name, sentences.text(language, f"commands.{name}")) for name in names)
            yield CommandMenu(scope, "" if language == "en" else language, listed)


def descriptions(sentences: Sentences, ways: Sequence[str]) -> Iterator[Description]:
    """Yield what an empty chat with the bot shows; English also serves all other languages."""
    for language in sentences.languages:
        does = sentences.text(language, "start.description")
        can_send = what_to_send(ways, sentences, language)
        stored = sentences.text(language, "start.stored")
        (part,) = render(f"{does}\n\n{can_send}\n\n{stored}")
        yield Description("" if language == "en" else language, part.text)
