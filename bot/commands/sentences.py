"""Fixed sentences as parts to send, in a person's language."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from bot.language.catalogue import Catalogue
from bot.reply.parts import Button, Part, with_buttons
from bot.reply.render import render


class Sentences:
    """Renders the catalogue's sentences; a key that the catalogue lacks raises `KeyError`.

    `zone` is the bot's time zone. `text` returns one sentence as Markdown, and the label of a
    button as it is. All attributes are the catalogue's own.
    """

    def __init__(self, catalogue: Catalogue, zone: tzinfo = UTC) -> None:
        self._zone = zone
        self.text, self.day, self.meaning = catalogue.text, catalogue.day, catalogue.meaning
        self.add, self.has = catalogue.add, catalogue.__contains__
        self.languages = catalogue.languages

    def say(self, language: str, *keys: str, **values: object) -> tuple[Part, ...]:
        """Return sentences, each a paragraph, as parts to send."""
        return render("\n\n".join(self.text(language, key, **values) for key in keys))

    def joined(self, language: str, texts: Iterable[str]) -> str:
        """Return texts with the commas of a language between them."""
        return f"{self.text(language, 'lists.comma')} ".join(texts)

    def moment(self, language: str, at: float) -> str:
        """Return date and time of day (UTC) of a time in Unix seconds; "-" for 0, never."""
        time_of_day = datetime.fromtimestamp(at, UTC).strftime("%H:%M UTC")
        return f"{self.day(language, at)}, {time_of_day}" if at else "-"

    def local(self, language: str, at: float, zone: str) -> dict[str, object]:
        """Return date and time in a person's zone (`when`), and the moment itself (`unix`).

        Without a zone of the person it is the bot's zone, which is named.
        """
        moment = datetime.fromtimestamp(at, ZoneInfo(zone) if zone else self._zone)
        offset = moment.utcoffset() or timedelta()
        day = self.day(language, at + offset.total_seconds())
        return {
            "when": f"{day}, {moment:%H:%M}" + ("" if zone else f" ({self._zone})"),
            "unix": int(at),
        }

    def known(self, key: str) -> str:
        """Return `key`, or `<table>.other` if the catalogue does not have it."""
        return key if self.has(key) else f"{key.partition('.')[0]}.other"

    def ask(self, language: str, key: str, action: str, **values: object) -> tuple[Part, ...]:
        """Return a question with two buttons: one does `action`, one cancels it.

        `action` is `<verb>:<nonce>` or longer. The cancel button carries it too, because pressing
        that after a confirmation finishes what was confirmed. `cancel:` and the action have to fit
        Telegram's 64 bytes.
        """
        verb, nonce, *detail = action.split(":", 2)
        row = (
            Button(self.text(language, "buttons.erase"), action),
            Button(
                self.text(language, "buttons.cancel"), ":".join(("cancel", nonce, verb, *detail))
            ),
        )
        return with_buttons(self.say(language, key, **values), *row)
