"""The settings of documents: which the bot may read, and how their passages reach the model."""

import re
from typing import Annotated, Literal

from pydantic_settings import NoDecode

from config import values
from config.settings import Settings

NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Valid names for a namespace of documents."""
_SCOPED_NAMESPACE = re.compile(f"{NAMESPACE.pattern}(@({values.TARGET}))?")


class DocumentSettings(Settings):
    """Documents, beside the settings of the core."""

    documents: Annotated[Literal["auto", "tool", "off"], values.AnyCase] = values.setting(
        "auto", "Search documents before each call, only when the model uses a tool, or not"
    )
    document_namespaces: Annotated[
        tuple[Annotated[str, values.matching(_SCOPED_NAMESPACE)], ...],
        NoDecode,
        values.on_text(values.words),
        values.Allowed(
            "names of `A-Z a-z 0-9 . _ -`, separated by commas or spaces; `@` as in `BEHAVIORS`"
        ),
    ] = values.setting((), "Namespaces of your own documents (`ingest`) that this bot may read")


SETTINGS = DocumentSettings
