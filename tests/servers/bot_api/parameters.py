"""Parameters as real Telegram reads them: a wrong type is refused by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.playground.bot_api import parameters
from bot.playground.bot_api.parameters import valid_text
from bot.playground.bot_api.values import BadRequestError


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
        """Return a text that must be there."""
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
        """Return a number that must be there."""
        self._require(name)
        return self.integer(name)

    def flag(self, name: str) -> bool:
        """Return a boolean; false when absent."""
        value = self.values.get(name, False)
        if not isinstance(value, bool):
            raise BadRequestError(f'field "{name}" must be of type Boolean')
        return value

    def fields(self, name: str) -> "Fields":
        """Return an object that must be there."""
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
class Parameters(parameters.Parameters):
    """Parameters that refuse structured values of the wrong type."""

    def fields(self, name: str, what: str) -> Fields | None:
        """Return a JSON object, None if it is absent; `what` names it in refusals."""
        value = self.decoded(name, what)
        return None if value is None else fields_of(value, f"object expected as {what}")

    def array(self, name: str, what: str) -> Sequence[object] | None:
        """Return a JSON array, None if it is absent; `what` names it in refusals."""
        value = self.decoded(name, what)
        if value is None or isinstance(value, list):
            return value
        raise BadRequestError(f"expected an Array of {what}")


def strict(given: parameters.Parameters) -> Parameters:
    """Return parameters that refuse structured values of the wrong type."""
    return Parameters(given.values, given.files)
