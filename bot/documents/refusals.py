"""Why a file is not taken in; each reason has a sentence `documents.refused_<reason>`."""

from typing import Literal, get_args

Reason = Literal[
    "type",  # neither text nor PDF
    "too_big",  # in bytes
    "too_long",  # in pages or characters
    "encrypted",
    "no_text",  # pictures of pages
    "damaged",  # or taking too long to read
    "letters",  # text in an encoding that cannot be told
    "full",  # so many documents here already
]
REASONS: tuple[Reason, ...] = get_args(Reason)


# For the operator's terminal, in English; people read the catalogue.
IN_WORDS: dict[Reason, str] = {
    "type": "neither text, Markdown nor PDF",
    "too_big": "too big",
    "too_long": "too many pages or too much text",
    "encrypted": "protected by a password",
    "no_text": "no text in it; are its pages pictures?",
    "damaged": "damaged, or it took too long to read",
    "letters": "its text encoding cannot be told; save it as UTF-8",
    "full": "no room for more",
}


class DocumentRefused(Exception):  # noqa: N818 - says when
    """Raised for a file that cannot be taken in, with one of the reasons above."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason
