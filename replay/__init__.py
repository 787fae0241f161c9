"""Enforce a schedule on the program, again and again."""
