"""The house rules that a test can hold: sizes, names, arguments, and what each README says."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from tests.acceptance.bot_process import ROOT
from tests.lab.measures import Source, budgets, doubled_classes, parameters, product

pytestmark = pytest.mark.xdist_group("structure")  # so that one worker reads the sources, once
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 5
BUDGETS: dict[str, int | dict[str, int]] = {
    "product_lines": 49_935,
    "core_lines": 32_679,
    "files": 272,
    "wiring_lines": 953,
    "wiring_files": 6,
    "test_lines": 71_153,
    "files_that_name_a_feature": {
        "reminders": 5, "pictures": 32, "voice": 12, "off_record": 12, "broadcast": 1,
        "access": 1, "mcp": 1, "links": 0, "imports": 0, "topics": 1, "backup": 1, "check": 0,
        "usage": 0, "documents": 21, "memory_page": 1, "recall": 0, "stats": 0, "alerts": 0,
        "privacy": 0, "mute": 0, "export": 0,
    },
}  # fmt: skip
"""How large the whole may be. A bound is only lowered, whenever its figure has fallen."""
PRIVATE_WORDS = re.compile(
    r"\b(?:bells?|doorbell|rung|sittings?|notebooks?|anew|in vain|nobody's|stand-ins?|upkeep|census"
    r"|holdings|rations?|rationed|occasions?|lessons?|ledger|most_\w+)\b",
    re.IGNORECASE,
)
"""Names of ours for things that the field has a word for, and words of another language."""
SOURCES = product()
PACKAGES = sorted({source.path.parent for source in SOURCES})
READMES = [package / "README.md" for package in PACKAGES if (package / "README.md").exists()]
ROOTS = (ROOT / "bot", ROOT / "bot" / "features", ROOT / "memory")
"""They put everything together; import contracts say what may import what there."""
OF_ONE_IDEA = [readme for readme in READMES if readme.parent not in ROOTS]


def test_a_file_has_at_most_400_lines() -> None:
    assert {s.path.name: s.lines for s in SOURCES if s.lines > MAX_FILE_LINES} == {}


def test_a_function_has_at_most_60_lines() -> None:
    long = {
        f"{source.path.name}:{function.name}"
        for source in SOURCES
        for function in source.functions
        if (function.end_lineno or 0) - function.lineno >= MAX_FUNCTION_LINES
    }
    assert long == set()


def test_a_function_takes_at_most_five_arguments() -> None:
    wide = {
        f"{source.path.relative_to(ROOT)}:{function.name}"
        for source in SOURCES
        for function in source.functions
        if parameters(function) > MAX_PARAMETERS
    }
    assert wide == set()


@cache
def figures() -> dict[str, object]:
    return budgets(SOURCES)


@pytest.mark.parametrize("name", BUDGETS)
def test_the_whole_keeps_its_budgets(name: str) -> None:
    """`python -m tests.lab.measures` prints these figures; lower a bound when a figure falls."""
    found = figures()[name]
    bound = BUDGETS[name]
    if isinstance(found, dict) and isinstance(bound, dict):
        assert {each: count for each, count in found.items() if count > bound[each]} == {}
    else:
        assert found <= bound  # type: ignore[operator]  # both are numbers


def test_no_two_public_classes_share_a_name() -> None:
    assert doubled_classes(SOURCES) == {}


def test_every_import_contract_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    # It would turn off the logs of the process, and change its search path.
    monkeypatch.setattr("importlinter.cli._configure_logging", lambda _: None)
    monkeypatch.setattr("sys.path", sys.path[:])
    assert lint_imports(str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_every_package_has_a_readme() -> None:
    packages = [package for package in PACKAGES if len(package.relative_to(ROOT).parts) <= 2]
    assert [package for package in packages if package / "README.md" not in READMES] == []


@pytest.mark.parametrize("readme", READMES, ids=lambda readme: str(readme.parent.relative_to(ROOT)))
def test_a_readme_names_the_files_of_its_package(readme: Path) -> None:
    text = readme.read_text()
    here = {path.name for path in readme.parent.glob("*.py")} - {"__init__.py"}
    named = set(re.findall(r"`([\w]+\.py)`", text))
    assert here - named == set(), "files that the README does not name"


@pytest.mark.parametrize(
    "readme", OF_ONE_IDEA, ids=lambda readme: str(readme.parent.relative_to(ROOT))
)
def test_a_readme_names_what_its_package_imports(readme: Path) -> None:
    found = re.search(
        r"^Imports: (.+?)\.(?:\n\n|\Z)", readme.read_text() + "\n", re.MULTILINE | re.DOTALL
    )
    assert found, f"a line such as: Imports: {imports_line(readme.parent)}."
    assert " ".join(found[1].split()) == imports_line(readme.parent)


def test_product_and_documents_use_the_fields_words() -> None:
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    for package in OURS:
        texts += [
            path for kind in ("py", "lua", "md") for path in (ROOT / package).rglob(f"*.{kind}")
        ]
    found = {
        f"{path.relative_to(ROOT)}: {word[0]}"
        for path in texts
        for word in PRIVATE_WORDS.finditer(path.read_text())
    }
    assert found == set()


def imports_line(package: Path) -> str:
    """Return what the `Imports:` line of a package's README has to say."""
    imported = sorted(_imported(package))
    return ", ".join(f"`{name}`" for name in imported) or "nothing of ours"


def _imported(package: Path) -> set[str]:
    own = _name(".".join(package.relative_to(ROOT).parts))
    sources = [source for source in SOURCES if package in source.path.parents]
    return {name for source in sources for name in _imports(source)} - {own}


def _imports(source: Source) -> Iterator[str]:
    for node in source.nodes:
        match node:
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case _:
                continue
        yield from (_name(module) for module in modules if module.split(".")[0] in OURS)


def _name(module: str) -> str:
    """Return the package of a module: `config`, or two names such as `memory.store`."""
    top, *rest = module.split(".")
    return top if top == "config" else ".".join((top, *rest[:1]))


OURS = ("bot", "memory", "config")
