"""A text message, from its update to a learned fact, passes no more of our code than its budget."""

from operator import gt

import pytest

from tests.lab.measures import traced_paths

MAX = {"start": (1_025, 209), "text": (602, 119)}
"""Functions and files. A start is counted when it is over, so that is the same in each run; polls
and loading may come while a text is answered."""
MAX_FRAMES = 12  # of our own functions between the event loop and the SDK


@pytest.mark.trial
async def test_start_and_message_pass_no_more_functions_and_files_than_their_budgets() -> None:
    """Bounds are only lowered; `python -m tests.lab.measures` prints the figures."""
    for _ in range(3):  # on a busy machine a rare loop may run beside the message
        paths = await traced_paths(["text"])
        found = {name: (path["functions"], path["files"]) for name, path in paths.items()}
        above = {name: each for name, each in found.items() if any(map(gt, each, MAX[name]))}
        if not above:
            break
    assert above == {}
    for frames in ("frames_to_the_sdk", "frames_of_internal_calls"):
        assert 0 < paths["text"][frames] <= MAX_FRAMES
    assert not paths["start"]["loads_the_vocabulary"]  # 40 MB, which an idle bot has no use for
