"""What the pages share."""

from pathlib import Path

from bot.runtime.pages import page_templates


def test_templates_are_compiled_before_a_page_is_asked_for(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('{% import "prompt.html" as prompt %}{{ prompt.name_of(part) | loud }}')
    templates = page_templates(tmp_path, {"loud": str.upper})
    page.unlink()
    assert "MEMORY" in templates.get_template("page.html").render(part="memory")
