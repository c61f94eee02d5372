"""Finds the synopses that fit a message, and those that are like the best one (re-query).

Vectors alone cannot tell which of a handful of texts are alike, because none stands out. So rare
words, used by few of the texts, decide then.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from math import inf, log

from memory.scopes.entries import Synopsis
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.search.words import FUNCTION_WORDS, languages_of, terms_of, words_of

_MAX_FOUND = 4
_MAX_RELATED = 2
_MAX_COMPARED = 200
_RARE_SHARE = 4
"""A word is rare if at most a quarter of the texts use it (or two of them)."""


async def found_synopses(scopes: Scopes, scope_memory: ScopeMemory, text: str) -> list[Synopsis]:
    """Return up to 4 synopses that fit a text, best first, then up to 2 that are like the first."""
    hits = await scopes.search(Synopsis, scope_memory, text, _MAX_FOUND)
    direct = [hit.record for hit in hits if not hit.is_related]
    related = [hit.record for hit in hits if hit.is_related]
    if direct and not related:
        recent = scope_memory.synopses[-_MAX_COMPARED:]
        others = [synopsis for synopsis in recent if synopsis not in direct]
        texts = [_without_labels(direct[0]), *map(_without_labels, others)]
        related = [others[at - 1] for at in alike(0, texts, _MAX_RELATED)]
    return [*direct, *related[:_MAX_RELATED]]


def alike(first: int, texts: Sequence[str], k: int) -> list[int]:
    """Return the positions of up to `k` texts that are like `texts[first]`, the most alike first.

    Shared words count by their rarity (idf). A text is alike if it shares at least as much as one
    word that only two of the texts use. Of two texts the result is empty.
    """
    languages = languages_of(words_of(" ".join(texts)), {})
    terms = [_content_terms(text, languages) for text in texts]
    uses = Counter(chain.from_iterable(terms))
    max_uses = max(2, len(texts) // _RARE_SHARE)
    rarity = {term: log(len(texts) / n) for term, n in uses.items() if 1 < n <= max_uses}
    shared = {
        at: sum(rarity.get(term, 0.0) for term in of_text & terms[first])
        for at, of_text in enumerate(terms)
        if at != first
    }
    enough = log(len(texts) / 2) if len(texts) > 2 else inf
    near = [at for at, score in shared.items() if score >= enough]
    return sorted(near, key=lambda at: -shared[at])[:k]


def _content_terms(text: str, languages: dict[str, str]) -> frozenset[str]:
    """Return the stems of a text without function words, in the languages of all texts."""
    function_words = frozenset(
        chain.from_iterable(FUNCTION_WORDS.get(code, ()) for code in languages.values())
    )
    return frozenset(terms_of([w for w in words_of(text) if w not in function_words], languages))


def _without_labels(synopsis: Synopsis) -> str:
    """Return the text of a synopsis without the labels, which all synopses share."""
    return " ".join(line.partition(": ")[2] for line in synopsis.text.splitlines())
