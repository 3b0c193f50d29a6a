"""The writer of event files."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.utils.tensorboard import summary
from rushlight.utils.tensorboard._graph import graph
from rushlight.utils.tensorboard._media import as_array, as_pixels, grid, png
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

__all__ = ["FileWriter", "SummaryWriter"]

_POSITIVE = 1e-12 * 1.1 ** np.arange(np.log(1e20 / 1e-12) / np.log(1.1))
TENSORFLOW_BINS = np.concatenate([-_POSITIVE[::-1], [0], _POSITIVE])
"""Edges in a geometric series to both sides of 0, for histograms of any scale."""


class FileWriter:
    """Writes records to one event file, from a thread of its own.

    Args:
        log_dir: Folder of the file, made where missing.
        max_queue: Records that wait at most before they are written.
        flush_secs: Seconds after which they are written anyway.
        filename_suffix: End of the file's name.
    """

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self._log_dir = str(log_dir)
        self._writer = EventFileWriter(self._log_dir, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Folder of the file."""
        return self._log_dir

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Adds an event, at a step and a time in seconds since 1970, by default now."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self._writer.add_event(event)

    def add_summary(self, record: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Adds what the functions of `summary` make."""
        self.add_event(Event(summary=record), global_step, walltime)

    def flush(self) -> None:
        """Writes what waits to the file."""
        self._writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the file."""
        self._writer.close()


class SummaryWriter:
    """Logs scalars, pictures, histograms and more for TensorBoard, asynchronously.

    Each `add_` method takes a tag, a value, `global_step` and `walltime` (seconds since 1970 instead of now). Tensors
    may be of any device and may require gradients.

    Args:
        log_dir: Folder of the run; by default `runs/` and time and host.
        comment: Added to that default.
        purge_step: Tells TensorBoard to forget what a crashed run logged from this step on.
        max_queue: Records that wait at most before they are written.
        flush_secs: Seconds after which they are written anyway.
        filename_suffix: End of the files' names.

    Example:
        >>> import rushlight as torch
        >>> from rushlight.utils.tensorboard import SummaryWriter  # doctest: +SKIP
        >>> with SummaryWriter() as writer:  # doctest: +SKIP
        ...     for step in range(10):
        ...         writer.add_scalar("loss", 1 / (step + 1), step)
        ...     writer.add_histogram("weights", torch.randn(100), 10)
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            log_dir = os.path.join("runs", f"{datetime.now():%b%d_%H-%M-%S}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self._options = {"max_queue": max_queue, "flush_secs": flush_secs, "filename_suffix": filename_suffix}
        self._writers: dict[str, FileWriter] = {}
        self._projector = ProjectorConfig()
        self._file_writer(self.log_dir)

    def _file_writer(self, folder: str) -> FileWriter:
        if folder not in self._writers:
            writer = self._writers[folder] = FileWriter(folder, **self._options)  # type: ignore[arg-type]
            if self.purge_step is not None:
                writer.add_event(Event(file_version="brain.Event:2"), self.purge_step)
                writer.add_event(Event(session_log=SessionLog(status=SessionLog.START)), self.purge_step)
        return self._writers[folder]

    def _add(self, record: Any, global_step: int | None, walltime: float | None) -> None:
        self._file_writer(self.log_dir).add_summary(record, global_step, walltime)

    def get_logdir(self) -> str:
        """Folder of the run."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Adds a number.

        Args:
            tag: Name of the series.
            scalar_value: Number, or tensor of one.
            global_step: Step.
            walltime: Time, instead of now.
            new_style: Whether it is written as a tensor.
            double_precision: Whether as one of float64.
        """
        self._add(summary.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds numbers that share a chart, each in a run of its own below this one's folder.

        Args:
            main_tag: Name of the chart.
            tag_scalar_dict: Number of each series.
            global_step: Step.
            walltime: Time, instead of now.
        """
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            self._file_writer(folder).add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Adds a tensor as it is."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Adds the histogram of values.

        Args:
            tag: Name of the series.
            values: Tensor or array, not empty.
            global_step: Step.
            bins: "tensorflow", or what `numpy.histogram` takes.
            walltime: Time, instead of now.
            max_bins: How many bins are kept at most.
        """
        edges = TENSORFLOW_BINS if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summary.histogram(tag, values, edges, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a histogram whose buckets and moments are known.

        Raises:
            ValueError: There are not as many limits as counts.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        record = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(record, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Adds a picture.

        Args:
            tag: Name of the series.
            img_tensor: uint8, or floats in [0, 1]; of 1, 3 or 4 channels.
            global_step: Step.
            walltime: Time, instead of now.
            dataformats: What its dimensions are: C, H, W, and N for a batch that is shown as a grid.
        """
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Adds a batch of pictures as a grid; arguments as in `add_image`."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
    ) -> None:
        """Adds a picture with frames around boxes (n, 4) of left, top, right and bottom, enlarged by `rescale`."""
        self._add(summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats), global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Adds matplotlib figures as pictures.

        Args:
            tag: Name of the series.
            figure: Figure, or a list of them, that are drawn as a grid.
            global_step: Step.
            close: Whether they are closed.
            walltime: Time, instead of now.
        """
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figures = figure if isinstance(figure, list) else [figure]
        drawn = []
        for each in figures:
            canvas = FigureCanvasAgg(each)
            canvas.draw()
            drawn.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(each)
        self.add_image(tag, np.stack(drawn), global_step, walltime, "NHWC")

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Adds films (batch, time, channels, height, width) of uint8 or floats in [0, 1]; needs Pillow."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Adds a sound of values in [-1, 1], (samples) or (channels, samples)."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Adds a text in Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Adds points for the projector, with labels and pictures.

        Args:
            mat: Points (n, dimensions).
            metadata: Label of each, or a list of labels under the names in `metadata_header`.
            label_img: Pictures (n, channels, height, width), square.
            global_step: Step.
            tag: Name of the set.
            metadata_header: Names of the labels where there are several.

        Raises:
            ValueError: The numbers of points, labels and pictures differ, or pictures are not square.
        """
        points = as_array(mat)
        if points.ndim != 2:
            raise ValueError("mat should be 2D, where mat.size(0) is the number of data points")
        step = 0 if global_step is None else int(global_step)
        name = f"{step:05d}/{tag.replace('/', '%2f')}"
        folder = Path(self.log_dir, name)
        folder.mkdir(parents=True, exist_ok=True)
        info = EmbeddingInfo(tensor_name=f"{tag}:{step:05d}", tensor_path=f"{name}/tensors.tsv")
        _write_table(folder / "tensors.tsv", points)
        if metadata is not None:
            if len(metadata) != len(points):
                raise ValueError("#labels should equal with #data points")
            rows = [[label] for label in metadata] if metadata_header is None else [metadata_header, *metadata]
            _write_table(folder / "metadata.tsv", rows)
            info.metadata_path = f"{name}/metadata.tsv"
        if label_img is not None:
            pictures = as_pixels(label_img)
            if len(pictures) != len(points) or pictures.shape[2] != pictures.shape[3]:
                raise ValueError("Image should be square and #images should equal with #data points")
            side = int(np.ceil(len(pictures) ** 0.5))
            (folder / "sprite.png").write_bytes(png(grid(pictures.transpose(0, 2, 3, 1), side)))
            info.sprite.image_path = f"{name}/sprite.png"
            info.sprite.single_image_dim.extend([pictures.shape[3], pictures.shape[2]])
        self._projector.embeddings.append(info)
        from google.protobuf import text_format

        Path(self.log_dir, "projector_config.pbtxt").write_text(text_format.MessageToString(self._projector))

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds the curve of precision and recall of binary predictions.

        Args:
            tag: Name of the series.
            labels: 0 or 1 for each element.
            predictions: Probability that it is 1.
            global_step: Step.
            num_thresholds: How many thresholds the curve has.
            weights: Weight of each element.
            walltime: Time, instead of now.
        """
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a curve of precision and recall whose values are known."""
        record = summary.pr_curve_raw(
            tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision,
            recall, num_thresholds,
        )  # fmt: skip
        self._add(record, global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Any = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Adds meshes or clouds of points.

        Args:
            tag: Name of the series.
            vertices: Points (batch, n, 3).
            colors: Colours of them from 0 to 255, likewise.
            faces: Indices of the points of each triangle (batch, m, 3).
            config_dict: Settings of the viewer.
            global_step: Step.
            walltime: Time, instead of now.
        """
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Any]]) -> None:
        """Says which charts show which scalars.

        Args:
            layout: `{category: {chart: ["Multiline", tags]}}`, or "Margin" with the tags of a value and its bounds.
        """
        self._add(summary.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags: Any, category: str = "default", title: str = "untitled") -> None:
        """Shows several scalars in one chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags: Any, category: str = "default", title: str = "untitled") -> None:
        """Shows a scalar with a margin: the tags of the value, of its lower and of its upper bound."""
        if len(tags) != 3:
            raise AssertionError(f"add_custom_scalars_marginchart: takes three tags, got tags={tags!r}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Any] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Adds the hyperparameters of a run and what it reached, as a run of its own below this one's folder.

        Args:
            hparam_dict: Value of each parameter: a number, bool or string.
            metric_dict: Value of each metric.
            hparam_domain_discrete: All values that parameters can have.
            run_name: Name of the run, by default the time.
            global_step: Step of the metrics.
        """
        records = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as run:
            for record in records:
                run._add(record, None, None)
            for tag, value in metric_dict.items():
                run.add_scalar(tag, value, global_step)

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False) -> None:
        """Adds the graph of a model: the operators that one call of it runs, in evaluation mode, with their shapes.

        Args:
            model: The model, a `Module`.
            input_to_model: The argument of the call, or a tuple or list of them.
            verbose: Whether the graph is printed too.
        """
        is_several = isinstance(input_to_model, (tuple, list))
        args = tuple(input_to_model) if is_several else () if input_to_model is None else (input_to_model,)
        found = graph(model, args)
        if verbose:
            print(found)
        self._file_writer(self.log_dir).add_event(Event(graph_def=found.SerializeToString()))

    def flush(self) -> None:
        """Writes what waits to the files."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Writes what waits and closes the files; adding more opens new ones."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def _write_table(path: Path, rows: Any) -> None:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
