"""Automatic differentiation: backward passes over the graph that operators record."""

from rushlight.plugin import claim as _claim

from . import forward_ad as forward_ad, functional as functional, grad_mode as grad_mode, graph as graph
from ._anomaly import detect_anomaly as detect_anomaly, set_detect_anomaly as set_detect_anomaly
from ._backward import backward as backward, grad as grad
from ._C import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from ._functions import detach_ as detach_
from ._gradcheck import gradcheck as gradcheck, gradgradcheck as gradgradcheck
from ._strict_zero import strict_zero as strict_zero
from .function import Function as Function
from .variable import Variable as Variable

_claim(globals())
