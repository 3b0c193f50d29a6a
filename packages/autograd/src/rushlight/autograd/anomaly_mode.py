"""Finding the operator whose backward fails or gives NaN."""

from ._anomaly import (
    detect_anomaly as detect_anomaly,
    set_detect_anomaly as set_detect_anomaly,
)

__all__ = ["detect_anomaly", "set_detect_anomaly"]
