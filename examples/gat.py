import sys

import torch
from torch.nn.functional import cross_entropy, dropout, elu
from torch_geometric.nn import GATConv

import gdbgraph


class GAT(torch.nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.first = GATConv(width, 32, heads=4)
        self.last = GATConv(4 * 32, classes)

    def forward(self, x, edge_index):
        x = elu(self.first(x, edge_index))
        return self.last(dropout(x, 0.5, self.training), edge_index)


def accuracy(model, loader):
    model.eval()
    right = [(model(b.x, b.edge_index)[: b.batch_size].argmax(-1) == b.y).float() for b in loader]
    return torch.cat(right).mean().item()


with gdbgraph.open(sys.argv[1]) as store:
    train = store.loader([10, 10], batch_size=512, memory="2GiB")  # all that gdb may take
    val = store.loader([10, 10], batch_size=512, split="val")
    model = GAT(store.num_features, len(store.classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
    for epoch in range(10):
        model.train()
        for batch in train:
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index)[: batch.batch_size]
            cross_entropy(out, batch.y, ignore_index=-1).backward()
            optimizer.step()
        with torch.no_grad():
            print(f"epoch {epoch + 1}  val {accuracy(model, val):.4f}")
