"""What is known of each language: its script, its stemmer, its function words.

The words stand in `languages.toml`; how they are used is `words`' business.
"""

import tomllib
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Language:
    """`stemmer` is Snowball's name of the algorithm, empty where there is none."""

    script: str
    stemmer: str
    function_words: frozenset[str]


def _read() -> dict[str, Language]:
    text = files("memory.search").joinpath("languages.toml").read_text(encoding="utf-8")
    return {
        code: Language(entry["script"], entry["stemmer"], frozenset(entry["words"].split()))
        for code, entry in tomllib.loads(text).items()
    }


LANGUAGES = _read()
"""Languages by their two-letter codes."""
