"""Special mathematical functions, elementwise."""

from rushlight import (
    exp2 as exp2,
    expm1 as expm1,
    log1p as log1p,
    log_softmax as log_softmax,
    logsumexp as logsumexp,
    round as round,
    sinc as sinc,
    softmax as softmax,
)
from rushlight.plugin import claim as _claim, require as _require

from ._zeros import jn_zeros as jn_zeros

# The functions are the operators of `_ops`, which appear here when the plugin is committed.
_require("special", "rushlight.special")
_claim(globals())
