"""What the stamps of a trace prove, and what they leave open."""
