#!/usr/bin/env python3
"""Epochs of other systems on a directory of arrays, in the rows that `gdb bench train --json` prints.

    peers.py DIR --systems memory,mmap [--memory 1GiB] [--model none|sage] [--fanout 10,10,10] [--batch 1000] ...

memory  DGL: graph and features in memory, dgl.dataloading.DataLoader over NeighborSampler. Not bounded.
mmap    arrays through memory maps advised for random access: GraphBolt samples from the mapped graph,
        threads copy rows of the mapped features, as users of PyG and DGL do with np.memmap.

DIR holds edges.npy (E,2), features.npy (N,d) float32, labels.npy (N) and train_idx.npy, as `gdb bench gen` writes
them; the plain CSC arrays are made once and kept there. With --memory, mmap runs in a memory cgroup of that size, which
needs the right to make one. Files begin out of the page cache. Figures are means of all epochs, but for last_epoch_s;
"epochs" has those of each. Before an epoch nothing is loaded ahead but what "memory" has resident.
"""
import argparse
import json
import mmap
import os
import platform
import subprocess
import sys
import time

FIELDS = ("system memory_bytes epoch_s last_epoch_s batch_s batches open_s sample_s gather_s compute_s io_wait_s bytes_read hit_ratio "
          "peak_rss_bytes cgroup_peak_bytes").split()


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
    p.add_argument("--model", choices=["none", "sage"], default="none")
    p.add_argument("--fanout", default="10,10,10")
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--dropout", type=float, default=0.5)
    p.add_argument("--batch", type=int, default=1000)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--readers", type=int, default=16, help="threads that gather from the map: each waits for a fault")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--child", help=argparse.SUPPRESS)
    return p.parse_args()


# The parent: one process for each system.

class Group:
    """A memory cgroup of v1 or v2."""

    def __init__(self, limit):
        v1 = os.path.isdir("/sys/fs/cgroup/memory")
        self.dir = "/sys/fs/cgroup/%sgdb-peers-%d" % ("memory/" if v1 else "", os.getpid())
        self.peak_file = "memory.max_usage_in_bytes" if v1 else "memory.peak"
        os.mkdir(self.dir)
        self.write("memory.limit_in_bytes" if v1 else "memory.max", limit)
        if not v1:
            self.write("memory.swap.max", 0)

    def write(self, name, value):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(str(value))

    def join(self):
        self.write("cgroup.procs", os.getpid())

    def peak(self):
        with open(os.path.join(self.dir, self.peak_file)) as f:
            return int(f.read())

    def remove(self):
        for _ in range(50):
            try:
                return os.rmdir(self.dir)
            except OSError:
                time.sleep(0.01)


