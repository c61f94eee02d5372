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


class DocumentRefused(Exception):  # noqa: N818 - says when
    """Raised for a file that cannot be taken in, with one of the reasons above."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason
