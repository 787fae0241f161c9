"""From a trace to an interleaving that explains every recorded value."""
