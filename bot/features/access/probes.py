"""Who may use the bot, and what of the settings does not fit together."""

from bot.probe import Probe, Row, Rows
from config.settings import Settings

_WHAT = "Who may use it"


def _row(settings: Settings) -> Row:
    people, groups = settings.allowed_user_ids, settings.allowed_group_ids
    if settings.access != "open" and not settings.admin_user_ids:
        seen = f"ACCESS={settings.access}, but there is no admin who could let anybody in"
        return Row(_WHAT, "warn", seen, "set ADMIN_USER_IDS to your number")
    if settings.access == "open" and not people:
        seen = "everybody, and your key pays"
        seen += f"; in groups only in {len(groups)}" if groups else ""
        return Row(_WHAT, "warn", seen, "set ALLOWED_USER_IDS, or ACCESS to ask or invite")
    if settings.access == "open" and "access" in settings.model_fields_set:
        seen = "ACCESS=open, but only the people in ALLOWED_USER_IDS may"
        return Row(_WHAT, "warn", seen, "set only one of them, or ACCESS to ask or invite")
    others = {"open": "", "ask": ", whom an admin lets in", "invite": ", whom an admin invites"}
    seen = f"people named in the settings: {len(people | settings.admin_user_ids)}"
    seen += others[settings.access]
    is_limited = settings.access != "open" or groups
    return Row(_WHAT, "ok", f"{seen}; groups: {len(groups) if is_limited else 'all'}")


async def _access(settings: Settings) -> Rows:
    yield _row(settings)


PROBES = (Probe(_WHAT, _access, lambda settings: settings.telegram_bot_token),)
