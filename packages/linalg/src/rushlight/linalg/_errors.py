"""The exception of failing decompositions."""


class LinAlgError(RuntimeError):
    """A matrix that a routine cannot factor or invert; the message names the routine, the batch element and why."""


LinAlgError.__module__ = "rushlight.linalg"
