#!/usr/bin/env python3
"""Epochs of other systems on a directory of arrays, in the rows that `gdb bench train --json` prints.

    peers.py DIR --systems memory,mmap,pyg,pyg-mmap [--memory 1GiB] [--model none|sage|gcn|gat] [--fanout 10,10,10] ...

memory    DGL: graph and features in memory, dgl.dataloading.DataLoader over NeighborSampler. Not bounded.
mmap      arrays through memory maps advised for random access: GraphBolt samples from the mapped graph,
          threads copy rows of the mapped features, as users of PyG and DGL do with np.memmap.
pyg       PyG: graph and features in memory, torch_geometric.loader.NeighborLoader. Not bounded.
pyg-mmap  the same maps and threads as mmap, and PyG's sampler over the mapped graph: PyG+ of the Ginex paper.

DIR holds edges.npy (E,2), features.npy (N,d) float32, labels.npy (N) and train_idx.npy, as `gdb bench gen` writes
them; the plain CSC arrays are made once and kept there. With --memory, mmap and pyg-mmap run in a memory cgroup of that
size, which needs the right to make one. Files begin out of the page cache. Figures are means of all epochs, but for
last_epoch_s; "epochs" has those of each. Before an epoch nothing is loaded ahead but what memory and pyg have resident.
"""
import argparse
import importlib
import json
import mmap
import os
import platform
import subprocess
import sys
import time

from cgroup import Group

FIELDS = ("system memory_bytes epoch_s last_epoch_s batch_s batches nodes edges open_s total_s sample_s gather_s compute_s io_wait_s "
          "bytes_read hit_ratio peak_rss_bytes cgroup_peak_bytes").split()
SYSTEMS = {"memory": "dgl-memory", "mmap": "dgl-mmap", "pyg": "pyg", "pyg-mmap": "pyg-mmap"}
MAPPED = ("mmap", "pyg-mmap")