def drop(path):
    """Takes a file out of the page cache."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def measure(a, system):
    row, why, group = dict.fromkeys(FIELDS), [], None
    row["system"] = "dgl-" + system
    if system == "memory" or not a.memory:
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
    np.save(root + "/csc_part.npy", edges[:, 0][order])
    os.rename(root + "/csc_part.npy", root + "/csc_indices.npy")


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


class Memory:
    """DGL with everything in memory."""

    def __init__(self, a, fanout):
        import dgl
        import numpy as np
        import torch
        load = lambda name: torch.from_numpy(np.load("%s/%s.npy" % (a.dir, name)))
        graph = dgl.graph(("csc", (load("csc_indptr"), load("csc_indices"), torch.tensor([], dtype=torch.int64))))
        self.features = load("features")
        sampler = dgl.dataloading.NeighborSampler(fanout[::-1])  # DGL counts from the outermost hop
        self.loader = dgl.dataloading.DataLoader(graph.formats("csc"), load("train_idx"), sampler, batch_size=a.batch,
                                                 shuffle=True, num_workers=0)

    def batches(self):
        return ((inputs, seeds, blocks) for inputs, seeds, blocks in self.loader)

    def gather(self, inputs):
        return self.features[inputs]


class Mapped:
    """GraphBolt's sampler, and rows copied out of a memory map."""

    def __init__(self, a, fanout):
        import dgl.graphbolt as gb
        import numpy as np
        import torch
        from concurrent.futures import ThreadPoolExecutor
        self.np, self.torch, self.readers = np, torch, a.readers
        self.pool = ThreadPoolExecutor(a.readers)
        graph = gb.fused_csc_sampling_graph(mapped(a.dir + "/csc_indptr.npy"), mapped(a.dir + "/csc_indices.npy"))
        self.features = mapped(a.dir + "/features.npy").numpy()
        items = gb.ItemSet(torch.from_numpy(np.load(a.dir + "/train_idx.npy")), names="seed_nodes")
        pipe = gb.ItemSampler(items, batch_size=a.batch, shuffle=True).sample_neighbor(graph, fanout[::-1])
        self.loader = gb.DataLoader(pipe, num_workers=0)

    def batches(self):
        for b in self.loader:
            yield b.input_nodes, b.seed_nodes, b

    def gather(self, inputs):
        """Copies rows with many threads; take releases the interpreter, and with mode clip it copies in place."""
        ids, x = inputs.numpy(), self.torch.empty((len(inputs), self.features.shape[1]))
        out, cuts = x.numpy(), [len(ids) * i // self.readers for i in range(self.readers + 1)]
        parts = zip(cuts, cuts[1:])
        list(self.pool.map(lambda p: self.np.take(self.features, ids[p[0]:p[1]], 0, out[p[0]:p[1]], "clip"), parts))
        return x


class Sage:
    """The training step: SAGE-mean layers, ReLU, dropout, softmax cross-entropy, Adam."""

    def __init__(self, a, fanout):
        import dgl.nn
        import numpy as np
        import torch
        self.torch = torch
        self.labels = torch.from_numpy(np.load(a.dir + "/labels.npy").astype(np.int64))
        dim = np.load(a.dir + "/features.npy", mmap_mode="r").shape[1]
        widths = [dim] + [a.hidden] * (len(fanout) - 1) + [int(self.labels.max()) + 1]
        self.layers = torch.nn.ModuleList(
            dgl.nn.SAGEConv(i, o, "mean", feat_drop=a.dropout) for i, o in zip(widths, widths[1:]))
        self.optimizer = torch.optim.Adam(self.layers.parameters(), lr=0.003)

    def step(self, batch, x, seeds):
        blocks = batch if isinstance(batch, list) else batch.blocks
        for i, (layer, block) in enumerate(zip(self.layers, blocks)):
            x = layer(block, x if i == 0 else x.relu())
        self.optimizer.zero_grad(set_to_none=True)
        self.torch.nn.functional.cross_entropy(x, self.labels[seeds], ignore_index=-1).backward()
        self.optimizer.step()


def epoch(system, model):
    """Runs an epoch; the times of its parts do not overlap."""
    t = dict(sample_s=0.0, gather_s=0.0, compute_s=0.0, batches=0)
    begun = last = time.perf_counter()
    for inputs, seeds, batch in system.batches():
        sampled = time.perf_counter()
        x = system.gather(inputs)
        gathered = time.perf_counter()
        if model:
            model.step(batch, x, seeds)
        del x
        t["sample_s"] += sampled - last
        t["gather_s"] += gathered - sampled
        last = time.perf_counter()
        t["compute_s"] += last - gathered
        t["batches"] += 1
    t["epoch_s"] = time.perf_counter() - begun
    t["batch_s"] = t["epoch_s"] / t["batches"]
    return t


def child(a):
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
    import dgl
    import torch
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    dgl.seed(a.seed)
    fanout = [int(n) for n in a.fanout.split(",")]
    begun = time.perf_counter()
    system = {"memory": Memory, "mmap": Mapped}[a.child](a, fanout)
    opened = time.perf_counter() - begun
    model = Sage(a, fanout) if a.model == "sage" else None
    epochs = []
    for _ in range(a.epochs):
        before = counter("/proc/self/io", "read_bytes:")
        epochs.append(epoch(system, model))
        epochs[-1]["bytes_read"] = counter("/proc/self/io", "read_bytes:") - before
    row = {name: sum(e[name] for e in epochs) / len(epochs) for name in epochs[0]}
    row.update(open_s=opened, batches=epochs[0]["batches"], last_epoch_s=epochs[-1]["epoch_s"], epochs=epochs,
               bytes_read=int(row["bytes_read"]), peak_rss_bytes=counter("/proc/self/status", "VmHWM:") << 10)
    row["versions"] = dict(dgl=dgl.__version__, torch=torch.__version__)
    row["why"] = ["io_wait_s, hit_ratio: known to the kernel alone"]
    if not model:
        row["compute_s"] = None
        row["why"].append("compute_s: no model")
    print(json.dumps(row))


def main():
    a = arguments()
    if a.child:
        return child(a)
    unknown = set(a.systems.split(",")) - {"memory", "mmap"}
    if unknown:
        sys.exit("unknown systems: %s" % ", ".join(sorted(unknown)))
    make_csc(a.dir)
    rows = [measure(a, s) for s in a.systems.split(",")]
    machine = dict(cpu=platform.processor() or platform.machine(), cores=os.cpu_count(), os=platform.platform())
    print(json.dumps(dict(bench="train", machine=machine, rows=rows)))


main()
