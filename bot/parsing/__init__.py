"""Bytes that anybody may have made, read in processes that can open nothing."""
