"""Fixed sentences as parts to send, in the person's language."""

from datetime import UTC, datetime

from bot.language.catalogue import Catalogue
from bot.reply.parts import Button, Part
from bot.reply.render import render


class Sentences:
    """Renders the catalogue's sentences."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def say(self, language: str, *keys: str, **values: object) -> tuple[Part, ...]:
        """Return sentences, one below the other, as parts."""
        texts = [self._catalogue.text(language, key, **values) for key in keys]
        return render("\n\n".join(texts))

    def text(self, language: str, key: str, **values: object) -> str:
        """Return one sentence as Markdown, to stand among others; of a button, as it is."""
        return self._catalogue.text(language, key, **values)

    def day(self, language: str, at: float) -> str:
        """Return the date (UTC) of a time in Unix seconds, as people of the language write it."""
        return self._catalogue.day(language, at)

    def moment(self, language: str, at: float) -> str:
        """Return a date with its time of day; "-" for 0, which stands for never."""
        time_of_day = datetime.fromtimestamp(at, UTC).strftime("%H:%M UTC")
        return f"{self.day(language, at)}, {time_of_day}" if at else "-"

    def has(self, key: str) -> bool:
        """Say whether the catalogue has a sentence."""
        return key in self._catalogue

    def known(self, key: str) -> str:
        """Return `key`, or the `other` of its table when the catalogue does not have it."""
        return key if key in self._catalogue else f"{key.partition('.')[0]}.other"

    def ask(self, language: str, key: str, action: str, **values: object) -> tuple[Part, ...]:
        """Return a question with two buttons: one does `action`, one keeps everything.

        `action` is `<verb>:<nonce>` or longer; with `keep:` it must fit Telegram's 64 bytes. The
        other button says it, too: what was confirmed before is finished by either.
        """
        verb, nonce, *detail = action.split(":", 2)
        keep = ":".join(("keep", nonce, verb, *detail))
        row = (
            Button(self._catalogue.text(language, "buttons.erase"), action),
            Button(self._catalogue.text(language, "buttons.keep"), keep),
        )
        *before, last = self.say(language, key, **values)
        return (*before, Part(last.text, last.entities, (row,)))
