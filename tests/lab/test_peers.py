"""What `peers` does with the results of a store, without installing one."""

import asyncio
import sys
from pathlib import Path

import pytest

from memory.text.tokens import TokenCounter
from tests.lab.conversations import read_folder
from tests.lab.peers import PeerFailed, measured, run, told
from tests.lab.test_conversations import folder


def test_messages_are_told_until_one_does_not_end_within_the_tokens() -> None:
    tokens = asyncio.run(TokenCounter.load())
    texts = ["one", "two " * 50, "three"]
    room = tokens.count("one\n") + tokens.count("three\n")
    assert told(tokens, texts, [0, 2, 1], room) == {0, 2}
    assert told(tokens, texts, [0, 1, 2], room) == {0}


def test_the_plain_dense_store_answers_from_its_own_process(tmp_path: Path) -> None:
    conversations = read_folder(folder(tmp_path, "Anna: I live in Graz"))
    tokens = asyncio.run(TokenCounter.load())
    figures = measured(sys.executable, "dense", conversations, tokens)
    assert figures["recall@5"] == figures["evidence"] == [1.0]


def test_a_store_that_fails_is_named_with_the_last_line_that_it_wrote() -> None:
    with pytest.raises(PeerFailed, match="no such package"):
        run([sys.executable, "-c", "raise SystemExit('first\\nno such package')"], 10)


def test_a_store_that_takes_too_long_is_ended() -> None:
    with pytest.raises(PeerFailed, match="took longer"):
        run([sys.executable, "-c", "import time; time.sleep(5)"], 0.05)
