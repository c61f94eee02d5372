"""What Telegram shows when somebody types a slash: by place, by person, by language."""

from collections.abc import Iterable, Sequence

from bot.language.catalogue import Catalogue
from bot.telegram.values import CommandMenu, MenuScope

_IN_PRIVATE = ("new", "memory", "clear", "forget", "privacy", "help")
_IN_GROUPS = ("ask", "new", "memory", "clear", "forget", "privacy", "help")
_OF_ADMINS = ("stats", "inspect", "clear_memory")


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
            "" if language == "en" else language,
            tuple((name, catalogue.text(language, f"menu.{name}")) for name in names),
        )
        for scope, names in places
        for language in catalogue.languages
    )
