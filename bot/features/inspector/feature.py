"""What the inspector adds to the bot."""

from functools import partial

from starlette.routing import Route

from bot.feature import Feature, Services
from bot.features.inspector.operator_look import OperatorLook
from bot.features.inspector.page import PATH, LivePage, SignIn
from bot.features.inspector.settings import InspectorSettings
from bot.features.inspector.state import WATCHED, LiveReader, ProcessReports, report_of
from bot.turn.observers import TurnLog
from config.values import secret_of


def feature(services: Services) -> Feature:
    """Return the feature."""
    settings, memory = services.own(InspectorSettings), services.memory
    turns = TurnLog(services.name_of, lambda _: None)  # no words
    reports = ProcessReports(memory.store, memory.scopes.noted[WATCHED])
    duty = "everything" if services.takes_in and services.works else "web"
    report = partial(
        report_of,
        turns,
        reports.process,
        duty if services.takes_in else "worker",
        services.models.conditions,
        memory.capacity.samples,
    )
    look = OperatorLook(memory, services.access, services.sentences)
    page = LivePage(
        LiveReader(settings, memory, reports, services.name_of),
        look,
        SignIn(
            secret_of(settings.inspector_token) or "",
            secret_of(settings.telegram_bot_token) or "",
            memory.store,
        ),
    )
    return Feature(
        name="inspector",
        buttons={look.verb: look.press},
        privacy=(look.part,),
        tasks=(partial(reports.keep_writing, report),),
        observers=(turns.observe,),
        routes=(Route(PATH, page.answer, methods=["GET", "POST"]),),
    )
