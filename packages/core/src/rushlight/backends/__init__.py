"""The device types that the core brings."""
