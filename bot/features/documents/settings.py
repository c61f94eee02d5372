"""The settings of documents: which the bot may read, and how their passages reach the model."""

from typing import Annotated, Literal

from pydantic import Field

from config import values
from config.settings import Settings


class DocumentSettings(Settings):
    """Documents, beside the settings of the core."""

    documents: Annotated[Literal["auto", "tool", "off"], values.AnyCase] = Field(
        default="auto",
        description="Search documents before each call, only when the model uses a tool, or not",
    )
    document_namespaces: values.Namespaces = Field(
        default=(), description="Namespaces of your own documents (`ingest`) that this bot may read"
    )

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The names in `document_namespaces`, without the chats in which they are read."""
        names = (each.partition("@")[0] for each in self.document_namespaces)
        return tuple(dict.fromkeys(names))


SETTINGS = DocumentSettings
