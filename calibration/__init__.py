"""How far the clocks of two cores may differ: measured, bounded, kept and watched (ReCBuLC §3.2-§3.4, §6.4, §6.5)."""
