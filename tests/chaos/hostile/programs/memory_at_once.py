held = b"x" * (10 << 30)
