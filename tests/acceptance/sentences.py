"""The fixed sentences of the bot as people read them."""

from collections.abc import Sequence

from bot.language.catalogue import Catalogue
from bot.reply.render import render

_CATALOGUE = Catalogue()

IN_PRIVATE = (
    "new",
    "stop",
    "retry",
    "memory",
    "why",
    "off",
    "back",
    "recall",
    "instructions",
    "documents",
    "import",
    "export",
    "clear",
    "forget",
    "reminders",
    "usage",
    "mute",
    "privacy",
    "help",
)
_PRIVATE_ONLY = ("off", "back", "import", "usage", "mute")
IN_GROUPS = ("ask", *(name for name in IN_PRIVATE if name not in _PRIVATE_ONLY))
OF_OPERATORS = (
    *("stats", "inspect", "deadletters", "clear_memory"),
    *("reload", "people", "invite", "broadcast"),
)


def sentence(*keys: str, **values: object) -> str:
    """Return the text of English sentences, one after the other."""
    return sentence_in("en", *keys, **values)


def sentence_in(language: str, /, *keys: str, **values: object) -> str:
    """Return the text of sentences in a language, one after the other."""
    texts = [_CATALOGUE.text(language, key, **values) for key in keys]
    (part,) = render("\n\n".join(texts))
    return part.text


def help_in_private(*, operator: bool = False) -> str:
    """Return what /help answers in a private chat."""
    texts = [*_listed(IN_PRIVATE, "help.private"), sentence("help.asks_first")]
    texts += _listed(OF_OPERATORS, "help.operators") if operator else []
    return "\n\n".join(texts)


def help_in_group() -> str:
    """Return what /help answers in a group."""
    return "\n\n".join((*_listed(IN_GROUPS, "help.group"), sentence("help.asks_first")))


def _listed(names: Sequence[str], above: str) -> list[str]:
    lines = (
        sentence("help.line", command=name, does=sentence(f"commands.{name}")) for name in names
    )
    return [sentence(above, username="ricordo_bot"), "\n".join(lines)]
