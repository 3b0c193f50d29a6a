"""Signal processing: `rushlight.signal.windows`."""

from . import windows as windows
