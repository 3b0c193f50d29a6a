"""Pictures of graphs: what is in them, and that they are well-formed."""

import xml.etree.ElementTree as ElementTree

import pytest

import rushlight as torch
from rushlight.autograd import Function, detect_anomaly, graph

SVG = "{http://www.w3.org/2000/svg}"


def texts(drawing):
    return [t.text for t in ElementTree.fromstring(drawing.svg()).iter(f"{SVG}text")]


def test_shapes_dtypes_names_and_source_lines():
    w, x = torch.ones(2, 3, requires_grad=True), torch.ones(3, dtype=torch.float64)
    with detect_anomaly():
        low, high = (w.double() @ x).unbind()
        y = low * high
    drawing = graph.draw([y, low], [("layer.weight", w)])
    for text in (drawing.dot(), *["\n".join(texts(drawing))]):
        for part in ("MulBackward0", "UnbindBackward0", "layer.weight", "float32 (2, 3)", "float64 (2,)", "output 1"):
            assert part in text
        assert "test_drawing.py:" in text
        assert "in test_shapes_dtypes_names_and_source_lines" in text
    titles = [box.title for box in drawing.boxes]
    unbind, product = titles.index("UnbindBackward0"), titles.index("MulBackward0")
    assert {label for a, b, label in drawing.arrows if (a, b) == (unbind, product)} == {"0", "1"}
    assert titles.count("layer.weight") == 1


def test_boxes_do_not_overlap():
    x = [torch.ones(2, requires_grad=True) for _ in range(5)]
    y = sum(a.exp() * b.sin() for a in x for b in x) + x[0]
    boxes = []
    for r in list(ElementTree.fromstring(graph.draw(y).svg()).iter(f"{SVG}rect"))[1:]:
        left, top, width, height = (float(r.get(name)) for name in ("x", "y", "width", "height"))
        assert left >= 0
        for other in boxes:
            assert left >= other[2] or other[0] >= left + width or top >= other[3] or other[1] >= top + height
        boxes.append((left, top, left + width, top + height))


class Odd(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x.sum()

    @staticmethod
    def backward(ctx, *grads):
        return grads[0] * 2


def test_names_are_escaped():
    x = torch.ones(2, requires_grad=True)
    drawing = graph.draw(Odd.apply(x)[0], {'<x & "y\\">': x})
    assert '<x & "y\\">' in texts(drawing)
    assert 'label="<x & \\"y\\\\\\">\\nfloat32 (2,)"' in drawing.dot()
    assert "OddBackward" in texts(drawing)


def test_long_graphs_and_leaves():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y + 1
    assert len(graph.draw(y).dot().splitlines()) == 2 * 5002 + 2  # boxes, arrows and the frame
    assert texts(graph.draw(x)) == ["output", "float32 (1,)", "leaf", "float32 (1,)"]
    assert "AddBackward0" in graph.draw(y).svg()


def test_files(tmp_path):
    y = torch.ones(2, requires_grad=True).sum()
    drawing = graph.draw(y)
    drawing.save(tmp_path / "a.svg")
    drawing.save(str(tmp_path / "a.dot"))
    assert (tmp_path / "a.svg").read_text() == drawing.svg() == drawing._repr_svg_()
    assert (tmp_path / "a.dot").read_text() == drawing.dot()
    with pytest.raises(ValueError, match=r"ends in \.dot or \.svg, got path='a\.png'"):
        drawing.save("a.png")
    with pytest.raises(RuntimeError, match=r"has no graph, got tensors\[0\] of shape \(2,\)"):
        graph.draw(torch.ones(2))
