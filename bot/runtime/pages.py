"""What the pages of both inspectors share: their look, and how a prompt's parts are shown."""

from collections.abc import Callable, Mapping
from pathlib import Path

import jinja2

_HERE = Path(__file__).parent
BASE_STYLE = _HERE / "base.css"


def page_templates(folder: Path, filters: Mapping[str, Callable[..., str]]) -> jinja2.Environment:
    """Return the templates of a folder, beside those here; all are compiled: that takes a while."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, _HERE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters |= filters
    for name in templates.list_templates(["html"]):
        templates.get_template(name)
    return templates
