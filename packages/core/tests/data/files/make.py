"""Writes the files beside it with the PyTorch that runs it: python make.py"""

import torch

version = "".join(torch.__version__.split(".")[:2])
integers = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool)
floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)
base = torch.arange(12.0).reshape(3, 4)
obj = {
    "dtypes": {str(dtype): torch.arange(6).reshape(2, 3).to(dtype) for dtype in integers + floats},
    "base": base,
    "part": base[1:, ::2],
    "turned": base.t(),
    "leaf": torch.ones(2, requires_grad=True),
    "state": torch.nn.Sequential(torch.nn.Linear(2, 3)).state_dict(),
    "number": torch.tensor(3.5),
    "empty": torch.empty(0, 3),
    "plain": [1, (2, 3), {"k": None}, 2**80, 1.5, "ü"],
    "size": torch.Size([2]),
    "dtype": torch.bfloat16,
}
if hasattr(torch.Tensor, "is_conj"):
    obj["conj"] = torch.tensor([1 + 2j]).conj()
torch.save(obj, f"zip_{version}.pt")
torch.save(obj, f"legacy_{version}.pt", _use_new_zipfile_serialization=False)
