"""The list of our features, and the loading of all features, ours and the operator's.

Nothing else in the bot imports a feature. A restore imports every one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import get_annotations, isawaitable
from typing import Any

from bot.feature import Feature, Services, Subcommands
from bot.operator_classes import (
    UnusableClass,
    building,
    found_at,
    found_beside,
    refuse_doubled,
    replaced_by,
    take_over,
)
from config.settings import Settings


def _always(_: Any) -> bool:
    return True


OUR_FEATURES: Mapping[str, Callable[[Any], object]] = {
    "check": lambda _: False,  # only a command of the command line
    "tools": _always,
    "memory_page": _always,
    "recall": _always,
    "export": _always,
    "stats": _always,
    "reload": _always,
    "alerts": _always,
    "mute": _always,
    "privacy": _always,
    "voice": _always,
    "links": lambda s: s.web == "read",
    "pictures": _always,
    "claims": _always,
    "reminders": _always,
    "imports": lambda s: getattr(s, "documents", "off") != "off",
    "documents": lambda s: s.documents != "off",
    "topics": _always,
    "why": _always,
    "instructions": _always,
    "off_record": _always,
    "usage": _always,
    "mcp": lambda s: s.mcp_servers,
    "broadcast": _always,
    "access": _always,
    "inspector": lambda s: s.inspector_token,
    "metrics": _always,
    "traces": lambda s: s.otel_exporter_otlp_endpoint or s.sentry_dsn,
    "backup": lambda _: False,  # as `check`
    "attached": lambda s: any(each.endswith("@off") for each in s.behaviors),
    "hints": lambda s: s.hints == "on",
    "drafts": lambda s: s.stream == "drafts",
    "drawing": lambda s: s.openai_image_model,
}
"""Our features, in the order of their steps and of their texts in the prompt.

A feature is the folder of its name. If the settings say so, its `feature.py` makes it in a serving
bot. It may have three more files: `settings.py` with the class `SETTINGS`, which is always read,
`probes.py` with `PROBES` for `check`, and `command_line.py` with `add_commands`.
"""


@cache
def all_settings(theirs: Sequence[str] = ()) -> type[Settings]:
    """Return the class of all settings: ours, of each of our features, and of those at `theirs`.

    Raise `UnusableClass` if the `SETTINGS` of one of these cannot be used, or define one again.
    """

    def is_kind(named: Any) -> bool:
        return isinstance(named, type) and issubclass(named, Settings)

    named = found_beside(theirs, "SETTINGS", is_kind, "subclass of `Settings`")
    ours = [module.SETTINGS for module in reversed(modules("settings"))]
    kinds = dict.fromkeys((*named, *ours, Settings))
    with building("FEATURES", f"SETTINGS beside {', '.join(theirs)}"):
        made: type[Settings] = type("AllSettings", tuple(kinds), {"__module__": __name__})
        made.model_rebuild()
    names = (name for kind in made.__mro__ for name in get_annotations(kind))
    refuse_doubled("settings", (name for name in names if name in made.model_fields))
    return made


def add_all_commands(commands: Subcommands) -> None:
    """Add what our features add to the command line, also those that are off."""
    for module in modules("command_line"):
        module.add_commands(commands)


def modules(name: str) -> list[Any]:
    """Import the modules of this name of all our features, also those that are off."""
    paths = (f"{__name__}.{each}.{name}" for each in OUR_FEATURES)
    return [import_module(path) for path in paths if find_spec(path)]


async def open_features(services: Services) -> Sequence[Feature]:
    """Make the features that are on, ours and those of the operator; return `services.features`.

    Raise `UnusableClass` if a feature of the operator cannot be used; the text says why.
    """
    settings = services.settings
    theirs: list[Feature] = []
    for path in settings.features:
        with building("FEATURES", path):
            made = found_at("FEATURES", path)(services)
            theirs.append(await made if isawaitable(made) else made)
        if not isinstance(theirs[-1], Feature):
            raise UnusableClass(f"FEATURES: {path} returns no `Feature`; see docs/features.md")
    services = replace(services, replaced=replaced_by(theirs))
    ours: list[Feature] = []
    for name, is_on in OUR_FEATURES.items():
        if is_on(settings):
            made = import_module(f"{__name__}.{name}.feature").feature(services)
            ours.append(await made if isawaitable(made) else made)
    for feature in theirs:
        take_over(feature, services.sentences)
    services.features.extend((*ours, *theirs))
    refuse_doubled("features", (feature.name for feature in services.features))
    return services.features
