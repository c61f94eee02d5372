"""Admins that keep the alerts they got."""

from memory.limits.capacity import CapacityAlert, FillLevel


class Admins:
    """While `are_away` is set, no admin can be reached."""

    def __init__(self) -> None:
        self.told: list[CapacityAlert] = []
        self.are_away = False

    async def tell(self, news: CapacityAlert, filling: FillLevel) -> bool:
        assert filling.limit
        if not self.are_away:
            self.told.append(news)
        return not self.are_away
