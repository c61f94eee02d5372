"""What Telegram shows when somebody types a slash: by place, by person, by language."""

from collections.abc import Iterable, Sequence

from bot.language.catalogue import Catalogue
from bot.telegram.bot_account import CommandMenu, Description, MenuScope

_EVERYWHERE = ("new", "memory", "documents", "export", "clear", "forget", "privacy", "help")
_IN_PRIVATE = (*_EVERYWHERE[:-2], "usage", *_EVERYWHERE[-2:])
_IN_GROUPS = ("ask", *_EVERYWHERE)
_OF_ADMINS = ("stats", "inspect", "deadletters", "clear_memory")


def menus(catalogue: Catalogue, admins: Iterable[int]) -> tuple[CommandMenu, ...]:
    """Return all menus; English also serves whoever has no menu in their own language."""
    places: list[tuple[MenuScope, Sequence[str]]] = [
        ("private", _IN_PRIVATE),
        ("groups", _IN_GROUPS),
    ]
    places += [(admin, (*_IN_PRIVATE, *_OF_ADMINS)) for admin in sorted(admins)]
    return tuple(
        CommandMenu(
            scope,
            _code(language),
            tuple((name, catalogue.text(language, f"menu.{name}")) for name in names),
        )
        for scope, names in places
        for language in catalogue.languages
    )


def descriptions(catalogue: Catalogue) -> tuple[Description, ...]:
    """Return what an empty chat with us shows; English also serves all other languages."""
    return tuple(
        Description(_code(language), catalogue.text(language, "start.description"))
        for language in catalogue.languages
    )


def _code(language: str) -> str:
    return "" if language == "en" else language
