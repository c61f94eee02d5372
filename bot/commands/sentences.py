"""Fixed sentences as parts to send, in a person's language."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from bot.language.catalogue import Catalogue
from bot.reply.parts import Button, Part, Parts, with_buttons
from bot.reply.render import render
from memory.erasure.questions import Question


class Sentences:
    """Renders the catalogue's sentences; a key that the catalogue lacks raises `KeyError`."""

    def __init__(self, catalogue: Catalogue, zone: tzinfo = UTC) -> None:
        self._zone = zone  # of the bot
        # The catalogue's own: `text` returns a sentence as Markdown, and a button's label as it is.
        self.text, self.day, self.meaning = catalogue.text, catalogue.day, catalogue.meaning
        self.add, self.has = catalogue.add, catalogue.__contains__
        self.languages, self.keys = catalogue.languages, catalogue.keys

    def say(self, language: str, *keys: str, **values: object) -> Parts:
        """Return sentences, each a paragraph, as parts to send."""
        return render("\n\n".join(self.text(language, key, **values) for key in keys))

    def joined(self, language: str, texts: Iterable[str]) -> str:
        """Return texts with the commas of a language between them."""
        return f"{self.text(language, 'lists.comma')} ".join(texts)

    def moment(self, language: str, at: float) -> str:
        """Return date and time of day (UTC) of a time in Unix seconds; "-" for 0, never."""
        time_of_day = datetime.fromtimestamp(at, UTC).strftime("%H:%M UTC")
        return self.joined(language, (self.day(language, at), time_of_day)) if at else "-"

    def local(self, language: str, at: float, zone: str) -> dict[str, object]:
        """Return `when` in a person's zone (else the bot's, which is named), and `unix` time."""
        moment = datetime.fromtimestamp(at, ZoneInfo(zone) if zone else self._zone)
        offset = moment.utcoffset() or timedelta()
        day = self.day(language, at + offset.total_seconds())
        time_of_day = f"{moment:%H:%M}" if zone else f"{moment:%H:%M} ({self._zone})"
        return {"when": self.joined(language, (day, time_of_day)), "unix": int(at)}

    def known(self, key: str) -> str:
        """Return `key`, or `<table>.other` if the catalogue does not have it."""
        return key if self.has(key) else f"{key.partition('.')[0]}.other"

    def ask_to_erase(
        self, language: str, key: str, question: Question, action: str, **values: object
    ) -> Parts:
        """Return a question with two buttons: one does `action`, one cancels it.

        `action` is a verb, perhaps with what follows the nonce in the callback data. The cancel
        button carries it too, because pressing that after a confirmation finishes what was
        confirmed. All this has to fit Telegram's 64 bytes.
        """
        nonce, (verb, colon, detail) = question.nonce, action.partition(":")
        erase = Button(self.text(language, "buttons.erase"), f"{verb}:{nonce}{colon}{detail}")
        cancel = Button(self.text(language, "buttons.cancel"), f"cancel:{nonce}:{action}")
        return with_buttons(self.say(language, key, **values), erase, cancel, question=question)

    def ask(self, language: str, parts: Sequence[Part], question: Question, *verbs: str) -> Parts:
        """Return parts with a button for each answer to a question; `buttons.<verb>` labels it."""
        row = (
            Button(self.text(language, f"buttons.{verb}"), f"{verb}:{question.nonce}")
            for verb in verbs
        )
        return with_buttons(parts, *row, question=question)
