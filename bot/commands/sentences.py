"""Fixed sentences as parts to send, in a person's language."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from bot.language.catalogue import Catalogue
from bot.reply.parts import Button, Part, with_buttons
from bot.reply.render import render


class Sentences:
    """Renders the catalogue's sentences; a key that the catalogue lacks raises `KeyError`.

    `zone` is the bot's time zone.
    """

    def __init__(self, catalogue: Catalogue, zone: tzinfo = UTC) -> None:
        self._catalogue = catalogue
        self._zone = zone

    @property
    def languages(self) -> tuple[str, ...]:
        """The two-letter codes of the languages that have sentences."""
        return self._catalogue.languages

    def say(self, language: str, *keys: str, **values: object) -> tuple[Part, ...]:
        """Return sentences, each a paragraph, as parts to send."""
        return render("\n\n".join(self.text(language, key, **values) for key in keys))

    def add(self, sentences: Mapping[str, Mapping[str, str]]) -> None:
        """Add sentences by language and key; raise `ValueError` for a key that exists already."""
        self._catalogue.add(sentences)

    def text(self, language: str, key: str, **values: object) -> str:
        """Return one sentence as Markdown; the label of a button as it is."""
        return self._catalogue.text(language, key, **values)

    def joined(self, language: str, texts: Iterable[str]) -> str:
        """Return texts with the commas of a language between them."""
        return f"{self.text(language, 'lists.comma')} ".join(texts)

    def day(self, language: str, at: float) -> str:
        """Return the date (UTC) of a time in Unix seconds, as people of the language write it."""
        return self._catalogue.day(language, at)

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

    def has(self, key: str) -> bool:
        """Say whether the catalogue has a sentence."""
        return key in self._catalogue

    def meaning(self, said: str) -> str:
        """Return the word of ours, such as "off", that somebody said in one of our languages."""
        return self._catalogue.meaning(said)

    def known(self, key: str) -> str:
        """Return `key`, or `<table>.other` if the catalogue does not have it."""
        return key if key in self._catalogue else f"{key.partition('.')[0]}.other"

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
