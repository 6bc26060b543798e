"""Trains GraphSAGE of PyTorch Geometric on batches of a store, which may be larger than memory.

    python examples/sage.py STORE [--memory 4GiB] [--epochs 20] [--fanout 10,10] [--batch 256]
"""

import argparse

import torch
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.nn import SAGEConv

import gdbgraph


class Sage(torch.nn.Module):
    """Layers of SAGEConv."""

    def __init__(self, sizes):
        super().__init__()
        self.convs = torch.nn.ModuleList(SAGEConv(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x, edge_index):
        for i, conv in enumerate(self.convs):
            if i:
                x = dropout(x.relu(), 0.5, self.training)
            x = conv(x, edge_index)
        return x


@torch.no_grad()
def accuracy(model, loader):
    """The share of seeds whose class is predicted, of those that have one."""
    model.eval()
    right = count = 0
    for batch in loader:
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        known = batch.y >= 0
        right += int((out.argmax(-1) == batch.y)[known].sum())
        count += int(known.sum())
    return right / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("--memory")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--fanout", default="10,10")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    fanout = [int(k) for k in args.fanout.split(",")]
    with gdbgraph.open(args.store) as store:
        train = store.loader(fanout, args.batch, memory=args.memory, seed=args.seed)
        val, test = (store.loader(fanout, args.batch, name) for name in ("val", "test"))
        hidden = [args.hidden] * (len(fanout) - 1)
        model = Sage([store.num_features, *hidden, len(store.classes)])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
        best, tested = 0.0, 0.0
        for epoch in range(args.epochs):
            model.train()
            for batch in train:
                optimizer.zero_grad()
                out = model(batch.x, batch.edge_index)[: batch.batch_size]
                loss = cross_entropy(out, batch.y, ignore_index=-1)
                loss.backward()
                optimizer.step()
            score = accuracy(model, val)
            if score > best:
                best, tested = score, accuracy(model, test)
            print(f"epoch {epoch + 1}  loss {loss:.3f}  val {score:.4f}")
        print(f"test {tested:.4f} (best val {best:.4f})")


if __name__ == "__main__":
    main()
