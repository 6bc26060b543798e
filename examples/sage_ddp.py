"""Trains on several processes of this machine, each with its share of the batches.

    torchrun --nproc-per-node 2 examples/sage_ddp.py STORE [--memory 4GiB] [--checkpoint FILE]
    torchrun --nnodes 2 --nproc-per-node 1 … examples/sage_ddp.py STORE --parts DIR

The processes share one server of gdb, its memory and its cache. With --checkpoint what was learned
is saved every --save-every steps, and a training that was stopped goes on from there, in the middle
of its epoch, to the same weights. With --parts, the directory of `gdb partition`, each
rank trains on a part of its own, with a server of its own; rank 0 tests with the whole STORE, and
no other rank opens it.
"""

import argparse
import os
from contextlib import nullcontext
from itertools import islice

import torch
import torch.distributed as dist
from sage import Sage, accuracy
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import gdbgraph


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("--memory")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint")
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--parts")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)
    path, place = args.store, {}
    if args.parts:
        path = os.path.join(args.parts, f"part{rank}.gdb")
        place = {"rank": 0, "world_size": 1}  # all seeds of the part are this rank's
    with gdbgraph.open(path) as store:
        loader = store.loader([10, 10], args.batch, memory=args.memory, seed=args.seed, **place)
        least = torch.tensor(len(loader))
        dist.all_reduce(least, dist.ReduceOp.MIN)  # parts may differ by a batch
        steps = int(least)
        model = DistributedDataParallel(Sage([store.num_features, 64, len(store.classes)]))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
        first = done = 0
        if args.checkpoint and os.path.exists(args.checkpoint):
            state = torch.load(args.checkpoint)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            loader.load_state_dict(state["loader"])
            first, done = state["loader"]["epoch"], state["loader"]["batch"]
        print(f"rank {rank} of {world}: epochs of {steps} batches, from {done} of epoch {first}\n",
              end="", flush=True)  # in one write: ranks print at once
        for epoch in range(first, args.epochs):
            model.train()
            for step, batch in enumerate(islice(loader, steps - done), epoch * steps + done):
                torch.manual_seed((args.seed << 40) + step * world + rank)  # of dropout
                optimizer.zero_grad()
                out = model(batch.x, batch.edge_index)[: batch.batch_size]
                cross_entropy(out, batch.y, ignore_index=-1).backward()
                optimizer.step()
                if args.checkpoint and rank == 0 and (step + 1) % args.save_every == 0:
                    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                             "loader": loader.state_dict()}
                    torch.save(state, args.checkpoint + ".new")
                    os.replace(args.checkpoint + ".new", args.checkpoint)
            done = 0
        if rank == 0:
            with gdbgraph.open(args.store) if args.parts else nullcontext(store) as whole:
                test = whole.loader([10, 10], 256, "test", rank=0, world_size=1)
                print(f"test {accuracy(model.module, test):.4f}")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
