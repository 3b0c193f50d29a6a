"""Mixed precision: `autocast` runs each operator in the dtype that suits it, `GradScaler` keeps small gradients."""

from rushlight.plugin import require as _require

_require("autograd", "rushlight.amp")  # the dispatch layer

from .autocast_mode import (
    autocast as autocast,
    custom_bwd as custom_bwd,
    custom_fwd as custom_fwd,
    is_autocast_available as is_autocast_available,
)
from .grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
