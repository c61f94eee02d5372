"""A folder of labelled conversations must have vectors of what the product embeds."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.lab.conversations import OtherRecipe, read_folder


def folder(path: Path, text: str, **arrays: object) -> Path:
    """Write a folder with one turn of Anna, whose embedded text is `text`."""
    turn = {"id": "1", "session": 1, "date": "7 May 2023", "speaker": "Anna", "text": text}
    question = {"question": "Who?", "category": 1, "evidence": ["1"]}
    content = [{"id": "a", "turns": [turn], "questions": [question]}]
    (path / "conversations.json").write_text(json.dumps(content))
    rows = {"turns_a": np.ones((1, 2), np.float16), "questions_a": np.ones((1, 2), np.float16)}
    np.savez(path / "embeddings.npz", **rows, **arrays)  # type: ignore[arg-type]
    return path


def test_a_folder_with_vectors_of_other_texts_or_of_another_recipe_is_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(OtherRecipe, match="7 May 2023 Anna"):
        read_folder(folder(tmp_path, "7 May 2023 Anna: I live in Graz"))
    with pytest.raises(OtherRecipe, match="date speaker words"):
        read_folder(folder(tmp_path, "Anna: I live in Graz", recipe="date speaker words"))
