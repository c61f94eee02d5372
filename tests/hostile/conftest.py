"""The rig of the scenarios for each attack."""

from tests.acceptance.conftest import rig

__all__ = ["rig"]
