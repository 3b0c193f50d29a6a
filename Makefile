# Needs Python 3.11 or newer with venv, and a C++17 compiler; everything else is installed into .venv and .nox.
PYTHON ?= python3
export PIP_DISABLE_PIP_VERSION_CHECK := 1
NOX := .venv/bin/nox

.PHONY: demo test bench clean

demo: $(NOX)  ## train a network on real images; DEVICE=opencl on that device
	$(NOX) -s demo $(if $(DEVICE),-- --device=$(DEVICE))

test: $(NOX)  ## everything that CI runs on this machine's Python, 25 minutes at most on two cores
	$(NOX)

bench: $(NOX)  ## compare with PyTorch
	$(NOX) -s bench

clean:
	rm -rf .nox build dist

$(NOX):
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q "nox>=2025.5.1"
