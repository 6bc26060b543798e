#!/usr/bin/env python3
"""Epochs of link prediction by PyKEEN on a directory of triples, in the rows that `gdb bench link --json` prints.

    links.py DIR [--decoder distmult|complex|transe|rotate] [--dim 100] [--negatives 32] [--batch 1024] [--epochs 3] ...

DIR holds train.tsv, valid.tsv and test.tsv, a line "head TAB relation TAB tail" for each edge. An edge is compared with
--negatives corrupted ones (PyKEEN corrupts the head of half of them, the tail of the others), all drawn for it alone: as
many as gdb draws with half as many --negatives, which are for each end, and --negative-sampling edge. The first epoch is
left out of epoch_s; epochs_s has all. --loss auto is what PyKEEN takes for the decoder. With --evaluate the test edges
are ranked among all entities, filtered, both sides, --eval-batch at a time; PyKEEN leaves out edges with an entity that
train has not. eval_s is the time of that alone.
"""
import argparse
import json
import os
import platform
import resource
import time
from pathlib import Path

MODELS = {"distmult": "DistMult", "complex": "ComplEx", "transe": "TransE", "rotate": "RotatE"}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=Path)
    p.add_argument("--decoder", choices=list(MODELS), default="distmult")
    p.add_argument("--dim", type=int, default=100, help="numbers of an entity, two for each complex one")
    p.add_argument("--negatives", type=int, default=32)
    p.add_argument("--batch", type=int, default=1024)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--loss", default="auto", help="auto, or a name of PyKEEN's: marginranking, softplus, nssa, infonce")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--evaluate", action="store_true", help="rank the test edges after the last epoch")
    p.add_argument("--eval-batch", type=int, default=512, help="edges that are ranked at a time")
    return p.parse_args()


def factories(dir):
    from pykeen.triples import TriplesFactory
    train = TriplesFactory.from_path(dir / "train.tsv")
    ids = {"entity_to_id": train.entity_to_id, "relation_to_id": train.relation_to_id}
    return [train] + [TriplesFactory.from_path(dir / f"{name}.tsv", **ids) for name in ("valid", "test")]


def trained(args, train):
    """The model after all epochs, and the seconds of each."""
    from pykeen.models import model_resolver
    from pykeen.training import SLCWATrainingLoop
    from pykeen.training.callbacks import TrainingCallback
    from torch.optim import Adagrad

    class Clock(TrainingCallback):
        def pre_batch(self, **kwargs):
            ends[:] = ends or [time.monotonic()]

        def post_epoch(self, **kwargs):
            ends.append(time.monotonic())

    ends = []  # the beginning, and the ends of epochs
    complex_numbers = args.decoder in ("complex", "rotate")
    loss = {} if args.loss == "auto" else {"loss": args.loss}
    model = model_resolver.make(MODELS[args.decoder], triples_factory=train, random_seed=args.seed, **loss,
                                embedding_dim=args.dim // 2 if complex_numbers else args.dim)
    optimizer = Adagrad(model.get_grad_params(), lr=args.lr)
    loop = SLCWATrainingLoop(model=model, triples_factory=train, optimizer=optimizer, negative_sampler="basic",
                             negative_sampler_kwargs={"num_negs_per_pos": args.negatives})
    loop.train(triples_factory=train, num_epochs=args.epochs, batch_size=args.batch, use_tqdm=False, callbacks=Clock())
    return model, [end - begun for begun, end in zip(ends, ends[1:])]


def ranked(model, train, valid, test, batch):
    """The mean reciprocal rank, and the seconds that ranking took."""
    from pykeen.evaluation import RankBasedEvaluator
    begun = time.monotonic()
    results = RankBasedEvaluator(filtered=True).evaluate(
        model, test.mapped_triples, batch_size=batch, use_tqdm=False,
        additional_filter_triples=[train.mapped_triples, valid.mapped_triples])
    return results.get_metric("both.realistic.inverse_harmonic_mean_rank"), time.monotonic() - begun


def main():
    args = arguments()
    import pykeen
    import torch
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    train, valid, test = factories(args.dir)
    model, times = trained(args, train)
    row = {"system": "pykeen", "order": "memory", "buffer": "all", "epoch_s": sum(times[1:]) / max(1, len(times) - 1),
           "epochs": args.epochs, "mrr": None, "read_bytes": 0, "epb": 0, "edges": train.num_triples,
           "epochs_s": times, "negatives": args.negatives, "batch": args.batch, "lr": args.lr,
           "loss": type(model.loss).__name__, "threads": args.threads, "seed": args.seed,
           "versions": {"pykeen": pykeen.get_version(), "torch": torch.__version__, "python": platform.python_version()}}
    if args.evaluate:
        row["mrr"], row["eval_s"] = ranked(model, train, valid, test, args.eval_batch)
    row["peak_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"bench": "link", "rows": [row]}))


if __name__ == "__main__":
    main()
