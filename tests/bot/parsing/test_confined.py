"""A process that parses what anybody may have made can open nothing, whatever its parser does."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import bot

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="filters calls of Linux")
OPENS = {
    "opens a file": "open('/dev/null')",
    "opens a file after it has closed another one": "os.close(0), open('/dev/null')",
    "reads the bot's secrets": "os.close(0), open(f'/proc/{os.getppid()}/environ')",
    "connects": "os.close(0), socket.create_connection(('127.0.0.1', 1))",
}
OTHER = {
    "starts a process": "os.fork()",
    "becomes another program": "os.execv('/bin/true', ['true'])",
    "stops the bot": "os.kill(os.getppid(), 0)",
    "deletes a file": "os.unlink('/nothing/here')",
    "looks into the bot's memory": "look()",
}
NO_FILTER = "confined._refuse_other_calls = lambda: None"
LOOK = """
def look():
    here = (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.process_vm_readv(os.getppid(), here, 1, here, 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "")
"""


def attempted(attempts: Mapping[str, str], before: str = "") -> dict[str, str]:
    """Return how each attempt ends in a confined process of its own: an error's number, or done."""
    code = f"""
import ctypes, os, socket, sys
{LOOK}
from bot.parsing import confined
{before}
for attempt in {[*attempts.values()]}:
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    confined.confine(320, 8)
    try:
        exec(attempt)
    except OSError as error:
        os.write(1, b"%d\\n" % error.errno)
    else:
        os.write(1, b"done\\n")
    os._exit(0)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return dict(zip(attempts, run.stdout.split(), strict=True))


@on_linux
def test_the_kernel_refuses_what_no_parser_needs() -> None:
    assert attempted(OPENS | OTHER) == dict.fromkeys(OPENS | OTHER, "1")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_without_a_filter_the_limits_still_forbid_to_open() -> None:
    assert attempted(OPENS, NO_FILTER) == dict.fromkeys(OPENS, "24")


@on_linux
def test_a_confined_process_hides_its_memory_and_environment() -> None:
    dumpable = "os.write(1, str(ctypes.CDLL(None).prctl(3)).encode())"
    assert attempted({"look": dumpable}, NO_FILTER) == {"look": "0done"}


def test_windows_has_no_limits_and_files_are_read_all_the_same() -> None:
    windows = "sys.platform = 'win32'; sys.modules['resource'] = None; del os.nice"
    assert attempted({"read": "open(os.devnull)"}, windows) == {"read": "done"}


def test_the_bots_own_process_loads_no_parser() -> None:
    """What is not loaded parses nothing, and takes no memory. The SDK is loaded after the start."""
    late = "PIL pypdf lxml docx pptx openpyxl trafilatura openai numpy tiktoken "
    late += "cryptography.hazmat.primitives.asymmetric"  # which Telegram Passport needs
    code = "import bot.app, sys; bot.features.modules('feature'); "
    code += f"print([name for name in {late!r}.split() if name in sys.modules])"
    argv = [sys.executable, "-Bc", code]
    run = subprocess.run(argv, capture_output=True, check=True, text=True)
    assert run.stdout.strip() == "[]"


def test_no_other_package_imports_a_parser_not_even_later() -> None:
    """The playground and the probes of `check` make pictures; a feature may have a parser."""
    parsers = "PIL|pypdf|lxml|docx|pptx|openpyxl|trafilatura|zipfile|tarfile|csv|xml|wave"
    imports = re.compile(rf"^\s*(?:import|from) (?:{parsers})\b", re.MULTILINE)
    paths = Path(bot.__file__).parent.rglob("*.py")
    found = {path for path in paths if imports.search(path.read_text())}
    others = {path for path in found if path.parts[-2] not in ("parsing", "playground")}
    names = {path.name for path in others if not path.name.endswith("_text.py")}
    assert names == {"probes.py", "pdf_pictures.py", "talk_reader.py"}
