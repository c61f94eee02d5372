"""What the operator has decided, read once at start.

Everybody may import this package; it imports neither `memory` nor `bot`.
"""
