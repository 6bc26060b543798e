"""A plain loop in PyTorch beside gdb's on a device: 3-layer GraphSAGE of width 256 with means, graph,
features and sampling in the device's memory.

    python3 bench/peers/torchgpu.py DIR [--epochs 4] [--precision f32|tf32|bf16] [--out FILE]

DIR is what `gdb bench gen` makes. Neighbors are drawn with replacement, which is less work than
gdb's draws. The seconds of the last epoch are written as JSON.
"""

import argparse
import json
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

FANOUT, LAYERS, BATCH, WIDTH = 10, 3, 1000, 256


class Layer(nn.Module):
    def __init__(self, cols, out):
        super().__init__()
        self.own, self.mean = nn.Linear(cols, out), nn.Linear(cols, out, bias=False)

    def forward(self, h, hop):
        nodes, lists, rows, counts = hop
        sums = torch.zeros(nodes, h.shape[1], device=h.device, dtype=h.dtype)
        sums = sums.index_add_(0, lists, h[rows])
        return self.own(h[:nodes]) + self.mean(sums / counts.clamp(min=1).to(h.dtype)[:, None])


class Graph:
    """In-neighbor lists on the device, and batches drawn from them."""

    def __init__(self, edges, nodes, device):
        source, target = (torch.from_numpy(e.astype(np.int64)).to(device) for e in edges)
        target, order = torch.sort(target)
        self.source = source[order]
        self.degree = torch.bincount(target, minlength=nodes)
        self.first = self.degree.cumsum(0) - self.degree
        self.number = torch.empty(nodes, dtype=torch.long, device=device)
        self.slots = torch.arange(FANOUT, device=device)

    def sample(self, seeds):
        hops, front = [], seeds
        for _ in range(LAYERS):
            degree = self.degree[front]
            drawn = (torch.rand(len(front), FANOUT, device=front.device) * degree[:, None]).long()
            at = torch.where(degree[:, None] <= FANOUT, self.slots, drawn)
            there = self.slots < degree[:, None]
            found = self.source[(self.first[front][:, None] + at)[there]]
            lists = torch.arange(len(front), device=front.device)[:, None].expand_as(there)[there]
            self.number[found] = -1
            self.number[front] = torch.arange(len(front), device=front.device)
            new = torch.unique(found[self.number[found] < 0])
            self.number[new] = torch.arange(len(front), len(front) + len(new), device=front.device)
            hops.append((len(front), lists, self.number[found], degree.clamp(max=FANOUT)))
            front = torch.cat([front, new])
        return front, hops[::-1]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--precision", default="f32")
    p.add_argument("--out")
    args = p.parse_args()
    load = lambda name: np.load(f"{args.dir}/{name}.npy")
    x, y = torch.from_numpy(load("features")).cuda(), torch.from_numpy(load("labels")).long().cuda()
    edges, train = load("edges"), torch.from_numpy(load("train_idx").astype(np.int64)).cuda()
    graph = Graph(edges if edges.shape[0] == 2 else edges.T, len(x), x.device)
    torch.backends.cuda.matmul.allow_tf32 = args.precision == "tf32"
    dims = [x.shape[1]] + [WIDTH] * (LAYERS - 1) + [int(y.max()) + 1]
    net = nn.ModuleList(Layer(a, b) for a, b in zip(dims, dims[1:])).cuda()
    adam = torch.optim.Adam(net.parameters(), lr=0.003, fused=True)
    for epoch in range(args.epochs):
        torch.cuda.synchronize()
        begun = time.time()
        for seeds in train[torch.randperm(len(train), device=x.device)].split(BATCH):
            nodes, hops = graph.sample(seeds)
            h = x[nodes]
            with torch.autocast("cuda", torch.bfloat16, enabled=args.precision == "bf16"):
                for i, layer in enumerate(net):
                    h = layer(h, hops[i])
                    h = torch.relu(h) if i + 1 < len(net) else h
            loss = functional.cross_entropy(h.float(), y[seeds])
            adam.zero_grad()
            loss.backward()
            adam.step()
        torch.cuda.synchronize()
        figures = {"epoch": epoch, "seconds": time.time() - begun, "loss": loss.item()}
        print(json.dumps(figures), flush=True)
    if args.out:
        with open(args.out, "w") as f:
            json.dump(figures, f, separators=(",", ":"))


if __name__ == "__main__":
    main()
