"""Event files for TensorBoard, written through its own package: `pip install rushlight-nn[tensorboard]`.

Example:
    >>> from rushlight.utils.tensorboard import SummaryWriter  # doctest: +SKIP
    >>> with SummaryWriter("runs/first") as writer:  # doctest: +SKIP
    ...     writer.add_scalar("loss", 0.5, 0)
"""

from importlib.util import find_spec as _find_spec

if _find_spec("tensorboard") is None:
    raise ImportError(
        "rushlight.utils.tensorboard needs the package tensorboard (pip install rushlight-nn[tensorboard])",
        name="tensorboard",
    )

from rushlight.utils.tensorboard.writer import FileWriter as FileWriter, SummaryWriter as SummaryWriter
