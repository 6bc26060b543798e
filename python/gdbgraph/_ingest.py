"""Makes stores of graphs that are in memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _binary
from ._arrays import Arrays, of_data
from ._frames import Frames
from ._tables import Tables, of_frames, of_hetero
from ._wire import GdbError

#: What the arguments of a graph belong to.
_OF_ARRAYS = ("edge_type", "edge_weight", "edge_time", "num_nodes", "x", "y")
_OF_FRAMES = ("nodes", "source_column", "target_column", "type_column", "weight_column",
              "time_column", "id_column", "label_column")


def ingest(out: str | os.PathLike[str], data: Any = None, *, edge_index: Any = None,
           edge_type: Any = None, edge_weight: Any = None, edge_time: Any = None,
           num_nodes: int | None = None, x: Any = None, y: Any = None,
           splits: Mapping[str, Any] | None = None, edges: Any = None, nodes: Any = None,
           source_column: str | None = None, target_column: str | None = None,
           type_column: str | None = None, weight_column: str | None = None,
           time_column: str | None = None, id_column: str | None = None,
           label_column: str | None = None, undirected: bool = False, memory: str | None = None,
           options: Sequence[str] = ()) -> str:
    """Makes a store at ``out`` and returns its path. The graph is one of:

    - ``data``: a PyG ``Data`` with edge_index or adj_t, and edge_type, edge_weight, edge_time (or a
      time for each edge), num_nodes, x, y, train_mask, val_mask and test_mask where it has them.
      edge_attr and times of nodes are refused; other attributes are not stored, and a warning names
      them;
    - ``edge_index`` (2, E) integers, with ``edge_type`` (E,) integers, ``edge_weight`` (E,) numbers,
      ``edge_time`` (E,) seconds, ``num_nodes``, ``x`` (N, D), which may be sparse, ``y`` (N,) and
      ``splits``: for train, val and test ids or masks of N; tensors or arrays. Nodes are numbered
      as the rows;
    - ``edges`` and ``nodes``, DataFrames, with ids of any kind. The ends of edges are columns with a
      usual name (source and target, src and dst, …), else the first two; a type, a weight and a
      time are taken by their name too (type, weight, time, …), and all by ``source_column``,
      ``target_column``, ``type_column``, ``weight_column`` and ``time_column``; other columns of
      edges are stored, with gaps, as bool, int64, float64, date, timestamp or text. Of nodes
      ``id_column`` (default: id) and ``label_column`` (default: label, class or y) are what they
      say, a column ``split`` has train, val or test, train_mask and the like are masks, and
      other columns of numbers are features. A warning names columns that are not stored. ``splits``
      may have ids or masks of the rows of nodes. The store keeps the ids: ``Store.node_ids`` and
      ``Store.external_ids`` translate;
    - a graph with types, by pyarrow: ``data``, a PyG ``HeteroData`` (x, y, masks; edge_weight,
      edge_time or time and edge_attr of edges; what has a number or a text for each node or edge is
      a column), or ``edges``, ``{("user", "buys", "item"): frame}``, and ``nodes``,
      ``{"user": frame}``, whose ids are the column ``id_column``, id or user_id. ``label_column``
      is TYPE.COLUMN, and may be left out if one type alone has y. Features are stored as they are.

    Edges go from source to target, and a node draws from the sources of its edges; ``undirected``
    adds the reverse of each. ``options`` are flags of ``gdb ingest``, such as "--dedup". What is in
    the arrays is written to a temporary directory beside ``out`` first: files that are on disk
    already need no detour, ``gdb ingest`` takes them. What gdb notices arrives as warnings. A
    ``ValueError`` says which argument is wrong and where, a ``GdbError`` what gdb could not do.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    kind = _kind(given)
    if isinstance(options, str):
        raise ValueError(f"options {options!r}: want a list of flags, such as [\"--dedup\"]")
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as name:
        folder = Path(name)
        if kind == "edges" and isinstance(edges, Mapping):
            graph: Arrays | Frames | Tables = of_frames(nodes, edges, {
                "id": id_column, "label": label_column, "source": source_column,
                "target": target_column, "weight": weight_column, "time": time_column})
        elif _is_hetero(data):
            graph = of_hetero(data, label_column)
        elif kind == "edges":
            graph = Frames(
                edges, nodes, source=source_column, target=target_column, kind=type_column,
                weight=weight_column, time=time_column, node=id_column, label=label_column,
                typed=True)
        else:
            graph = of_data(data) if kind == "data" else Arrays(
                edge_index=edge_index, edge_type=edge_type, edge_weight=edge_weight,
                edge_time=edge_time, num_nodes=num_nodes, x=x, y=y)
        graph.splits.update(splits or {})
        flags = graph.write(folder)
        if graph.unused:
            warnings.warn(f"not stored: {', '.join(graph.unused)}", stacklevel=2)
        if undirected:
            flags.append("--undirected")
        if memory is not None:
            flags.append(f"--memory={memory}")
        run([_binary.find(), "ingest", *flags, "--out", str(out), "--log=json",
             *map(str, options)], folder, graph.names)
    return str(out)


