"""Devices of two array libraries, `strict` and `dpnp`."""

from rushlight.testing import arrayapi_backend


def rushlight_register_backends():
    return [arrayapi_backend("strict", "array_api_strict"), arrayapi_backend("dpnp", "dpnp")]
