"""Interleavings and findings for people."""