def run(command: Sequence[str], folder: Path, names: Mapping[str, str]) -> str:
    """Runs gdb on files that were written to a folder, and returns what it printed. Notes become
    warnings of the caller's caller."""
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    said = [_in_python(line, folder, names) for line in _notes(done.stderr)]
    if done.returncode != 0:
        program = f"{Path(command[0]).name}: "  # it calls itself as it was called
        raise GdbError(said[-1].removeprefix(program) if said else f"exit code {done.returncode}")
    for line in said:
        if not _EXPECTED.search(line):
            warnings.warn(line.removeprefix("note: ").removeprefix("ingest: "), stacklevel=3)
    return done.stdout


def _kind(given: Mapping[str, Any]) -> str:
    """Which argument is the graph. Arguments of another kind of graph are an error."""
    kinds = [name for name in ("data", "edge_index", "edges") if name in given]
    if len(kinds) != 1:
        raise ValueError("give one of data, edge_index and edges, not "
                         f"{' and '.join(kinds) or 'none'}")
    (kind,) = kinds
    others = (*(_OF_FRAMES if kind != "edges" else ()),
              *(_OF_ARRAYS if kind != "edge_index" else ()))
    wrong = [name for name in others if name in given]
    if _is_hetero(given.get("data")):
        wrong = [name for name in wrong if name != "label_column"]
    if isinstance(given.get("edges"), Mapping) and "type_column" in given:
        raise ValueError("type_column beside edges by type: their keys are the types")
    if wrong:
        do = {"data": "set them in data, as data.x", "edges": "they are columns of the frames",
              "edge_index": "they are for DataFrames, edges and nodes"}[kind]
        raise ValueError(f"{', '.join(wrong)} beside {kind}: {do}")
    return kind


def _is_hetero(data: Any) -> bool:
    """Whether data is a HeteroData of PyG."""
    return "HeteroData" in (kind.__name__ for kind in type(data).__mro__)


#: Notes that say how files are read which this module has written.
_EXPECTED = re.compile(
    r"(is|are) read as (csv|npy|tables)$|the first line names the columns|ids are read as text, since")


def _notes(stderr: str) -> list[str]:
    """What gdb said, without progress."""
    said = []
    for line in stderr.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            event = {"event": "note", "text": line}
        if event.get("event") == "note" and event["text"].strip():
            said.append(" ".join(event["text"].split()))
    return said


#: Flags that are arguments of ``ingest``.
_ARGUMENTS = {"undirected": "undirected=True", "memory": "memory", "edges": "edges",
              "nodes": "nodes", "out": "out", "src-col": "source_column",
              "dst-col": "target_column", "rel-col": "type_column", "weight-col": "weight_column",
              "time-col": "time_column", "id-col": "id_column", "label-col": "label_column"}
#: Values of flags that messages name, which belong to the flag.
_VALUES = (r"(?:zero|mean(?:,indicator)?|error|yes|no|auto|none|row|zscore|degree|one-hot"
           r"|random[:=][\w/.]*|sum|min|max|last|user|item|T\b)")
_FLAG = re.compile(rf"(?<!gdb ingest )--([a-z][a-z-]*)(?:[ =]({_VALUES}|'[^']*'|\"[^\"]*\"))?")


def _in_python(text: str, folder: Path, names: Mapping[str, str]) -> str:
    """What gdb said of files and flags, of arguments of ``ingest``."""
    for file, argument in names.items():
        where = re.escape(str(folder / file))
        text = re.sub(rf"{where},? line (\d+)",
                      lambda m, of=argument: f"{of} row {int(m[1]) - 2}", text)
        text = text.replace(str(folder / file), argument)
    text = text.replace(f"{folder}{os.sep}", "").replace(str(folder), "the graph")

    def flag(m: re.Match[str]) -> str:
        if m[1] in _ARGUMENTS:
            return _ARGUMENTS[m[1]] + (f"={m[2]}" if m[2] else "")
        return f'options=["--{m[1]}{"=" + m[2] if m[2] else ""}"]'

    text = _FLAG.sub(flag, text)
    # Several options in a row are one list.
    while (joined := re.sub(r'options=\[([^]]*)\] options=\[', r"options=[\1, ", text)) != text:
        text = joined
    return text
