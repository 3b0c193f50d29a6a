"""Raises when it is loaded, on purpose."""

raise RuntimeError("rushlight_toy_broken is broken on purpose")
