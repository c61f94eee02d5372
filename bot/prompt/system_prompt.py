"""The system prompt: the constant first message of every prompt.

Ours is `system_prompt.md`. An operator may name another file.
"""

from importlib import resources
from pathlib import Path

_MAX_BYTES = 64 * 1024


class UnusableSystemPrompt(Exception):
    """Raised at start when the system prompt cannot be used; the text says what to change."""


def load_system_prompt(path: Path | None) -> str:
    """Return the text of the operator's file, or ours when `path` is None.

    Raise `UnusableSystemPrompt` if the file cannot be read, is empty, is larger than 64 KiB or is
    not UTF-8.
    """
    if path is None:
        return resources.files(__package__).joinpath("system_prompt.md").read_text("utf-8").strip()
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UnusableSystemPrompt(
            f"SYSTEM_PROMPT_FILE: {path} cannot be read ({error.strerror})"
        ) from error
    if len(content) > _MAX_BYTES:
        raise UnusableSystemPrompt(
            f"SYSTEM_PROMPT_FILE: {path} is larger than {_MAX_BYTES // 1024} KiB"
        )
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise UnusableSystemPrompt(
            f"SYSTEM_PROMPT_FILE: {path} is not UTF-8 (byte {error.start})"
        ) from error
    if not text:
        raise UnusableSystemPrompt(f"SYSTEM_PROMPT_FILE: {path} is empty")
    return text
