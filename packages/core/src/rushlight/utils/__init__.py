"""Tools around tensors; `rushlight.utils.data` and others come with further wheels."""

from pkgutil import extend_path as _extend_path

from .._areas import getter as _getter

__path__ = _extend_path(__path__, __name__)
__getattr__ = _getter(__name__)
