"""Who may use the bot, and what of the settings does not fit together."""

from bot.probe import Probe, Row, Rows
from config.settings import Settings

_WHAT = "Who may use it"


async def _access(settings: Settings) -> Rows:
    people, groups = settings.allowed_user_ids, settings.allowed_group_ids
    if settings.access != "open" and not settings.admin_user_ids:
        seen = f"ACCESS={settings.access}, but there is no admin who could let anybody in"
        yield Row(_WHAT, "warn", seen, "set ADMIN_USER_IDS to your number")
    elif settings.access == "open" and not people:
        seen = "everybody, and your key pays"
        seen += f"; in groups only in {len(groups)}" if groups else ""
        yield Row(_WHAT, "warn", seen, "set ALLOWED_USER_IDS, or ACCESS to ask or invite")
    elif settings.access == "open" and "access" in settings.model_fields_set:
        seen = "ACCESS=open, but only the people in ALLOWED_USER_IDS may"
        yield Row(_WHAT, "warn", seen, "set only one of them, or ACCESS to ask or invite")
    else:
        others = {"open": "", "ask": ", whom an admin lets in", "invite": ", whom an admin invites"}
        seen = f"people named in the settings: {len(people | settings.admin_user_ids)}"
        seen += others[settings.access]
        is_limited = settings.access != "open" or groups
        yield Row(_WHAT, "ok", f"{seen}; groups: {len(groups) if is_limited else 'all'}")


PROBES = (Probe(_WHAT, _access, lambda settings: settings.telegram_bot_token),)
