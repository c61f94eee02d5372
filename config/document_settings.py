"""The settings of documents: which the bot may read, and how their passages reach the model."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import BaseSettings

from config import values


class DocumentSettings(BaseSettings):
    """Documents that people send, and those that the operator provides."""

    documents: Annotated[Literal["auto", "tool", "off"], values.AnyCase] = Field(
        default="auto",
        description="Search documents before each call, only when the model uses a tool, or not",
    )
    max_document_mb: float = Field(
        default=5,
        ge=0.1,
        le=20,
        description="Maximum size of an uploaded file; Telegram allows bots 20 MB",
    )
    document_namespaces: values.Namespaces = Field(
        default=(), description="Namespaces of your own documents (`ingest`) that this bot may read"
    )

    document_k: int = Field(
        default=3, ge=1, le=50, description="Passages of documents to search for"
    )
    document_tokens: int = Field(
        default=700, ge=100, le=200_000, description="Maximum tokens of passages in a prompt"
    )
    document_prompt: values.Text | None = Field(
        default=None,
        description="What the model is to do with passages; not set: cite the source, add nothing",
    )
    document_tool_prompt: values.Text | None = Field(
        default=None,
        description="What the model is told `search_documents` is for (`DOCUMENTS=tool`); not set: "
        "our text",
    )

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The names in `document_namespaces`, without the chats in which they are read."""
        names = (each.partition("@")[0] for each in self.document_namespaces)
        return tuple(dict.fromkeys(names))
