"""Event files, read back by TensorBoard's own reader."""

import io
import math
import struct

import numpy as np
import pytest

import rushlight as torch

pytest.importorskip("tensorboard", exc_type=ImportError)

# Generated code of older protocol buffers warns as it is imported.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def writer(tmp_path):
    from rushlight.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path / "run") as writer:
        yield writer


def read(folder):
    """All events of the folder's files."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    return [event for path in sorted(folder.glob("events*")) for event in EventFileLoader(str(path)).Load()]


def values(writer, folder=""):
    writer.flush()
    from pathlib import Path

    return [(event, value) for event in read(Path(writer.log_dir, folder)) for value in event.summary.value]


def floats(value):
    from tensorboard.util.tensor_util import make_ndarray

    return make_ndarray(value.tensor)


def test_scalars(writer):
    for step, value in enumerate((0.5, torch.tensor(0.25, requires_grad=True), np.float32(2))):
        writer.add_scalar("loss", value, step, walltime=100.0 + step)
    found = values(writer)
    assert [value.tag for _, value in found] == ["loss"] * 3
    assert [float(floats(value)) for _, value in found] == [0.5, 0.25, 2.0]
    assert [(event.step, event.wall_time) for event, _ in found] == [(0, 100.0), (1, 101.0), (2, 102.0)]
    with pytest.raises(AssertionError, match="0D"):
        writer.add_scalar("loss", torch.ones(2))


def test_scalars_of_double_precision(writer):
    writer.add_scalar("loss", 1 / 3, double_precision=True)
    ((_, value),) = values(writer)
    assert float(floats(value)) == 1 / 3


def test_scalars_that_share_a_chart(writer):
    writer.add_scalars("loss", {"train": 1.0, "test": 2.0}, 3)
    for name, expected in (("loss_train", 1.0), ("loss_test", 2.0)):
        ((event, value),) = values(writer, name)
        assert (event.step, float(floats(value))) == (3, expected)


@pytest.mark.parametrize("bins", ["tensorflow", "auto", 7])
def test_histogram(writer, bins):
    numbers = np.random.default_rng(0).normal(size=1000)
    writer.add_histogram("weights", torch.from_numpy(numbers), 1, bins)
    ((_, value),) = values(writer)
    lower, upper, counts = floats(value).T
    assert counts.sum() == 1000
    for low, high, count in zip(lower, upper, counts, strict=True):
        if low > numbers.min() + 1e-6 and high < numbers.max() - 1e-6:  # edges are float32 here
            assert count == np.count_nonzero((numbers >= low) & (numbers < high))
    with pytest.raises(ValueError, match="no element"):
        writer.add_histogram("weights", torch.ones(0))


def test_histogram_of_few_bins_and_of_raw_buckets(writer):
    writer.add_histogram("few", torch.linspace(0, 1, 100), bins=50, max_bins=5)
    writer.add_histogram_raw("raw", 0, 2, 3, 3.0, 5.0, [1.0, 2.0], [1, 2])
    (_, few), (_, raw) = values(writer)
    assert floats(few)[:, 2].sum() == 100
    assert len(floats(few)) <= 7
    assert floats(raw)[:, 2].tolist() == [1, 2]
    with pytest.raises(ValueError, match="bucket_limits"):
        writer.add_histogram_raw("raw", 0, 2, 3, 3.0, 5.0, [1.0], [1, 2])


def decoded(value):
    from PIL import Image

    (encoded,) = [entry for entry in floats(value) if entry[:4] in (b"\x89PNG", b"GIF8")]
    return Image.open(io.BytesIO(encoded))


def test_images(writer):
    pixels = np.random.default_rng(0).integers(0, 256, (3, 4, 5), dtype=np.uint8)
    writer.add_image("bytes", torch.from_numpy(pixels))
    writer.add_image("floats", torch.from_numpy(pixels / 255).float())
    writer.add_image("last", pixels.transpose(1, 2, 0), dataformats="HWC")
    writer.add_image("grey", torch.from_numpy(pixels[0]), dataformats="HW")
    writer.add_images("grid", torch.from_numpy(np.stack([pixels] * 9)))
    found = {value.tag: np.asarray(decoded(value)) for _, value in values(writer)}
    expected = pixels.transpose(1, 2, 0)
    np.testing.assert_array_equal(found["bytes"], expected)
    assert np.abs(found["floats"].astype(int) - expected).max() <= 1
    np.testing.assert_array_equal(found["last"], expected)
    np.testing.assert_array_equal(found["grey"], np.stack([pixels[0]] * 3, -1))
    assert found["grid"].shape == (8, 40, 3)
    np.testing.assert_array_equal(found["grid"][4:, :5], expected)
    assert not found["grid"][4:, 5:].any()
    with pytest.raises(ValueError, match="dataformats"):
        writer.add_image("bad", pixels, dataformats="HW")


def test_image_with_boxes(writer):
    writer.add_image_with_boxes("boxes", torch.zeros(3, 10, 10), torch.tensor([[2.0, 3.0, 6.0, 30.0]]), rescale=2)
    ((_, value),) = values(writer)
    image = np.asarray(decoded(value))
    assert image.shape == (20, 20, 3)
    assert image[7, 4:14, 0].tolist() == [255] * 10
    assert image[0].max() == 0


def test_figure(writer):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(2, 1), dpi=50)
    figure.add_subplot().plot([1, 2])
    writer.add_figure("figure", figure)
    ((_, value),) = values(writer)
    assert np.asarray(decoded(value)).shape == (50, 100, 3)
    assert not pyplot.fignum_exists(figure.number)


def test_video(writer):
    writer.add_video("film", torch.rand(2, 3, 3, 6, 8))
    ((_, value),) = values(writer)
    film = decoded(value)
    assert (film.n_frames, film.size) == (3, (16, 6))
    with pytest.raises(ValueError, match="add_video"):
        writer.add_video("film", torch.rand(3, 6, 8))


def test_audio(writer):
    tone = torch.sin(torch.arange(800) * (2 * math.pi * 440 / 8000))
    writer.add_audio("tone", tone, sample_rate=8000)
    ((_, value),) = values(writer)
    encoded = bytes(floats(value).ravel()[0])
    assert encoded[:4] == b"RIFF"
    samples = np.frombuffer(encoded[44:], "<i2")
    np.testing.assert_allclose(samples / 32767, tone.numpy(), atol=1e-4)
    assert struct.unpack("<I", encoded[24:28]) == (8000,)


def test_text_and_tensor(writer):
    writer.add_text("note", "**bold** λ")
    writer.add_tensor("tensor", torch.arange(6).view(2, 3))
    (_, note), (_, tensor) = values(writer)
    assert floats(note).ravel()[0].decode() == "**bold** λ"
    assert note.metadata.plugin_data.plugin_name == "text"
    assert floats(tensor).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_precision_recall_curve(writer):
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 200), rng.random(200)
    writer.add_pr_curve("curve", torch.from_numpy(labels), torch.from_numpy(scores), num_thresholds=11)
    ((_, value),) = values(writer)
    true, false, true_negative, false_negative, precision, recall = floats(value)
    for i in range(11):
        positive = np.floor(scores * 10) >= i
        assert true[i] == np.count_nonzero(positive & (labels == 1))
        assert false[i] == np.count_nonzero(positive & (labels == 0))
        assert true_negative[i] == np.count_nonzero(~positive & (labels == 0))
        assert false_negative[i] == np.count_nonzero(~positive & (labels == 1))
    np.testing.assert_allclose(recall, true / np.count_nonzero(labels), rtol=1e-6)
    np.testing.assert_allclose(precision, true / np.maximum(true + false, 1), rtol=1e-6)


def test_embedding(writer):
    points = torch.arange(12.0).view(4, 3)
    writer.add_embedding(points, ["a", "b", "c", "d"], torch.rand(4, 3, 5, 5), 7, "points")
    from pathlib import Path

    folder = Path(writer.log_dir)
    np.testing.assert_array_equal(np.loadtxt(folder / "00007/points/tensors.tsv"), points.numpy())
    assert (folder / "00007/points/metadata.tsv").read_text() == "a\nb\nc\nd\n"
    config = (folder / "projector_config.pbtxt").read_text()
    assert 'tensor_path: "00007/points/tensors.tsv"' in config
    assert "single_image_dim: 5" in config
    with pytest.raises(ValueError, match="labels"):
        writer.add_embedding(points, ["a"])


def test_mesh_and_charts(writer):
    writer.add_mesh("mesh", torch.rand(1, 4, 3), torch.zeros(1, 4, 3, dtype=torch.int32), torch.tensor([[[0, 1, 2]]]))
    writer.add_custom_scalars_multilinechart(["a", "b"], "category", "chart")
    writer.add_custom_scalars_marginchart(["value", "low", "high"])
    found = values(writer)
    assert [value.metadata.plugin_data.plugin_name for _, value in found] == ["mesh"] * 3 + ["custom_scalars"] * 2
    with pytest.raises(AssertionError, match="three tags"):
        writer.add_custom_scalars_marginchart(["value"])


def test_hyperparameters(writer):
    writer.add_hparams(
        {"lr": 0.1, "layers": 3, "bias": True, "name": "adam", "none": None},
        {"accuracy": 0.9},
        {"layers": [1.0, 3.0]},
        run_name="first",
    )
    from tensorboard.plugins.hparams import metadata

    found = {value.tag: value for _, value in values(writer, "first")}
    session = metadata.parse_session_start_info_plugin_data(
        found[metadata.SESSION_START_INFO_TAG].metadata.plugin_data.content
    )
    assert session.hparams["lr"].number_value == 0.1
    assert session.hparams["bias"].bool_value is True
    assert session.hparams["name"].string_value == "adam"
    experiment = metadata.parse_experiment_plugin_data(found[metadata.EXPERIMENT_TAG].metadata.plugin_data.content)
    assert [info.name for info in experiment.hparam_infos] == ["lr", "layers", "bias", "name"]
    assert float(floats(found["accuracy"])) == pytest.approx(0.9)
    with pytest.raises(TypeError):
        writer.add_hparams([], {})
    with pytest.raises(ValueError, match="lr"):
        writer.add_hparams({"lr": [1, 2]}, {})


def test_writer_opens_again_after_close_and_purges(tmp_path):
    from rushlight.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(tmp_path, purge_step=5)
    writer.close()
    writer.add_scalar("loss", 1.0, 5)
    writer.close()
    events = read(tmp_path)
    assert any(event.HasField("session_log") and event.step == 5 for event in events)
    assert any(event.summary.value for event in events)


def test_default_folder(tmp_path, monkeypatch):
    from rushlight.utils.tensorboard import SummaryWriter

    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_test") as writer:
        assert writer.get_logdir().startswith("runs/")
        assert writer.get_logdir().endswith("_test")
    assert list((tmp_path / "runs").iterdir())


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x, shift):
        first, second = torch.split(self.linear(self.linear(x)), [1, 2], dim=1)
        return {"sum": torch.cat([second, first], 1).add(shift, alpha=2), "dropped": self.drop(first)}


def test_graphs(writer):
    from pathlib import Path

    from tensorboard.compat.proto.graph_pb2 import GraphDef

    model = torch.nn.Sequential()
    model.add_module("twice", Twice())
    model.forward = lambda *args: model.twice(*args)
    writer.add_graph(model, (torch.ones(2, 3), torch.ones(3)))
    assert model.twice.training
    assert not model.twice._forward_hooks
    writer.flush()
    (data,) = (event.graph_def for event in read(Path(writer.log_dir)) if event.graph_def)
    nodes = {node.name: node for node in GraphDef.FromString(data).node}
    linear = "Sequential/Twice[twice]/Linear[linear]"
    assert list(nodes[f"{linear}/linear"].input) == ["input/0", f"{linear}/weight", f"{linear}/bias"]
    assert list(nodes[f"{linear}/linear_1"].input) == [f"{linear}/linear", f"{linear}/weight", f"{linear}/bias"]
    assert nodes[f"{linear}/weight"].op == "Parameter"
    split = nodes["Sequential/Twice[twice]/split"]
    assert split.attr["arguments"].s.decode() == "(1, 2), 1"
    shapes = [[dim.size for dim in shape.dim] for shape in split.attr["_output_shapes"].list.shape]
    assert shapes == [[2, 1], [2, 2]]
    assert list(nodes["Sequential/Twice[twice]/cat"].input) == [split.name + ":1", split.name]
    assert list(nodes["Sequential/Twice[twice]/add"].input) == ["Sequential/Twice[twice]/cat", "input/1"]
    assert {node.op for node in nodes.values()} >= {"Input", "Output", "Parameter", "cat"}
    assert list(nodes["output/0"].input) == ["Sequential/Twice[twice]/add"]
    known = set(nodes)
    assert all(source.partition(":")[0] in known for node in nodes.values() for source in node.input)


def test_a_model_that_fails_is_left_as_it_was(writer):
    model = Twice()
    with pytest.raises(RuntimeError):
        writer.add_graph(model, (torch.ones(2, 4), torch.ones(3)))
    assert model.training
    assert not model.linear._forward_pre_hooks
