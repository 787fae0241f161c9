"""From a program to a trace: the compiler wrapper, the preload runtime, the driver and the trace format."""
