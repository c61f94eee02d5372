"""What the inspector adds to the bot."""

from functools import partial

from bot.feature import Feature, Services
from bot.features.inspector.page import LivePage
from bot.features.inspector.permission import LookPermission
from bot.features.inspector.settings import InspectorSettings
from bot.features.inspector.sign_in import SignIn
from bot.features.inspector.state import LiveReader, LookReader
from bot.features.inspector.turn_log import WATCHED, ProcessReports, TurnLog
from bot.model.models import secret_of


def feature(services: Services) -> Feature:
    """Return the feature."""
    settings, memory = services.own(InspectorSettings), services.memory
    turns, name_of = TurnLog(services.name_of), services.name_of
    reports = ProcessReports(memory.store, memory.noted[WATCHED])
    duty = "everything" if services.takes_in and services.works else "web"
    report = partial(
        turns.report,
        reports.process,
        duty if services.takes_in else "worker",
        services.models.conditions,
        memory.capacity.samples,
    )
    page = LivePage(
        LiveReader(settings, memory, reports, name_of),
        LookReader(memory, services.sentences),
        SignIn(
            secret_of(settings.inspector_token) or "", secret_of(settings.telegram_bot_token) or ""
        ),
    )
    permission = LookPermission(memory.look, services.access, services.sentences)
    return Feature(
        name="inspector",
        buttons={permission.verb: permission.press},
        privacy=(permission.part,),
        tasks=(partial(reports.keep_writing, report),),
        watchers=(turns,),
        routes=page.routes(),
    )
