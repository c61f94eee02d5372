"""Admins who remember what they were told."""

from memory.limits.alerts import CapacityAlert
from memory.limits.fill_level import FillLevel


class Admins:
    """`are_away`: nobody can be told for now."""

    def __init__(self) -> None:
        self.told: list[CapacityAlert] = []
        self.are_away = False

    async def tell(self, news: CapacityAlert, filling: FillLevel) -> bool:
        assert filling.limit
        if not self.are_away:
            self.told.append(news)
        return not self.are_away

    @property
    def kinds(self) -> list[str]:
        return [news.kind for news in self.told]
