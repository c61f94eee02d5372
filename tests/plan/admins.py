"""Admins who remember what they were told."""

from memory.plan.filling import Filling
from memory.plan.told import News


class Admins:
    """`are_away`: nobody can be told for now."""

    def __init__(self) -> None:
        self.told: list[News] = []
        self.are_away = False

    async def tell(self, news: News, filling: Filling) -> bool:
        assert filling.limit
        if not self.are_away:
            self.told.append(news)
        return not self.are_away

    @property
    def kinds(self) -> list[str]:
        return [news.kind for news in self.told]
