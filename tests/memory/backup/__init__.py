"""Tests of memory/backup."""
