"""What Telegram shows when somebody types a slash: by place, by person, by language."""

from collections.abc import Iterable, Sequence

from bot.commands.bot_command import Audience, BotCommand
from bot.commands.general import LISTED, Surroundings
from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.reply.render import render
from bot.telegram.bot_account import CommandMenu, Description, MenuScope


def menus(
    catalogue: Catalogue, commands: Sequence[BotCommand], operators: Iterable[int]
) -> tuple[CommandMenu, ...]:
    """Return all menus; the English one also serves languages that have none."""
    private = LISTED["private"]
    scopes: list[tuple[MenuScope, tuple[Audience, ...]]] = [
        ("private", private),
        ("groups", LISTED["group"]),
        *((operator, (*private, "operators")) for operator in sorted(operators)),
    ]
    return tuple(
        CommandMenu(
            scope,
            _code(language),
            tuple(
                (command.name, catalogue.text(language, f"commands.{command.name}"))
                for command in commands
                if command.audience in audiences
            ),
        )
        for scope, audiences in scopes
        for language in catalogue.languages
    )


def descriptions(catalogue: Catalogue, around: Surroundings) -> tuple[Description, ...]:
    """Return what an empty chat with the bot shows; English also serves all other languages."""
    sentences = Sentences(catalogue)

    def said(language: str) -> str:
        ways = around.said(sentences, language)
        texts = [sentences.text(language, f"start.{key}") for key in ("description", "stored")]
        (part,) = render("\n\n".join((texts[0], ways, texts[1])))
        return part.text

    return tuple(Description(_code(each), said(each)) for each in catalogue.languages)


def _code(language: str) -> str:
    return "" if language == "en" else language
