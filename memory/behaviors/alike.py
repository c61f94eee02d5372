"""Which texts of a few are alike by their words: the re-query where vectors cannot tell.

Of a handful of vectors none stands out from the others, so that words have to do which hardly any
other text uses. Pure.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from math import log

from memory.search.words import FUNCTION_WORDS, languages_of, terms_of, words_of

_RARE_SHARE = 4
"""A word tells something if at most a quarter of the texts use it (or two of them)."""


def alike(first: int, texts: Sequence[str], k: int) -> list[int]:
    """Return where up to `k` texts stand that are like `texts[first]`, the most alike first.

    They share as much with it as one word does which only two of the texts use, words counting by
    their rarity (idf). Of two texts nothing can be said.
    """
    languages = languages_of(words_of(" ".join(texts)), {})
    said = [_content(text, languages) for text in texts]
    uses = Counter(chain.from_iterable(said))
    most = max(2, len(texts) // _RARE_SHARE)
    rarity = {term: log(len(texts) / n) for term, n in uses.items() if 1 < n <= most}
    shared = {
        at: sum(rarity.get(term, 0.0) for term in terms & said[first])
        for at, terms in enumerate(said)
        if at != first
    }
    enough = log(len(texts) / 2) if len(texts) > 2 else float("inf")
    near = [at for at, score in shared.items() if score >= enough]
    return sorted(near, key=lambda at: -shared[at])[:k]


def _content(text: str, languages: dict[str, str]) -> frozenset[str]:
    """Return a text's stems without function words, in the languages of all the texts."""
    function_words = frozenset(
        chain.from_iterable(FUNCTION_WORDS.get(code, ()) for code in languages.values())
    )
    return frozenset(terms_of([w for w in words_of(text) if w not in function_words], languages))
