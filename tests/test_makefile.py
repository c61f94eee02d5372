"""`make` names in one line what a machine lacks, before it creates anything."""

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from bot.language.catalogue import Catalogue

ROOT = Path(__file__).parents[1]
OLD = "import sys; sys.version_info = (3, 10, 13); "
OLD_REFUSED = "Ricordo needs Python 3.11 or newer; this is 3.10.13"


def stub(folder: Path, name: str, before: str = "") -> None:
    """Put a Python into a folder that runs `before` before every `-c`."""
    program = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    program.write_text(
        f"""#!/bin/sh
if [ "$1" = -c ]; then exec {sys.executable} -c '{before}'"$2"; fi
echo "{name} $*"
"""
    )
    program.chmod(0o755)


def make(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run make in an empty checkout, in which only the programs of `bin` can be found."""
    for file in ("Makefile", "requirements.txt", "requirements-dev.txt"):
        (folder / file).write_bytes((ROOT / file).read_bytes())
    program = which("make")
    if program is None:
        pytest.skip("there is no make")
    (folder / "bin").mkdir(exist_ok=True)
    for name in ("awk", "cp", "find", "touch", "rm"):
        (folder / "bin" / name).symlink_to(which(name) or "")
    return subprocess.run(
        [program, *options],
        check=False,
        cwd=folder,
        env={"PATH": str(folder / "bin"), "HOME": os.environ.get("HOME", "")},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_an_old_python_is_refused_before_a_venv_is_created(tmp_path: Path) -> None:
    stub(tmp_path / "bin", "python3", OLD)
    ran = make(tmp_path, "run")
    assert (ran.returncode, OLD_REFUSED in ran.stderr) == (2, True)
    assert not (tmp_path / ".venv").exists()


def test_make_says_that_there_is_no_python(tmp_path: Path) -> None:
    ran = make(tmp_path, "run")
    assert "Ricordo needs Python 3.11 or newer; there is no python3" in ran.stderr


def test_make_names_the_package_that_brings_ensurepip(tmp_path: Path) -> None:
    stub(tmp_path / "bin", "python3", 'import sys; sys.modules["ensurepip"] = None; ')
    assert "sudo apt install python3-venv" in make(tmp_path, "run").stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("newest", ["python3.14", "python3.13", "python3.12", "python3.11"])
def test_the_newest_python_that_runs_creates_the_venv(tmp_path: Path, newest: str) -> None:
    stub(tmp_path / "bin", "python3", OLD)
    stub(tmp_path / "bin", "python3.11")
    stub(tmp_path / "bin", newest)
    assert f"/{newest} -m venv .venv" in make(tmp_path, "-n", "run").stdout


def test_a_venv_of_an_old_python_is_created_again(tmp_path: Path) -> None:
    stub(tmp_path / "bin", "python3.11")
    (tmp_path / ".venv").mkdir()
    stub(tmp_path / ".venv" / "bin", "python", OLD)
    assert "rm -rf .venv" in make(tmp_path, "-n", "run").stdout


@pytest.mark.parametrize("target", ["run", "test"])
def test_a_venv_of_a_supported_python_is_kept_and_pip_prints_only_errors(
    tmp_path: Path, target: str
) -> None:
    stub(tmp_path / ".venv" / "bin", "python")
    printed = make(tmp_path, target).stdout
    assert "rm -rf .venv" not in printed
    assert re.findall(r" install (\S+)", printed) == ["--quiet"]


def test_help_lists_all_targets(tmp_path: Path) -> None:
    listed = [line.split()[1] for line in make(tmp_path, "help").stdout.splitlines()]
    assert listed == ["help", "run", "test", "trials", "quick", "check", "lock", "clean"]


def test_a_change_is_merged_only_after_all_tests_and_trials(tmp_path: Path) -> None:
    stub(tmp_path / ".venv" / "bin", "python")
    printed = make(tmp_path, "-n", "test", "trials").stdout
    assert re.findall(r"pytest -m (.+)", printed) == ['"not trial"', "trial"]
    assert "make test && make trials" in (ROOT / ".ci" / "run").read_text()


def test_one_line_says_what_to_do_if_the_bot_starts_outside_the_venv() -> None:
    ran = subprocess.run(
        [sys.executable, "-S", "-m", "bot"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith("Ricordo's packages are not installed in this Python. Use `make run`")


def test_what_is_installed_keeps_the_locales_of_our_languages(tmp_path: Path) -> None:
    """The buttons of time zones have the names of cities from there."""
    languages = Catalogue().languages
    locales = tmp_path / ".venv" / "lib" / "babel" / "locale-data"
    for folder, ending in ((locales, "dat"), (tmp_path / "bot" / "language", "toml")):
        folder.mkdir(parents=True)
        for language in languages:
            (folder / f"{language}.{ending}").touch()
    for name in ("root", "zu", "en_US"):
        (locales / f"{name}.dat").touch()
    stub(tmp_path / ".venv" / "bin", "python")
    assert make(tmp_path, "run").returncode == 0
    assert {each.stem for each in locales.iterdir()} == {*languages, "root"}
    in_container = re.findall(r"! -name (\w+).dat", (ROOT / "Dockerfile").read_text())
    assert {*in_container} == {*languages, "root"}
