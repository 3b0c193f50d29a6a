"""The records of event files, as TensorBoard's plugins read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rushlight.utils.tensorboard._media import arrange, as_array, as_pixels, gif, outline, png, rescale, wav
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.plugins.custom_scalar import layout_pb2, metadata as custom_scalar
from tensorboard.plugins.hparams import api_pb2, metadata as hparams_plugin, plugin_data_pb2
from tensorboard.plugins.mesh import metadata as mesh_plugin, plugin_data_pb2 as mesh_data
from tensorboard.plugins.pr_curve import metadata as pr_curve_plugin
from tensorboard.plugins.text import metadata as text_plugin
from tensorboard.util.tensor_util import make_tensor_proto

__all__ = [
    "audio", "custom_scalars", "histogram", "histogram_raw", "hparams", "image", "image_boxes", "mesh", "pr_curve",
    "pr_curve_raw", "scalar", "tensor_proto", "text", "video",
]  # fmt: skip


def _tensor(tag: str, values: Any, metadata: Any, dtype: Any = None) -> Any:
    proto = make_tensor_proto(np.asarray(values, dtype))
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=proto)])


def scalar(name: str, value: Any, new_style: bool = False, double_precision: bool = False) -> Any:
    """A number: a plain value, or a tensor of the scalars plugin where `new_style`."""
    array = as_array(value).squeeze()
    if array.ndim:
        raise AssertionError(f"scalar should be 0D, got {name}={value!r} of shape {array.shape}")
    if not (new_style or double_precision):
        return Summary(value=[Summary.Value(tag=name, simple_value=float(array))])
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    return _tensor(name, array, metadata, np.float64 if double_precision else np.float32)


def tensor_proto(tag: str, tensor: Any) -> Any:
    """A tensor as it is."""
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="tensor"))
    return _tensor(tag, as_array(tensor), metadata)


def text(tag: str, value: str) -> Any:
    """A text in Markdown."""
    metadata = text_plugin.create_summary_metadata(display_name="", description="")
    proto = make_tensor_proto(np.array([value.encode("utf-8")], dtype=object))
    return Summary(value=[Summary.Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=proto)])


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """How often values fall between edges.

    Args:
        name: Tag.
        values: Numbers of any shape, not empty.
        bins: What `numpy.histogram` takes.
        max_bins: Neighbouring bins are joined until no more than these are left.

    Raises:
        ValueError: There are no values.
    """
    numbers = as_array(values).reshape(-1).astype(np.float64)
    if not numbers.size:
        raise ValueError("The input has no element.")
    counts, edges = np.histogram(numbers, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        joined = -(-len(counts) // max_bins)
        starts = np.arange(0, len(counts), joined)
        counts, edges = np.add.reduceat(counts, starts), np.append(edges[starts], edges[-1])
    filled = np.flatnonzero(counts)
    first, last = (filled[0], filled[-1] + 1) if filled.size else (0, 1)
    # A bucket is told by its upper end; the empty one below tells where the first begins.
    limits, buckets = edges[first : last + 1], np.concatenate([[0], counts[first:last]])
    return histogram_raw(
        name,
        numbers.min(),
        numbers.max(),
        numbers.size,
        numbers.sum(),
        float(np.vdot(numbers, numbers)),
        limits,
        buckets,
    )


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: float,
    sum: float,
    sum_squares: float,
    bucket_limits: Any,
    bucket_counts: Any,
) -> Any:
    """A histogram whose buckets and moments are known."""
    proto = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares,
        bucket_limit=as_array(bucket_limits).tolist(), bucket=as_array(bucket_counts).tolist(),
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


def image(tag: str, tensor: Any, rescale_by: float = 1, dataformats: str = "NCHW") -> Any:
    """A picture as PNG."""
    return _picture(tag, arrange(as_pixels(tensor), dataformats), rescale_by)


def image_boxes(tag: str, tensor: Any, boxes: Any, rescale_by: float = 1, dataformats: str = "CHW") -> Any:
    """A picture with frames around boxes."""
    return _picture(tag, outline(arrange(as_pixels(tensor), dataformats), as_array(boxes)), rescale_by)


def _picture(tag: str, pixels: np.ndarray, factor: float = 1, encoded: bytes | None = None) -> Any:
    pixels = rescale(pixels, factor) if factor != 1 else pixels
    height, width, channels = pixels.shape
    picture = Summary.Image(
        height=height,
        width=width,
        colorspace=channels,
        encoded_image_string=encoded or png(np.ascontiguousarray(pixels)),
    )
    return Summary(value=[Summary.Value(tag=tag, image=picture)])


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """Films (batch, time, channels, height, width) side by side, as an animated GIF."""
    pixels = as_pixels(tensor)
    if pixels.ndim != 5:
        raise ValueError(f"add_video: takes (batch, time, channels, height, width), got shape {pixels.shape}.")
    frames = np.stack([arrange(frame, "NCHW") for frame in pixels.swapaxes(0, 1)])
    return _picture(tag, frames[0], encoded=gif(frames, fps))


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """A sound of values in [-1, 1], (samples) or (channels, samples), as WAV."""
    sound = as_array(tensor).astype(np.float32)
    sound = sound.reshape(-1, sound.shape[-1]) if sound.ndim else sound.reshape(1, 1)
    clip = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=len(sound),
        length_frames=sound.shape[-1],
        encoded_audio_string=wav(sound, sample_rate),
        content_type="audio/wav",
    )
    return Summary(value=[Summary.Value(tag=tag, audio=clip)])


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """Precision and recall of binary predictions at thresholds from 0 to 1."""
    truth, scores = (as_array(values).reshape(-1).astype(np.float64) for values in (labels, predictions))
    weight = np.ones_like(truth) if weights is None else np.broadcast_to(as_array(weights), truth.shape)
    n = min(num_thresholds, 127)
    bucket = np.floor(scores * (n - 1)).astype(int).clip(0, n - 1)
    # Predicted positive at a threshold is what lies in its bucket or above.
    true = np.bincount(bucket, truth * weight, n)[::-1].cumsum()[::-1]
    false = np.bincount(bucket, (1 - truth) * weight, n)[::-1].cumsum()[::-1]
    precision = true / np.maximum(true + false, 1e-7)
    recall = true / max(true[0], 1e-7)
    return pr_curve_raw(tag, true, false, false[0] - false, true[0] - true, precision, recall, n)


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
) -> Any:
    """A curve of precision and recall whose values are known."""
    rows = np.stack([as_array(row).astype(np.float32) for row in (tp, fp, tn, fn, precision, recall)])
    metadata = pr_curve_plugin.create_summary_metadata(
        display_name=tag, description="", num_thresholds=min(num_thresholds, 127)
    )
    return _tensor(tag, rows, metadata, np.float32)


def mesh(tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None) -> Any:
    """Meshes or clouds of points: vertices (batch, n, 3), colours likewise from 0 to 255, faces (batch, m, 3)."""
    kinds = mesh_data.MeshPluginData
    parts = [
        (as_array(part), kind)
        for part, kind in ((vertices, kinds.VERTEX), (faces, kinds.FACE), (colors, kinds.COLOR))
        if part is not None
    ]
    components = mesh_plugin.get_components_bitmask([kind for _, kind in parts])
    config = json.dumps(config_dict, sort_keys=True) if config_dict is not None else None
    values = []
    for part, kind in parts:
        metadata = mesh_plugin.create_summary_metadata(tag, None, kind, components, part.shape, json_config=config)
        values.append(
            Summary.Value(
                tag=mesh_plugin.get_instance_name(tag, kind), metadata=metadata, tensor=make_tensor_proto(part)
            )
        )
    return Summary(value=values)


def custom_scalars(layout: Mapping[str, Mapping[str, Any]]) -> Any:
    """Which charts show which scalars: `{category: {chart: ["Multiline" or "Margin", tags]}}`."""
    categories = []
    for title, charts in layout.items():
        entries = []
        for name, (kind, tags) in charts.items():
            if kind == "Margin":
                value, lower, upper = tags
                series = layout_pb2.MarginChartContent.Series(value=value, lower=lower, upper=upper)
                entries.append(layout_pb2.Chart(title=name, margin=layout_pb2.MarginChartContent(series=[series])))
            else:
                entries.append(layout_pb2.Chart(title=name, multiline=layout_pb2.MultilineChartContent(tag=tags)))
        categories.append(layout_pb2.Category(title=title, chart=entries))
    content = layout_pb2.Layout(category=categories).SerializeToString()
    metadata = custom_scalar.create_summary_metadata()
    proto = make_tensor_proto(np.array(content, dtype=object))
    return Summary(value=[Summary.Value(tag=custom_scalar.CONFIG_SUMMARY_TAG, metadata=metadata, tensor=proto)])


def hparams(
    hparam_dict: Mapping[str, Any], metric_dict: Iterable[str], hparam_domain_discrete: Mapping[str, Any] | None = None
) -> tuple[Any, Any, Any]:
    """The records of an experiment, and of the start and the end of its session.

    Raises:
        TypeError: An argument is no mapping.
        ValueError: A parameter is neither a bool, a number, a string nor a tensor of one number.
    """
    if not isinstance(hparam_dict, Mapping) or not isinstance(metric_dict, Mapping):
        raise TypeError("hparam_dict and metric_dict should be dictionary.")
    domains = hparam_domain_discrete or {}
    session = plugin_data_pb2.SessionStartInfo()
    infos = []
    for name, value in hparam_dict.items():
        kind, plain = _hparam(name, value)
        if kind is None:
            continue
        setattr(session.hparams[name], f"{kind}_value", plain)
        info = api_pb2.HParamInfo(name=name, type=getattr(api_pb2, f"DATA_TYPE_{_DATA_TYPES[kind]}"))
        if name in domains:
            info.domain_discrete.extend(domains[name])
        infos.append(info)
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metric_dict]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
    end = plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))
    data = plugin_data_pb2.HParamsPluginData
    return (
        _record(hparams_plugin.EXPERIMENT_TAG, data(experiment=experiment, version=hparams_plugin.PLUGIN_DATA_VERSION)),
        _record(hparams_plugin.SESSION_START_INFO_TAG, data(session_start_info=session)),
        _record(hparams_plugin.SESSION_END_INFO_TAG, data(session_end_info=end)),
    )


_DATA_TYPES = {"bool": "BOOL", "number": "FLOAT64", "string": "STRING"}


def _hparam(name: str, value: Any) -> tuple[str | None, Any]:
    if value is None:
        return None, None
    if isinstance(value, str):
        return "string", value
    array = as_array(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"add_hparams: a parameter is an int, float, str, bool, or a tensor of one, got {name}={value!r}."
        )
    return ("bool", bool(array)) if array.dtype.kind == "b" else ("number", float(array.item()))


def _record(tag: str, data: Any) -> Any:
    metadata = hparams_plugin.create_summary_metadata(data)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=hparams_plugin.NULL_TENSOR)])
