"""What the bot says of itself, as the people in a chat read it."""

from bot.language.catalogue import Catalogue
from bot.reply.render import render

_CATALOGUE = Catalogue()


def sentence(*keys: str, **values: object) -> str:
    """Return the text of English sentences, one below the other."""
    return sentence_in("en", *keys, **values)


def sentence_in(language: str, /, *keys: str, **values: object) -> str:
    """Return the text of sentences in a language, one below the other."""
    texts = [_CATALOGUE.text(language, key, **values) for key in keys]
    (part,) = render("\n\n".join(texts))
    return part.text
