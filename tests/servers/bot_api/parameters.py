"""The parameters of a call, read from the wire forms that bots use.

They come from the query, a form or multipart, all as text; another body is refused. Structured
parameters are JSON within that text; one of a wrong type is refused by its name.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message as MimePart
from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import parse_qsl

from tests.servers.bot_api.errors import BadRequestError
from tests.servers.bot_api.values import Upload


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object among the parameters; a field of the wrong type is refused by name."""

    values: Mapping[str, object]

    def text(self, name: str) -> str:
        """Return a text or a number as text; empty when absent."""
        value = self.values.get(name, "")
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise BadRequestError(f'field "{name}" must be of type String')
        return valid_text(str(value))

    def required_text(self, name: str) -> str:
        self._require(name)
        return self.text(name)

    def integer(self, name: str) -> int:
        """Return a number, also one written as text; 0 when absent."""
        value = self.values.get(name, 0)
        try:
            return int(value) if isinstance(value, str | int) else int(str(value))
        except ValueError:
            raise BadRequestError(f'field "{name}" must be of type Number') from None

    def required_integer(self, name: str) -> int:
        self._require(name)
        return self.integer(name)

    def flag(self, name: str) -> bool:
        value = self.values.get(name, False)
        if not isinstance(value, bool):
            raise BadRequestError(f'field "{name}" must be of type Boolean')
        return value

    def fields(self, name: str) -> "Fields":
        self._require(name)
        return fields_of(self.values[name], f'field "{name}" must be of type Object')

    def _require(self, name: str) -> None:
        if name not in self.values:
            raise BadRequestError(f'can\'t find field "{name}"')


def fields_of(value: object, otherwise: str) -> Fields:
    """Return a JSON value as an object, or refuse it with the text in `otherwise`."""
    if not isinstance(value, dict):
        raise BadRequestError(otherwise)
    return Fields(value)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a call was given; an absent parameter is an empty one, as in Telegram."""

    values: Mapping[str, str]
    files: Mapping[str, Upload] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a text; raise `BadRequestError` for half a surrogate pair."""
        return valid_text(self.values.get(name, ""))

    def flag(self, name: str) -> bool:
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

    def upload(self, name: str) -> Upload | None:
        """Return the file given as `name`, directly or through `attach://`."""
        key = self.values.get(name, "").removeprefix("attach://") or name
        return self.files.get(key)

    def fields(self, name: str, what: str) -> "Fields | None":
        value = self.decoded(name, what)
        return None if value is None else fields_of(value, f"object expected as {what}")

    def array(self, name: str, what: str) -> Sequence[object] | None:
        """Return a JSON array, None if it is absent; `what` names it in refusals."""
        value = self.decoded(name, what)
        if value is None or isinstance(value, list):
            return value
        raise BadRequestError(f"expected an Array of {what}")


def read_parameters(query: str, content_type: str, body: bytes) -> Parameters:
    """Return the parameters of a call's query and body; the body wins.

    Raise `BadRequestError` if they cannot be read.
    """
    values = _form(query)
    files: dict[str, Upload] = {}
    if content_type.startswith("multipart/form-data"):
        for part in _parts(content_type, body):
            name = str(part.get_param("name", "", "content-disposition"))
            content = part.get_payload(decode=True)
            if not isinstance(content, bytes):
                continue
            if (file_name := part.get_filename()) is None:
                values[name] = _decoded(content)
            else:
                files[name] = Upload(content, file_name, part.get_content_type())
    elif body and content_type != "application/x-www-form-urlencoded":
        raise BadRequestError(f"this server reads no body of type '{content_type}'")
    else:
        values |= _form(_decoded(body))
    return Parameters(values, files)


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