def size(text):
    units = {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
    for unit, factor in units.items():
        if text.lower().endswith(unit):
            return int(float(text[:-len(unit)]) * factor)
    return int(float(text))


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir")
    p.add_argument("--systems", default="memory,mmap")
    p.add_argument("--memory", type=size, default=0)
    p.add_argument("--model", choices=["none", "sage", "gcn", "gat"], default="none")
    p.add_argument("--fanout", default="10,10,10")
    p.add_argument("--heads", type=int, default=4, help="of gat")
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--dropout", type=float, default=0.5)
    p.add_argument("--batch", type=int, default=1000)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--workers", type=int, default=0, help="processes that sample ahead; 0: the training process samples")
    p.add_argument("--readers", type=int, default=16, help="threads that gather from the map: each waits for a fault")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--child", help=argparse.SUPPRESS)
    return p.parse_args()


# The parent: one process for each system.

def drop(path):
    """Takes a file out of the page cache."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def measure(a, system):
    row, why, group = dict.fromkeys(FIELDS), [], None
    row["system"] = SYSTEMS[system]
    if system not in MAPPED or not a.memory:
        why.append("memory_bytes: not bounded")
    else:
        row["memory_bytes"] = a.memory
        try:
            group = Group(a.memory)
        except OSError as e:
            why.append("not in a cgroup, so the page cache is not bounded: %s" % e)
    for name in os.listdir(a.dir):
        if name.endswith(".npy"):
            drop(os.path.join(a.dir, name))
    out = subprocess.run([sys.executable] + sys.argv + ["--child", system], stdout=subprocess.PIPE, text=True,
                         preexec_fn=group.join if group else None)
    if group:
        row["cgroup_peak_bytes"] = group.peak()
        group.remove()
    if out.returncode == -9:
        why.append("killed: out of memory, if nobody else did")
    elif out.returncode:
        why.append("the process ended with %d" % out.returncode)
    else:
        measured = json.loads(out.stdout.splitlines()[-1])
        why += measured.pop("why")
        row.update(measured)
    row["why"] = "; ".join(why)
    return row


# The child.

def make_csc(root):
    """Writes in-neighbor lists as csc_indptr.npy and csc_indices.npy, 24 bytes an edge of memory."""
    import numpy as np
    if os.path.exists(root + "/csc_indices.npy"):
        return
    edges = np.load(root + "/edges.npy", mmap_mode="r")
    nodes = len(np.load(root + "/labels.npy", mmap_mode="r"))
    dst = np.ascontiguousarray(edges[:, 1])
    np.save(root + "/csc_indptr.npy", np.concatenate([[0], np.cumsum(np.bincount(dst, minlength=nodes))]))
    order = np.argsort(dst, kind="stable")
    np.save(root + "/csc_part.npy", edges[:, 0][order].astype(np.int64))
    os.rename(root + "/csc_part.npy", root + "/csc_indices.npy")


def resident(path):
    import numpy as np
    import torch
    return torch.from_numpy(np.load(path))


def mapped(path):
    import numpy as np
    import torch
    array = np.load(path, mmap_mode="c")
    array._mmap.madvise(mmap.MADV_RANDOM)
    return torch.from_numpy(array)


def counter(path, key):
    with open(path) as f:
        for line in f:
            if line.startswith(key):
                return int(line.split()[1])
    raise OSError("%s has no %s" % (path, key))


class Dgl:
    """DGL's sampler over a graph in memory. Batches are (input nodes, seeds, what a model needs, edges)."""

    def __init__(self, a, fanout, load):
        import dgl
        import torch
        self.dropout = a.dropout
        indptr, indices = load(a.dir + "/csc_indptr.npy"), load(a.dir + "/csc_indices.npy")
        graph = dgl.graph(("csc", (indptr, indices, torch.tensor([], dtype=torch.int64))))
        sampler = dgl.dataloading.NeighborSampler(fanout[::-1])  # DGL counts from the outermost hop
        self.loader = dgl.dataloading.DataLoader(graph.formats("csc"), resident(a.dir + "/train_idx.npy"), sampler,
                                                 batch_size=a.batch, shuffle=True, num_workers=a.workers)

    def batches(self):
        for inputs, seeds, blocks in self.loader:
            yield inputs, seeds, blocks, sum(b.num_edges() for b in blocks)

    def layer(self, model, width, out, heads):
        """A layer. gcn and gat have self loops in gdb: DGL's users add them to the graph; without them DGL does less."""
        import dgl.nn
        if model == "gcn":
            return dgl.nn.GraphConv(width, out, norm="both", allow_zero_in_degree=True)
        if model == "gat":
            return dgl.nn.GATConv(width, out // heads if out % heads == 0 else out, heads, attn_drop=self.dropout,
                                  allow_zero_in_degree=True)
        return dgl.nn.SAGEConv(width, out, "mean")

    def blocks(self, batch):
        return batch

    def apply(self, layer, block, x):
        return layer(block, x)


class GraphBolt(Dgl):
    """DGL's newer sampler, which can read the arrays of a memory map."""

    def __init__(self, a, fanout, load):
        import dgl.graphbolt as gb
        self.dropout = a.dropout
        graph = gb.fused_csc_sampling_graph(load(a.dir + "/csc_indptr.npy"), load(a.dir + "/csc_indices.npy"))
        items = gb.ItemSet(resident(a.dir + "/train_idx.npy"), names="seed_nodes")
        pipe = gb.ItemSampler(items, batch_size=a.batch, shuffle=True).sample_neighbor(graph, fanout[::-1])
        self.loader = gb.DataLoader(pipe, num_workers=a.workers)

    def batches(self):
        for b in self.loader:
            yield b.input_nodes, b.seed_nodes, b, sum(len(s.sampled_csc.indices) for s in b.sampled_subgraphs)

    def blocks(self, batch):
        return batch.blocks


class Pyg:
    """PyG's sampler, which samples a node once. Rows of the sparse tensor are nodes, its columns their in-neighbors."""

    def __init__(self, a, fanout, load):
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader
        from torch_geometric.sampler import NeighborSampler
        from torch_sparse import SparseTensor
        indptr, indices = load(a.dir + "/csc_indptr.npy"), load(a.dir + "/csc_indices.npy")
        nodes = len(indptr) - 1
        # Trusted, or it would read a mapped graph to check it.
        graph = Data(num_nodes=nodes, adj_t=SparseTensor(rowptr=indptr, col=indices, sparse_sizes=(nodes, nodes),
                                                         is_sorted=True, trust_data=True))
        # Not shared: workers are forks that have the graph, and sharing would copy a mapped one into memory.
        sampler = NeighborSampler(graph, fanout, share_memory=False)
        self.loader = NeighborLoader(graph, fanout, input_nodes=resident(a.dir + "/train_idx.npy"), neighbor_sampler=sampler,
                                     batch_size=a.batch, shuffle=True, num_workers=a.workers, filter_per_worker=True)
        self.hops = len(fanout)

    def batches(self):
        for b in self.loader:
            yield b.n_id, b.n_id[:b.batch_size], b, b.adj_t.nnz()

    def layer(self, model, width, out, heads):
        from torch_geometric.nn import SAGEConv
        if model != "sage":
            sys.exit("PyG is measured with sage only")
        return SAGEConv(width, out, "mean")

    def blocks(self, batch):
        """What each layer needs of the batch. Nodes are ordered by hop, and so are their lists of in-neighbors."""
        from torch_sparse import SparseTensor
        indptr, indices, _ = batch.adj_t.csr()
        blocks, outputs = [], batch.batch_size
        for _ in range(self.hops):
            edges = int(indptr[outputs])
            inputs = max(outputs, int(indices[:edges].max()) + 1) if edges else outputs
            blocks.append(SparseTensor(rowptr=indptr[:outputs + 1], col=indices[:edges], sparse_sizes=(outputs, inputs),
                                       is_sorted=True, trust_data=True))
            outputs = inputs
        return blocks[::-1]

    def apply(self, layer, block, x):
        return layer((x, x[:block.size(0)]), block)


class ResidentRows:
    def __init__(self, a):
        self.features = resident(a.dir + "/features.npy")

    def gather(self, inputs):
        return self.features[inputs]


class MappedRows:
    """Rows copied out of a memory map."""

    def __init__(self, a):
        from concurrent.futures import ThreadPoolExecutor
        self.readers, self.pool = a.readers, ThreadPoolExecutor(a.readers)
        self.features = mapped(a.dir + "/features.npy").numpy()

    def gather(self, inputs):
        """Copies rows with many threads; take releases the interpreter, and with mode clip it copies in place."""
        import torch
        ids, x = inputs.numpy(), torch.empty((len(inputs), self.features.shape[1]))
        out, cuts = x.numpy(), [len(ids) * i // self.readers for i in range(self.readers + 1)]
        parts = zip(cuts, cuts[1:])
        list(self.pool.map(lambda p: self.features.take(ids[p[0]:p[1]], 0, out[p[0]:p[1]], "clip"), parts))
        return x


class Step:
    """The training step: layers, ReLU (ELU for gat), dropout, softmax cross-entropy, Adam. Heads of gat stand beside each
    other, and are averaged in the last layer."""

    def __init__(self, a, fanout, sampler):
        import torch
        self.torch, self.sampler, self.dropout = torch, sampler, a.dropout
        self.labels = resident(a.dir + "/labels.npy").to(torch.int64)
        dim = mapped(a.dir + "/features.npy").shape[1]
        widths = [dim] + [a.hidden] * (len(fanout) - 1) + [int(self.labels.max()) + 1]
        self.model, self.last = a.model, len(fanout) - 1
        self.layers = torch.nn.ModuleList(self.layer(a, i, *w) for i, w in enumerate(zip(widths, widths[1:])))
        self.optimizer = torch.optim.Adam(self.layers.parameters(), lr=0.003)

    def layer(self, a, i, width, out):
        if self.model == "gat" and i == self.last:
            import dgl.nn
            return dgl.nn.GATConv(width, out, a.heads, attn_drop=a.dropout, allow_zero_in_degree=True)
        return self.sampler.layer(self.model, width, out, a.heads)

    def step(self, batch, x, seeds):
        f = self.torch.nn.functional
        activation = f.elu if self.model == "gat" else f.relu
        for i, (layer, block) in enumerate(zip(self.layers, self.sampler.blocks(batch))):
            x = self.sampler.apply(layer, block, f.dropout(x if i == 0 else activation(x), self.dropout))
            if self.model == "gat":
                x = x.mean(1) if i == self.last else x.flatten(1)
        self.optimizer.zero_grad(set_to_none=True)
        loss = f.cross_entropy(x, self.labels[seeds], ignore_index=-1)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def epoch(sampler, rows, model):
    """Runs an epoch; the times of its parts do not overlap: with workers, sample_s is the wait for them."""
    t = dict(sample_s=0.0, gather_s=0.0, compute_s=0.0, batches=0, nodes=0, edges=0)
    loss, trained = 0.0, 0
    begun = last = time.perf_counter()
    for inputs, seeds, batch, edges in sampler.batches():
        sampled = time.perf_counter()
        x = rows.gather(inputs)
        gathered = time.perf_counter()
        if model:
            loss += model.step(batch, x, seeds) * len(seeds)
            trained += len(seeds)
        del x
        t["sample_s"] += sampled - last
        t["gather_s"] += gathered - sampled
        last = time.perf_counter()
        t["compute_s"] += last - gathered
        t["batches"] += 1
        t["nodes"] += len(inputs)
        t["edges"] += edges
    t["epoch_s"] = time.perf_counter() - begun
    t["batch_s"] = t["epoch_s"] / t["batches"]
    if model:
        t["loss"] = loss / trained
    return t


def versions(system):
    """Imports what the system needs, so that this is not counted as opening."""
    pyg = ("torch_geometric", "torch_geometric.loader", "torch_geometric.nn", "torch_sparse", "torch")
    names = pyg if system.startswith("pyg") else ("dgl", "dgl.graphbolt", "dgl.nn", "torch")
    modules = {name: importlib.import_module(name) for name in names}
    used = {name: m.__version__ for name, m in modules.items() if "." not in name}
    if system.startswith("pyg"):  # torch_geometric imports pyg-lib where it is, and samples with it, else with torch-sparse
        used["pyg_lib"] = sys.modules["pyg_lib"].__version__ if "pyg_lib" in sys.modules else None
    return used


def open_system(a, fanout):
    load, rows = (mapped, MappedRows) if a.child in MAPPED else (resident, ResidentRows)
    sampler = {"memory": Dgl, "mmap": GraphBolt, "pyg": Pyg, "pyg-mmap": Pyg}[a.child]
    return sampler(a, fanout, load), rows(a)


def child(a):
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
    used = versions(a.child)
    import torch
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    if "dgl" in used:
        sys.modules["dgl"].seed(a.seed)
    fanout = [int(n) for n in a.fanout.split(",")]
    begun = time.perf_counter()
    sampler, rows = open_system(a, fanout)
    opened = time.perf_counter() - begun
    model = Step(a, fanout, sampler) if a.model != "none" else None
    epochs = []
    for _ in range(a.epochs):
        before = counter("/proc/self/io", "read_bytes:")
        epochs.append(epoch(sampler, rows, model))
        epochs[-1]["bytes_read"] = counter("/proc/self/io", "read_bytes:") - before
    print(json.dumps(summary(a, epochs, dict(open_s=opened, versions=used))))


def summary(a, epochs, row):
    row.update((name, sum(e[name] for e in epochs) / len(epochs)) for name in epochs[0] if name != "loss")
    row.update((name, int(row[name])) for name in ("batches", "nodes", "edges", "bytes_read"))
    row["total_s"] = row["open_s"] + sum(e["epoch_s"] for e in epochs)
    row.update(last_epoch_s=epochs[-1]["epoch_s"], epochs=epochs, peak_rss_bytes=counter("/proc/self/status", "VmHWM:") << 10)
    row["why"] = ["io_wait_s, hit_ratio: known to the kernel alone"]
    if a.workers:
        row["why"].append("peak_rss_bytes: without the workers")
    if a.model == "none":
        row["compute_s"] = None
        row["why"].append("compute_s: no model")
    return row


def main():
    a = arguments()
    if a.child:
        return child(a)
    unknown = set(a.systems.split(",")) - set(SYSTEMS)
    if unknown:
        sys.exit("unknown systems: %s" % ", ".join(sorted(unknown)))
    make_csc(a.dir)
    rows = [measure(a, s) for s in a.systems.split(",")]
    machine = dict(cpu=platform.processor() or platform.machine(), cores=os.cpu_count(), os=platform.platform())
    print(json.dumps(dict(bench="train", machine=machine, rows=rows)))


main()
