"""Pictures, films and sounds as bytes, and grids of pictures."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from typing import Any

import numpy as np

MODES = {1: 0, 2: 4, 3: 2, 4: 6}
"""PNG colour types by number of channels: grey, grey with alpha, RGB, RGBA."""


def as_array(value: Any) -> np.ndarray:
    """A tensor, array, list or number as an array without gradients."""
    value = getattr(value, "detach", lambda: value)()
    return np.asarray(value.cpu().float() if str(getattr(value, "dtype", "")) == "torch.bfloat16" else value)


def as_pixels(image: Any) -> np.ndarray:
    """uint8 values from uint8 ones, or from floats in [0, 1]."""
    pixels = as_array(image)
    if pixels.dtype == np.uint8:
        return pixels
    return np.nan_to_num(pixels.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)


def arrange(image: np.ndarray, dataformats: str) -> np.ndarray:
    """A picture as (height, width, channels) from letters such as "CHW"; pictures of a batch become a grid.

    Raises:
        ValueError: The letters are not those of the picture's dimensions.
    """
    letters = dataformats.upper()
    if len(set(letters)) != len(letters) or len(letters) != image.ndim or not {"H", "W"} <= set(letters) <= set("NCHW"):
        raise ValueError(
            "add_image: dataformats names each dimension once, by N, C, H and W, got "
            f"dataformats={dataformats!r} for shape {image.shape}."
        )
    image = image.transpose([letters.index(letter) for letter in "NHWC" if letter in letters])
    if "C" not in letters:
        image = image[..., None]
    image = grid(image) if "N" in letters else image
    return image.repeat(3, -1) if image.shape[-1] == 1 else image


def grid(images: np.ndarray, columns: int = 8) -> np.ndarray:
    """Pictures (n, height, width, channels) side by side as one, in rows of up to 8."""
    n, height, width, channels = images.shape
    columns = max(1, min(n, columns))
    rows = -(-n // columns)
    cells = np.zeros((rows * columns, height, width, channels), images.dtype)
    cells[:n] = images
    cells = cells.reshape(rows, columns, height, width, channels)
    return cells.transpose(0, 2, 1, 3, 4).reshape(rows * height, columns * width, channels)


def rescale(image: np.ndarray, factor: float) -> np.ndarray:
    """The picture enlarged or shrunk by taking the nearest pixels."""
    rows, columns = (np.arange(int(size * factor)) / factor for size in image.shape[:2])
    return image[rows.astype(int)][:, columns.astype(int)]


def outline(image: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """The picture with a red frame of a pixel along each box (left, top, right, bottom)."""
    image = image.copy()
    colour = np.array([255, 0, 0, 255], np.uint8)[: image.shape[-1]]
    height, width = image.shape[:2]
    for left, top, right, bottom in np.asarray(boxes).reshape(-1, 4).astype(int):
        x, y = np.clip([left, right], 0, width - 1), np.clip([top, bottom], 0, height - 1)
        image[y, x[0] : x[1] + 1] = colour
        image[y[0] : y[1] + 1, x] = colour
    return image


def png(image: np.ndarray) -> bytes:
    """A PNG file of a picture (height, width, channels) of uint8."""
    height, width, channels = image.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter, none
    lines[:, 1:] = image.reshape(height, -1)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, MODES[channels], 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def gif(frames: np.ndarray, fps: float) -> bytes:
    """An animated GIF of frames (n, height, width, channels) of uint8, by Pillow."""
    from PIL import Image

    pictures = [Image.fromarray(frame) for frame in frames]
    file = io.BytesIO()
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=1000 / fps, loop=0)
    return file.getvalue()


def wav(sound: np.ndarray, sample_rate: int) -> bytes:
    """A WAV file of 16 bits from values in [-1, 1], (samples) or (channels, samples)."""
    samples = np.nan_to_num(sound).clip(-1, 1).reshape(-1, sound.shape[-1]).T
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(samples.shape[1])
        out.setsampwidth(2)
        out.setframerate(sample_rate)
        out.writeframes((samples * 32767).astype("<i2").tobytes())
    return file.getvalue()
