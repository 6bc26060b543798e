#!/usr/bin/env python3
"""Trains models on graphs with known results, and prints their test figures beside published ones.

    python3 bench/accuracy.py --gdb ./gdb --data DIR [NAME or NAME:MODEL ...]

DIR holds a directory for each graph. A row of the table is one model with the same settings on all
splits of a graph, or with several seeds where there is one split. The settings were chosen by the
metric on the validation nodes, never on the test nodes; --choose does so again for the rate, the
weight decay and the dropout of the rows named: 18 combinations on the first two splits or seeds, of
which only the best one is tested.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile

# The figures that were published, in percent, and who measured them.
SOURCES = {
    "cora": {"sage": "83.3 (DGL's example)", "gcn": "81.5 (Kipf, Welling 2017)",
             "gat": "83.0 (Veličković 2018)"},
    "minesweeper": {"sage": "93.51 ± 0.57", "gcn": "89.75 ± 0.52", "gat": "92.01 ± 0.68"},
    "amazon-photo": {"sage": "91.4 ± 1.3", "gcn": "91.2 ± 1.2", "gat": "85.7 ± 20.3"},
    "coauthor-cs": {"sage": "91.3 ± 2.8", "gcn": "91.1 ± 0.5", "gat": "90.5 ± 0.6"},
    "actor": {"sage": "34.2", "gcn": "30.3", "gat": "26.3"},
}
SEEDS = [f"--seed={i}" for i in range(1, 6)]
SPLITS = [f"--split-column={i}" for i in range(10)]
WHOLE = "--fanout all,all"
GRID = ("--metric roc-auc --residual --norm layer --fanout all,all,all,all,all --hidden 64 "
        "--batch 5000 --lr 0.003 --weight-decay 0 --dropout 0.2 --input-dropout 0 --epochs 400 "
        "--eval-every 10")
PHOTO = WHOLE + " --hidden 64 --epochs 300 --patience 25 --eval-every 2"
COAUTHOR = ("--fanout 10,10 --hidden 64 --lr 0.03 --weight-decay 1e-4 --epochs 40 --patience 6 "
            "--eval-every 3")
ACTOR = (WHOLE + " --hidden 64 --batch 4000 --epochs 200 --patience 20 --eval-every 2 "
         "--weight-decay 5e-4")

# Each row: graph, model, how features are normalized, flags, and what its trainings differ by.
ROWS = [
    ("cora", "sage", "row", "--fanout 10,10 --hidden 64 --lr 0.01 --weight-decay 1e-4 "
     "--dropout 0.7 --epochs 60 --eval-every 2", SEEDS),
    ("cora", "gcn", "row", WHOLE + " --hidden 64 --lr 0.01 --weight-decay 5e-4 --epochs 300 "
     "--patience 50 --eval-every 2", SEEDS),
    ("cora", "gat", "row", WHOLE + " --hidden 64 --heads 8 --lr 0.01 --weight-decay 5e-4 "
     "--dropout 0.6 --epochs 200 --patience 50", SEEDS),
    ("minesweeper", "sage", "none", GRID, SPLITS),
    ("minesweeper", "gcn", "none", GRID, SPLITS),
    ("minesweeper", "gat", "none", GRID, SPLITS),
    ("amazon-photo", "sage", "row", "--fanout 10,10 --hidden 64 --lr 0.03 --weight-decay 1e-4 "
     "--epochs 60 --eval-every 2", SPLITS[:5]),
    ("amazon-photo", "gcn", "row", PHOTO + " --lr 0.03 --weight-decay 1e-4", SPLITS[:5]),
    ("amazon-photo", "gat", "none", PHOTO + " --heads 8 --lr 0.03 --weight-decay 1e-4 "
     "--dropout 0.4", SPLITS[:5]),
    ("coauthor-cs", "sage", "row", COAUTHOR, SPLITS[:3]),
    ("coauthor-cs", "gcn", "row", COAUTHOR, SPLITS[:3]),
    ("coauthor-cs", "gat", "row", COAUTHOR + " --heads 8", SPLITS[:3]),
    ("actor", "sage", "row", ACTOR + " --lr 0.01", SPLITS),
    ("actor", "gcn", "row", ACTOR + " --lr 0.01", SPLITS),
    ("actor", "gat", "none", ACTOR + " --heads 8 --lr 0.005", SPLITS),
]
RATES, DECAYS, DROPOUTS = ["0.003", "0.01", "0.03"], ["1e-4", "5e-4", "2e-3"], ["0.5", "0.7"]


class Bench:
    """Runs one gdb on the graphs of one directory."""

    def __init__(self, args, work):
        self.args, self.work = args, work

    def gdb(self, *args):
        done = subprocess.run([os.path.abspath(self.args.gdb), *args, "--quiet", "--memory",
                               "2GiB"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"gdb {' '.join(args)}: {done.stderr}")
        return done.stdout

    def store(self, graph, normalize):
        path = f"{self.work}/{graph}-{normalize}.gdb"
        if not os.path.exists(path):
            self.gdb("ingest", os.path.join(self.args.data, graph), "--undirected", "--normalize",
                     normalize, "--out", path)
        return path

    def train(self, store, flags):
        """The best validation figure of a training, and the test figure of the weights with it."""
        out = self.gdb("train", store, "--json", "--normalize", "none", "--threads",
                       str(self.args.threads), *flags)
        done = json.loads(out.strip().splitlines()[-1])
        return done["best_val"], done["test"]

    def choose(self, store, flags, each):
        """Flags with the rate, decay and dropout of the highest mean validation figure."""
        best = (0, None)
        for rate, decay, dropout in itertools.product(RATES, DECAYS, DROPOUTS):
            tried = flags + ["--lr", rate, "--weight-decay", decay, "--dropout", dropout]
            val = statistics.mean(self.train(store, tried + [e])[0] for e in each)
            print(f"{' '.join(tried)}: validation {val:.4f}", file=sys.stderr, flush=True)
            best = max(best, (val, tried))
        return best[1]

    def row(self, graph, model, normalize, flags, each):
        store, flags = self.store(graph, normalize), ["--model", model, *flags.split()]
        if self.args.choose:
            flags = self.choose(store, flags, each[:2])
        runs = [self.train(store, flags + [e]) for e in each]
        val, test = [v for v, _ in runs], [t for _, t in runs]
        kind = "seeds" if each is SEEDS else "splits"
        print(f"| {graph} | {model} | `--normalize {normalize}` | `{' '.join(flags[2:])}` | "
              f"{100 * statistics.mean(val):.2f} | {100 * statistics.mean(test):.2f} ± "
              f"{100 * statistics.pstdev(test):.2f}, {len(runs)} {kind} | "
              f"{SOURCES[graph][model]} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gdb", default="./gdb", help="the program")
    parser.add_argument("--data", required=True, help="where the directories of the graphs are")
    parser.add_argument("--threads", type=int, default=1, help="they change the last digits")
    parser.add_argument("--choose", action="store_true", help="try 18 settings of each row first")
    parser.add_argument("names", nargs="*", metavar="NAME", help="cora, or cora:gat; default: all")
    args = parser.parse_args()
    known = {n for g, m, *_ in ROWS for n in (g, f"{g}:{m}")}
    for name in args.names:
        if name not in known:
            parser.error(f"no row {name}; known: {', '.join(sorted(known))}")
    print("| graph | model | ingest `--undirected` | train | val | test | published |")
    print("|---|---|---|---|--:|--:|--:|", flush=True)
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(args, work)
        for graph, model, *rest in ROWS:
            if not args.names or graph in args.names or f"{graph}:{model}" in args.names:
                bench.row(graph, model, *rest)


if __name__ == "__main__":
    main()
