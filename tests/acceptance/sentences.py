"""The fixed sentences of the bot as people read them."""

from collections.abc import Sequence

from bot.language.catalogue import Catalogue
from bot.reply.render import render

_CATALOGUE = Catalogue()

IN_PRIVATE = (
    *("new", "stop", "retry", "memory", "recall", "export", "clear", "forget", "mute", "privacy"),
    *("reminders", "import", "documents", "why", "instructions", "off", "back", "usage", "help"),
)
_PRIVATE_ONLY = ("off", "back", "import", "usage", "mute")
IN_GROUPS = ("ask", *(name for name in IN_PRIVATE if name not in _PRIVATE_ONLY))
OF_OPERATORS = (*("stats", "inspect", "clear_memory"), *("reload", "broadcast", "people", "invite"))


def sentence(*keys: str, **values: object) -> str:
    """Return the text of English sentences, one after the other."""
    return sentence_in("en", *keys, **values)


def sentence_in(language: str, /, *keys: str, **values: object) -> str:
    """Return the text of sentences in a language, one after the other."""
    texts = [_CATALOGUE.text(language, key, **values) for key in keys]
    (part,) = render("\n\n".join(texts))
    return part.text


_SECTIONS = {
    "memory": ("memory", "recall", "import", "why", "off", "back"),
    "data": ("export", "clear", "forget", "privacy"),
}
WAYS = ("voice", "link", "photo", "file")


def greeting_in(language: str, name: str, *ways: str) -> str:
    """Return what /start says in a private chat."""
    hello = sentence_in(language, "start.private", name=name, bot="Ricordo")
    return f"{hello} {ways_in(language, *ways)}\n\n{sentence_in(language, 'start.try')}"


def ways_in(language: str, *ways: str) -> str:
    """Return what /start and /help say that people can send."""
    comma = f"{_CATALOGUE.text(language, 'lists.comma')} "
    said = comma.join(sentence_in(language, f"start.way_{way}") for way in ways or WAYS)
    return sentence_in(language, "start.ways", ways=said)


def help_in_private() -> str:
    """Return what /help answers in a private chat of a bot without operators."""
    unused = {"back", "mute"}
    how = f"{sentence('help.private')} {ways_in('en')} {sentence('help.ways')}"
    return "\n\n".join(_listed([each for each in IN_PRIVATE if each not in unused], how))


def help_in_group() -> str:
    return "\n\n".join(_listed(IN_GROUPS, sentence("help.group", username="ricordo_bot")))


def _listed(names: Sequence[str], above: str) -> list[str]:
    elsewhere = {name for section in _SECTIONS.values() for name in section}
    talk = [name for name in names if name not in elsewhere]
    sections = {"memory": _SECTIONS["memory"], "talk": talk, "data": _SECTIONS["data"]}
    return [
        above,
        *(
            f"{sentence(f'help.of_{section}')}\n{_lines([each for each in of if each in names])}"
            for section, of in sections.items()
        ),
        sentence("help.asks_first"),
    ]


def _lines(names: Sequence[str]) -> str:
    does = {name: sentence(f"commands.{name}") for name in names}
    return "\n".join(sentence("help.line", command=name, does=does[name]) for name in names)
