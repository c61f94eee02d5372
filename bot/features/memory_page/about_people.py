"""Tells by their words which facts are about people, such as "my brother Jonas". Pure."""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import islice

from memory.scopes.entries import Fact
from memory.search.words import (
    CLAIMED_BY,
    FUNCTION_WORDS,
    LANGUAGES,
    fold,
    languages_of,
    terms_of,
    words_of,
)

_FIRST_WORDS = 4  # who a fact is about stands at its beginning

_WORD = re.compile(r"[^\W\d_]\w+")
_BEFORE = re.compile(r"\b((?:\w+ ){0,2})(\w+),? $")
_BEHIND = re.compile(r"(?:,| [(–—-])( ?\w+(?: \w+)?)(?= ?[^\w\s]|$)")
_NEAR_CHARS = 120
_MAX_MENTIONS = 32  # of names in one text, which may have nothing else


def names_of(facts: Sequence[Fact], messages: Iterable[str], spoken: str) -> set[str]:
    """Return the first words of facts that are names of people, as far as can be seen.

    They have a capital letter, are no function words, and a fact or a message has them beside a
    relation: "my brother Jonas", "a brother named Jonas", or "Jonas, my brother". `spoken` is as in
    `is_about_people`.
    """
    first = {word for each in facts for word in _WORD.findall(each.text)[:1]}
    first = {word for word in first if word[0].isupper() and fold(word) not in CLAIMED_BY}
    names: set[str] = set()
    for text in (*(each.text for each in facts), *messages):
        codes = _languages(words_of(text), spoken) if first & {*_WORD.findall(text)} else set()
        mentions = (each for each in _WORD.finditer(text) if each[0] in first)
        for word in islice(mentions, _MAX_MENTIONS):
            said = _BEFORE.search(text, max(0, word.start() - _NEAR_CHARS), word.start())
            earlier, before = map(words_of, said.groups() if said else ("", ""))
            said = _BEHIND.match(text, word.end(), word.end() + _NEAR_CHARS)
            behind = words_of(said[1] if said else "")
            # German writes every noun with a capital letter: "my sister drinks tea".
            is_named = "de" not in codes and CLAIMED_BY.keys().isdisjoint(before)
            if _has_relation([*(earlier if is_named else ()), *before, *behind], codes):
                names.add(word[0])
    return names


def is_about_people(fact: Fact, spoken: str, names: Collection[str] = ()) -> bool:
    """Return whether a fact begins with one of these names, or names a relation, such as "sister".

    Its kind and its first words tell. `spoken` is the two-letter code of the language of words that
    no language claims.
    """
    if any(word in names for word in _WORD.findall(fact.text)[:1]):
        return True
    words = words_of(fact.text)
    return _has_relation([*words_of(fact.kind), *words[:_FIRST_WORDS]], _languages(words, spoken))


def _languages(words: Sequence[str], spoken: str) -> set[str]:
    default = {LANGUAGES[spoken].script: spoken} if spoken in LANGUAGES else {}
    return {*languages_of(words, default).values()} & LANGUAGES.keys()


def _has_relation(words: Sequence[str], codes: set[str]) -> bool:
    claimed = frozenset().union(*(FUNCTION_WORDS[code] for code in codes))
    nouns = [word for word in words if word not in claimed]  # "son" is "his" in French
    return any(
        not _relations(code).isdisjoint(terms_of(nouns, {LANGUAGES[code].script: code}))
        for code in {*codes, "en"}
    )


@cache
def _relations(code: str) -> set[str]:
    language = LANGUAGES[code]
    return {*terms_of(words_of(language.lists.get("people", "")), {language.script: code})}
