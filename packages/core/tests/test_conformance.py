"""The conformance suite on the CPU, or on the device of --device."""

from rushlight.testing.conformance import *  # noqa: F403
