"""The setting of drawing."""

from config import values
from config.settings import Settings


class DrawingSettings(Settings):
    """What draws, beside the settings of the core."""

    openai_image_model: values.ModelOrOff = values.setting(
        None,
        "Model that draws images, on the server of `OPENAI_BASE_URL`; not set: the bot draws none",
    )

    def models_in_use(self) -> dict[str, tuple[str, ...]]:
        """Return also what draws."""
        own = {self.openai_image_model: ("", "image")} if self.openai_image_model else {}
        return {**super().models_in_use(), **own}


SETTINGS = DrawingSettings
