"""What CuPy has beyond NumPy, as far as rushlight asks for it."""
