"""What Telegram shows when somebody types a slash: by place, by person, by language."""

from collections.abc import Iterable, Sequence

from bot.commands.bot_command import Audience, BotCommand
from bot.commands.general import LISTED
from bot.language.catalogue import Catalogue
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


def descriptions(catalogue: Catalogue) -> tuple[Description, ...]:
    """Return what an empty chat with the bot shows; English also serves all other languages."""
    return tuple(
        Description(_code(language), catalogue.text(language, "start.description"))
        for language in catalogue.languages
    )


def _code(language: str) -> str:
    return "" if language == "en" else language
