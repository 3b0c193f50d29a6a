"""Part of the CuPy beside it."""
