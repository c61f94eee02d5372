"""The setting of backups."""

from config import values
from config.settings import Settings


class BackupSettings(Settings):
    """Backups, beside the settings of the core."""

    backup_passphrase: values.Secret | None = values.setting(
        None, "Encrypts backups (`backup`, `restore`); not set: a terminal is asked for it"
    )


SETTINGS = BackupSettings
