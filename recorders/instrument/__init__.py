"""Putting probe sites into LLVM IR: what gets a site, and the text that makes it (ReCBuLC §5)."""
