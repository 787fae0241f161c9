"""The command line: one file per command, each with `prepare_parser` and `run`."""
