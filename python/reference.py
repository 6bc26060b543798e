"""Writes docs/python-reference.md from the docstrings of gdbgraph: python3 reference.py

It needs no torch. A test holds the page against what this would write.
"""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "python-reference.md"
#: What is documented, by file: functions, and classes with their public methods.
CONTENTS = {
    "__init__.py": ["open"], "_ingest.py": ["ingest"], "_append.py": ["append"],
    "store.py": ["Store", "Features"],
    "result.py": ["Result"],
    "loaders.py": ["NeighborLoader", "LinkNeighborLoader", "HGTLoader"],
    "lightning.py": ["NodeData", "LinkData"],
    "loader.py": ["Loader"], "link.py": ["LinkLoader"], "batch.py": ["Batch"],
    "run.py": ["load_run", "Model"], "pyg.py": ["stores", "StoreFeatures", "StoreGraph"],
    "_wire.py": ["GdbError", "ServerError", "BatchesHeldError", "DamagedError"],
}


def text(node: ast.AST) -> str:
    """A docstring as Markdown: names in single backticks, no roles."""
    said = ast.get_docstring(node) or ""  # type: ignore[arg-type]
    for role in (":class:", ":meth:"):
        said = said.replace(role, "")
    return said.replace("``", "`")


def signature(node: ast.FunctionDef) -> str:
    """A function as it is called, without self and without types."""
    args = node.args
    words = [a.arg for a in args.args]
    for i, default in enumerate(reversed(args.defaults)):
        words[-1 - i] += f"={ast.unparse(default)}"
    if args.vararg:
        words.append(f"*{args.vararg.arg}")
    elif args.kwonlyargs:
        words.append("*")
    for a, default in zip(args.kwonlyargs, args.kw_defaults):
        words.append(a.arg if default is None else f"{a.arg}={ast.unparse(default)}")
    if args.kwarg:
        words.append(f"**{args.kwarg.arg}")
    return f"{node.name}({', '.join(w for w in words if w != 'self')})"


def fields(source: list[str], node: ast.ClassDef) -> list[str]:
    """Attributes that have a comment of #: above them."""
    found: list[str] = []
    for i, line in enumerate(source[node.lineno : node.end_lineno]):
        name = line.strip().removeprefix("self.").split(":")[0].split(" = ")[0]
        above = []
        k = node.lineno + i - 1
        while k >= 0 and source[k].strip().startswith("#:"):
            above.insert(0, source[k].strip()[2:].strip())
            k -= 1
        if above and name.isidentifier():
            found.append(f"- `{name}`: {' '.join(above)}")
    return found


def page() -> str:
    """The whole page."""
    out = ["# The Python package, name by name", "",
           "Written by `python/reference.py` from the docstrings; [python.md](python.md) is the way "
           "in.", ""]
    for file, names in CONTENTS.items():
        whole = (HERE / "gdbgraph" / file).read_text()
        nodes = {n.name: n for n in ast.parse(whole).body
                 if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        module = {"pyg.py": "gdbgraph.pyg.", "run.py": "gdbgraph.run.",
                  "lightning.py": "gdbgraph.lightning."}.get(file, "gdbgraph.")
        for name in names:
            node = nodes[name]
            if isinstance(node, ast.FunctionDef):
                out += [f"## `{module}{signature(node)}`", "", text(node), ""]
                continue
            out += [f"## `{module}{name}`", "", text(node), ""]
            out += [*fields(whole.split("\n"), node), ""]
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and ast.get_docstring(method) and (
                        method.name[0] != "_" or method.name in ("__getitem__", "__len__")):
                    out += [f"### `{name}.{signature(method)}`", "", text(method), ""]
    lines = "\n".join(out).split("\n")
    return "\n".join(a for a, b in zip(lines, [None, *lines]) if a or b) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
