"""Finds the sum that a sentence asks for, for a stand-in that understands nothing else of it."""

import re

# In words, as people type it -> as the calculator reads it
_SPELLINGS = (
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (r"\s*(?:%|\bper ?cent)\s*of\s+", " / 100 * "),
    (r"\s*\bplus\b\s*", " + "),
    (r"\s*(?:\bminus\b|−)\s*", " - "),
    (r"\s*(?:\btimes\b|\bmultiplied by\b|×|·|(?<=[\d\s])x(?=[\d\s]))\s*", " * "),
    (r"\s*(?:\bdivided by\b|÷|(?<=\d)\s+:\s+(?=\d))\s*", " / "),
    (r"\s*(?:\bto the power of\b|\^)\s*", " ** "),
)
_EXPRESSION = re.compile(r"[-(]*\d[\d\s.()+\-*/%]*[\d)]")
_OPERATOR = re.compile(r"[\d)]\s*[-+*/%]")
_LABEL = re.compile(r"\d+(?:[-/.]\d+)+")  # a date, a phone number, a version
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
        text = re.sub(spelling, symbol, text, flags=re.IGNORECASE)
    if summands := _LIST.search(text):
        return " + ".join(re.findall(r"-?\d[\d.]*", summands[1]))
    asks = re.search(r"[?？؟=]", text)
    for found in _EXPRESSION.finditer(text):
        alone = not text.replace(found[0], "").strip(" =?.!")
        ordered = alone or _ORDER.search(text[: found.start()])
        if _OPERATOR.search(found[0]) and (ordered or (asks and not _LABEL.fullmatch(found[0]))):
            return found[0]
    return ""
