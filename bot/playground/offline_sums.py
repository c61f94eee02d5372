"""Finds the sum that a sentence asks for, for a model that understands nothing else of it."""

import re

# In words, as people type it -> as the calculator reads it
_SPELLINGS = tuple(
    (re.compile(spelling, re.IGNORECASE), symbol)
    for spelling, symbol in (
        (r"(?<=\d),(?=\d{3}\b)", ""),
        (r"(?<!\s)\s*+(?:%|\bper ?cent)\s*+of\s++", " / 100 * "),
        (r"(?<!\s)\s*+\bplus\b\s*+", " + "),
        (r"(?<!\s)\s*+(?:\bminus\b|−)\s*+", " - "),
        (
            r"(?<!\s)\s*+(?:\btimes\b|\bmultiplied by\b|×|·|(?<=[\d\s])x(?=[\d\s]))\s*+",
            " * ",
        ),
        (r"(?<!\s)\s*+(?:\bdivided by\b|÷|(?<=\s):(?=\s++\d))\s*+", " / "),
        (r"(?<!\s)\s*+(?:\bto the power of\b|\^)\s*+", " ** "),
    )
)
_NUMBER = re.compile(r"-?\d[\d.]*")
_ASKING = re.compile(r"[?？؟=]")
_EXPRESSION = re.compile(r"(?<![-(])[-(]*+\d[\d\s.()+\-*/%]*[\d)]")
_OPERATOR = re.compile(r"[\d)]\s*[-+*/%]")
_LABEL = re.compile(r"(?<!\d)\d++(?:[-/.]\d++)++")  # a date, a phone number, a version
_ORDER = re.compile(
    r"(?:calculate|compute|work out|how much is|what(?:'s|’s| is))\s*$", re.IGNORECASE
)
_LIST = re.compile(
    r"\b(?:sum of|add)\s+(-?\d[\d.]*(?:\s*(?:,|and|to|&)+\s*-?\d[\d.]*)+)", re.IGNORECASE
)


def expression_in(text: str) -> str:
    """Return the arithmetic expression whose value `text` asks for; empty when it asks for none.

    Numbers that merely occur in a sentence, dates and phone numbers among them, are none.
    """
    for spelling, symbol in _SPELLINGS:
        text = spelling.sub(symbol, text)
    if summands := _LIST.search(text):
        return " + ".join(_NUMBER.findall(summands[1]))
    asks = _ASKING.search(text)
    for found in _EXPRESSION.finditer(text):
        alone = not text.replace(found[0], "").strip(" =?.!")
        ordered = alone or _ORDER.search(text[: found.start()])
        if _OPERATOR.search(found[0]) and (ordered or (asks and not _LABEL.fullmatch(found[0]))):
            return found[0]
    return ""
