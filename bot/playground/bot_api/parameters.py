"""The parameters of a call, read from any of Telegram's wire forms.

Telegram takes them from the query, a form, multipart or JSON, all as text. Structured parameters
are JSON within that text.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message as MimePart
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl

from bot.playground.bot_api.values import (
    BadRequestError,
    FormattedText,
    InlineButton,
    Keyboard,
    MessageEntity,
    UploadedFile,
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a call was given; an absent parameter is an empty one, as in Telegram.

    A form may have several files of one name.
    """

    values: Mapping[str, str]
    files: Mapping[str, Sequence[UploadedFile]] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a text; raise `BadRequestError` for half a surrogate pair."""
        return valid_text(self.values.get(name, ""))

    def flag(self, name: str) -> bool:
        """Return whether a parameter is true."""
        return self.values.get(name, "").lower() in ("true", "yes", "1")

    def integer(self, name: str, default: int = 0) -> int:
        """Return a number, or `default` if there is none."""
        try:
            return int(self.values.get(name, default))
        except ValueError:
            return default

    def decoded(self, name: str, what: str) -> object:
        """Return a JSON parameter, None if it is absent; `what` names it in the refusal."""
        raw = self.values.get(name)
        if not raw:
            return None
        try:
            value: object = json.loads(raw)
        except ValueError:
            raise BadRequestError(f"can't parse {what} JSON object") from None
        return value

    def upload(self, name: str) -> UploadedFile | None:
        """Return the file given as `name`, directly or through `attach://`."""
        key = self.values.get(name, "").removeprefix("attach://") or name
        return next(iter(self.files.get(key, ())), None)

    def uploads(self, name: str) -> list[UploadedFile]:
        """Return the files of a form that were chosen as `name`."""
        return [file for file in self.files.get(name, ()) if file.name]


def read_parameters(query: str, content_type: str, body: bytes) -> Parameters:
    """Return the parameters of a call's query and body; the body wins.

    Raise `BadRequestError` if they cannot be read.
    """
    values = _form(query)
    files: dict[str, list[UploadedFile]] = {}
    if content_type.startswith("application/json"):
        values |= _json_body(body)
    elif content_type.startswith("multipart/form-data"):
        for part in _parts(content_type, body):
            name = str(part.get_param("name", "", "content-disposition"))
            content = part.get_payload(decode=True)
            if not isinstance(content, bytes):
                continue
            if (file_name := part.get_filename()) is None:
                values[name] = _decoded(content)
            else:
                file = UploadedFile(content, file_name, part.get_content_type())
                files.setdefault(name, []).append(file)
    else:
        values |= _form(_decoded(body))
    return Parameters(values, files)


def formatted(given: Parameters, text: str, entities: str) -> FormattedText:
    """Return a text with its entities."""
    fields: Any = given.decoded(entities, "MessageEntity") or []
    read = (
        MessageEntity(each["type"], each["offset"], each["length"], each.get("url", ""))
        for each in fields
    )
    return FormattedText(given.text(text), tuple(read))


def keyboard_of(given: Parameters) -> Keyboard:
    """Return the inline buttons of a call, row by row."""
    markup: Any = given.decoded("reply_markup", "reply markup") or {}
    return tuple(
        tuple(InlineButton(b["text"], b.get("callback_data", ""), b.get("url", "")) for b in row)
        for row in markup.get("inline_keyboard", [])
    )


def valid_text(text: str) -> str:
    """Return a text that UTF-8 can hold, or raise `BadRequestError`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _not_utf8() from None
    return text


def _form(encoded: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(encoded, keep_blank_values=True, errors="strict"))
    except UnicodeDecodeError:
        raise _not_utf8() from None


def _json_body(body: bytes) -> dict[str, str]:
    try:
        given = json.loads(body or b"{}")
    except ValueError:
        raise BadRequestError("can't parse JSON") from None
    if not isinstance(given, dict):
        raise BadRequestError("object expected as parameters")
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in given.items()
        if value is not None
    }


def _parts(content_type: str, body: bytes) -> list[MimePart]:
    whole = b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n" + body
    parsed = BytesParser(policy=HTTP).parsebytes(whole)
    return [part for part in parsed.walk() if not part.is_multipart()]


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise _not_utf8() from None


def _not_utf8() -> BadRequestError:
    return BadRequestError("strings must be encoded in UTF-8")
