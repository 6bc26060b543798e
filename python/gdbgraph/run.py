"""Models that ``gdb train`` has trained, as modules of PyTorch Geometric."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import elu, relu
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from . import _binary
from ._wire import DamagedError, GdbError

_DAMAGED = 3  # the exit code of gdb where files are damaged
#: Settings that change what a layer is, and are not those of the modules here.
_REFUSED = ("residual", "norm", "activation", "edge_weight", "node_embedding", "precompute",
            "input_features")


class Model(torch.nn.Module):
    """Layers of a trained model: ``model(x, edge_index)`` are logits, (N, classes) float32.

    x has features as they are stored, as ``Store.features`` has them and a loader with
    ``normalize="none"``: the model scales them as the run did. Over all nodes and edges the logits
    are those of ``gdb predict``; over a batch, of what it has of the lists. Dropout is not among
    the layers.
    """

    def __init__(self, layers: list[torch.nn.Module],
                 activation: Callable[[torch.Tensor], torch.Tensor], loops: bool,
                 normalize: str = "none", scale: dict[str, list[float]] | None = None) -> None:
        super().__init__()
        #: How features are scaled: none, row or zscore.
        self.normalize = normalize
        for name in ("mean", "inverse"):
            values = torch.tensor(scale[name]) if scale else None
            self.register_buffer(name, values, persistent=False)
        self.layers = torch.nn.ModuleList(layers)
        self.activation = activation
        self.loops = loops  # each node is a neighbor of itself once more, as gdb has it

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """x is (N, D) float32, edge_index (2, E) int64 from neighbor to node."""
        x = self._scaled(x)
        if self.loops:
            nodes = torch.arange(len(x), device=edge_index.device)
            edge_index = torch.cat([edge_index, nodes.expand(2, -1)], 1)
        for i, layer in enumerate(self.layers):
            if i:
                x = self.activation(x)
            x = layer(x, edge_index)
        return x

    def _scaled(self, x: torch.Tensor) -> torch.Tensor:
        """Features as the run had them."""
        already = getattr(x, "gdb_normalize", "none")
        if already != "none":
            raise ValueError(f"these features are scaled already ({already}), and the model of a "
                             f"run wants them as they are stored, to scale them ({self.normalize}): "
                             'take a loader with normalize="none"')
        if self.normalize == "none":
            return x
        if self.normalize == "row":
            sums = x.sum(1, keepdim=True)
            return x / torch.where(sums == 0, torch.ones_like(sums), sums)
        return (x - self.mean) * self.inverse


def load_run(store: str | os.PathLike[str], run: str) -> Model:
    """The model of a run of a store, with its best weights, in evaluation mode.

    Models sage, gcn and gat are known, as they are without options that change their layers; a
    ``ValueError`` says what stands against another. A run that is not there is a
    ``FileNotFoundError``.
    """
    folder = Path(store) / "runs" / run
    if not (folder / "run.json").exists():
        raise FileNotFoundError(f"{store} has no run {run}: it has {_runs(Path(store))}")
    about = json.loads((folder / "run.json").read_text())
    if about.get("link"):
        raise ValueError(f"run {run} predicts links: gdb embed writes its vectors, and load_run "
                         "knows models of nodes")
    config = about["config"]
    for name in _REFUSED:
        if config.get(name) not in (None, "", False, 0, "none", "auto", []):
            raise ValueError(f"run {run} has {name} {config[name]}: load_run knows no such model")
    normalize, scale = config.get("normalize") or "none", config.get("scale")
    if normalize not in ("none", "row") and (normalize != "zscore" or not scale):
        raise ValueError(f"run {run} scales its features as {normalize}, which load_run does not "
                         "know")
    if config["model"] not in _LAYERS:
        raise ValueError(f"run {run} is a {config['model']}: load_run knows {', '.join(_LAYERS)}")
    make, activation = _LAYERS[config["model"]]
    weights, count = _exported(store, run), len(about["dims"]) - 1
    try:
        layers = [make(_Layer(weights, i), config, i == count) for i in range(1, count + 1)]
    except KeyError as error:
        raise GdbError(f"run {run} has no weights {error}: this package and the gdb of the run are "
                       "of different versions") from None
    if weights:
        raise GdbError(f"run {run} has weights {', '.join(weights)}, and the model has none such: "
                       "this package and the gdb of the run are of different versions")
    return Model(layers, activation, config["model"] != "sage", normalize, scale).eval()


def _runs(store: Path) -> str:
    """The names of the runs of a store."""
    return ", ".join(sorted(p.parent.name for p in store.glob("runs/*/run.json"))) or "none"


def _exported(store: str | os.PathLike[str], run: str) -> dict[str, torch.Tensor]:
    """The best weights of a run, by their names, as ``gdb runs export`` writes them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.safetensors")
        done = subprocess.run(
            [_binary.find(), "runs", os.fspath(store), "export", run, "--out", str(path),
             "--quiet"],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            kind = DamagedError if done.returncode == _DAMAGED else GdbError
            raise kind(done.stderr.strip() or f"exit code {done.returncode}")
        for note in done.stderr.splitlines():  # such as that an older checkpoint was taken
            warnings.warn(note, stacklevel=3)
        data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    entries = json.loads(data[8 : 8 + length])
    entries.pop("__metadata__")
    values = np.frombuffer(data, "<f4", offset=8 + length)
    return {name: torch.from_numpy(values[e["data_offsets"][0] // 4 : e["data_offsets"][1] // 4]
                                   .reshape(e["shape"]).copy())
            for name, e in entries.items()}


class _Layer:
    """The weights of a layer, each of which is taken once."""

    def __init__(self, weights: dict[str, torch.Tensor], number: int) -> None:
        self._weights, self._name = weights, f"layer {number} "

    def take(self, name: str) -> torch.Tensor:
        return self._weights.pop(self._name + name)


def _sage(w: _Layer, config: dict[str, Any], last: bool) -> SAGEConv:
    own, neighbors, bias = w.take("self"), w.take("neighbors"), w.take("bias")
    layer = SAGEConv(*own.shape, aggr=config.get("aggregate") or "mean")
    with torch.no_grad():
        layer.lin_r.weight.copy_(own.T)
        layer.lin_l.weight.copy_(neighbors.T)
        layer.lin_l.bias.copy_(bias[0])
    return layer


def _gcn(w: _Layer, config: dict[str, Any], last: bool) -> GCNConv:
    if config.get("aggregate") not in (None, "", "sum"):
        raise ValueError(f"a gcn with aggregate {config['aggregate']}: load_run knows sum")
    weights = w.take("weights")
    layer = GCNConv(*weights.shape, add_self_loops=False)
    with torch.no_grad():
        layer.lin.weight.copy_(weights.T)
        layer.bias.copy_(w.take("bias")[0])
    return layer


def _gat(w: _Layer, config: dict[str, Any], last: bool) -> GATConv:
    weights, sources = w.take("weights"), w.take("attention of sources")
    each, heads = sources.shape
    layer = GATConv(len(weights), each, heads=heads, concat=not last, add_self_loops=False)
    linear = getattr(layer, "lin_src", None)
    linear = layer.lin if linear is None else linear
    with torch.no_grad():
        linear.weight.copy_(weights.T)
        layer.att_src.copy_(sources.T[None])
        layer.att_dst.copy_(w.take("attention of targets").T[None])
        layer.bias.copy_(w.take("bias")[0])
    return layer


_LAYERS = {"sage": (_sage, relu), "gcn": (_gcn, relu), "gat": (_gat, elu)}
