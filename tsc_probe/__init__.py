"""Probes of the time stamp counter: C on pinned threads, raw stamps out."""
