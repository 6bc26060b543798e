"""Models that ``gdb train`` has trained, as modules of PyTorch Geometric."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import elu, relu
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from ._wire import DamagedError, GdbError

_HEADER_BYTES, _FIELDS_AT = 4096, 36  # of the header of a file of gdb
_ALIGN = 16  # values to which a parameter is padded
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
    config, dims = about["config"], about["dims"]
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
    weights = _Weights(folder)
    layers = [make(weights, config, width, out, i == len(dims) - 2)
              for i, (width, out) in enumerate(zip(dims, dims[1:]))]
    weights.finish()
    return Model(layers, activation, config["model"] != "sage", normalize, scale).eval()


def _runs(store: Path) -> str:
    """The names of the runs of a store."""
    return ", ".join(sorted(p.parent.name for p in store.glob("runs/*/run.json"))) or "none"


class _Weights:
    """The parameters of the current checkpoint, in their order."""

    def __init__(self, folder: Path) -> None:
        self._name = folder / (folder / "CURRENT").read_text().split()[0] / "state"
        arrays = dict(_arrays(self._name))
        values = arrays.get("best weights", arrays.get("weights"))
        if values is None:
            raise DamagedError(f"{self._name} has no weights")
        self._values, self._at = values, 0

    def take(self, rows: int, cols: int) -> torch.Tensor:
        """The next parameter, (rows, cols)."""
        end = self._at + rows * cols
        if end > len(self._values):
            raise DamagedError(f"{self._name} has {len(self._values)} values: the model has more")
        found = self._values[self._at : end].reshape(rows, cols)
        self._at += -(-rows * cols // _ALIGN) * _ALIGN
        return torch.from_numpy(found.copy())

    def finish(self) -> None:
        """All were taken: a model with others would be another."""
        if self._at != len(self._values):
            raise GdbError(f"{self._name} has {len(self._values)} values, the model {self._at}: "
                           "this package and the gdb of the run are of different versions")


def _arrays(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of a checkpoint: train/runs has the format."""
    data = path.read_bytes()
    if data[4:8] != b"GDBF":
        raise DamagedError(f"{path} is no file of gdb")
    text_bytes, _, count = struct.unpack_from("<III", data, _FIELDS_AT)
    at, place = _FIELDS_AT + 12, _HEADER_BYTES + text_bytes
    for _ in range(count):
        (length,) = struct.unpack_from("<I", data, at)
        name = data[at + 4 : at + 4 + length].decode()
        (values, _) = struct.unpack_from("<QI", data, at + 4 + length)
        at += 4 + length + 12
        if place + 4 * values > len(data):
            raise DamagedError(f"{path} ends before its values of {name}")
        yield name, np.frombuffer(data, "<f4", values, place)
        place += 4 * values


def _sage(w: _Weights, config: dict[str, Any], width: int, out: int, last: bool) -> SAGEConv:
    layer = SAGEConv(width, out, aggr=config.get("aggregate") or "mean")
    with torch.no_grad():
        layer.lin_r.weight.copy_(w.take(width, out).T)
        layer.lin_l.weight.copy_(w.take(width, out).T)
        layer.lin_l.bias.copy_(w.take(1, out)[0])
    return layer


def _gcn(w: _Weights, config: dict[str, Any], width: int, out: int, last: bool) -> GCNConv:
    if config.get("aggregate") not in (None, "", "sum"):
        raise ValueError(f"a gcn with aggregate {config['aggregate']}: load_run knows sum")
    layer = GCNConv(width, out, add_self_loops=False)
    with torch.no_grad():
        layer.lin.weight.copy_(w.take(width, out).T)
        layer.bias.copy_(w.take(1, out)[0])
    return layer


def _gat(w: _Weights, config: dict[str, Any], width: int, out: int, last: bool) -> GATConv:
    heads = config.get("heads") or 4
    each = out if last else out // heads
    layer = GATConv(width, each, heads=heads, concat=not last, add_self_loops=False)
    linear = getattr(layer, "lin_src", None)
    linear = layer.lin if linear is None else linear
    with torch.no_grad():
        linear.weight.copy_(w.take(width, heads * each).T)
        layer.att_src.copy_(w.take(each, heads).T[None])
        layer.att_dst.copy_(w.take(each, heads).T[None])
        layer.bias.copy_(w.take(1, out)[0])
    return layer


_LAYERS = {"sage": (_sage, relu), "gcn": (_gcn, relu), "gat": (_gat, elu)}
