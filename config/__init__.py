"""What the operator has decided, read once at start.

Every package may import this one; it imports neither `memory` nor `bot`.
"""
