package cli

// TopicExitCodes is the page of that name.
const TopicExitCodes = `Exit codes:

    0  done
    1  the work failed: the message says what, where, and what to do
    2  wrong usage, or a syntax error in a statement
    3  the store or a checkpoint is damaged; gdb check names the places
  130  interrupted (Ctrl-C or SIGTERM), after cleaning up; the message says
       how to go on`

// TopicEnvironment is the page of that name.
const TopicEnvironment = `Every flag can be given as a variable: --feature-cache is
GDB_FEATURE_CACHE. A flag on the command line beats its variable, which beats
the default. There is no configuration file.

  GDB_MEMORY   bound of the process's memory (--memory)
  GDB_THREADS  compute workers (--threads)
  GDB_KERNEL   plain, avx2, avx512 or neon (arm64): the kernels to use instead
               of the best the CPU has
  GDB_LIBCUDA, GDB_LIBCUBLAS   CUDA's driver and cuBLAS, if gdb was built with
               CUDA and they are not where the linker looks
  GDB_HTTP_TOKEN   what requests to gdb serve --http show, if --token-file is
               not given
  NO_COLOR     no color in output; so does TERM=dumb
  XDG_CACHE_HOME   where gdb/devices.json has what was measured of devices, for
               a day (default: ~/.cache); --remeasure measures anew.
               gdb/products.json has which instructions multiply bf16 fastest:
               delete it to have that measured anew

What gdb shell uses on a terminal:

  XDG_STATE_HOME     where gdb/shell_history is kept (default: ~/.local/state)
  GDB_PAGER, PAGER   shows long results (default: less -FRSX)
  VISUAL, EDITOR     edits statements for .edit (default: vi)`

// TopicFormats is the page of that name.
const TopicFormats = `gdb ingest detects the format; --format NAME decides.

  npy      a directory of arrays: edges.npy (E,2) or (2,E), edges_typed.npy
           (E,3), or src.npy with dst.npy; features.npy (N,d) or
           features_{indptr,indices,values,shape}.npy (CSR); labels.npy (-1 or
           NaN: unlabeled) or labels_coo.npy; {train,val,test}_idx.npy or
           *_mask.npy; splits.npy (splits,N) of 0 unused, 1 train, 2 val, 3
           test
  csv      CSV or TSV, plain, .gz, .bz2 or .zst, integer or string ids;
           --edges and --nodes name the files, --src-col, --dst-col, --id-col,
           --label-col and --feature-cols the columns; --features F.npy and
           the like where ids are the row numbers of arrays; - is standard
           input, of which a copy is kept beside the store until it is made
  parquet  the same as csv from Parquet files, or directories of such files of
           the same columns; a column of lists of numbers is a vector of
           features, one of lists of words is labels
  arrow    the same from Arrow files (.arrow, .ipc), Feather 2 (.feather) and
           streams (.arrows)
  snap     edge lists: '#' comments, ids separated by white space
  ogb      a directory of the Open Graph Benchmark, csv or binary
  triples  train.tsv, valid.tsv, test.tsv: head TAB relation TAB tail; each is a
           split of the edges, and neighbor lists have those of train

Files of PyTorch (.pt), DGL, pickles, MATLAB and HDF5 are not read: save
what is in them with numpy, a line each, into a directory of arrays:
  numpy.save("edges.npy", data.edge_index.numpy())
  numpy.save("features.npy", data.x.numpy())

What a directory of arrays holds, to the byte, and what is refused:
docs/format/sources.md.`

// TopicStrategies is the page of that name.
const TopicStrategies = `What --strategy of gdb train chooses:

  exact  every batch is sampled from the whole graph, every byte is read as
         stored (default)
  macro  partitions of the store come to memory in turn, some at a time, while
         those before are trained on: everything is read in sequence, once an
         epoch. Neighbors are drawn among the nodes there, and among hubs,
         which stay (--hubs, --hubs-by); --reuse trains on each several times.
         It approximates, and wants a store of partitions that keep neighbors
         together: see gdb order, and docs/partition-training.md
  pbs    as macro, but neighbors outside memory are drawn too: with their
         features, and with the hidden states that they had when they were last
         computed, which takes memory for those of all nodes

Two flags approximate too. --macro-batch N draws the neighbors of N batches at
once, and uses draws again within them. --order has some partitions of the graph
in memory at a time, dealt by chance, and draws neighbors among the nodes there:
with dispersed an epoch goes through sets of partitions, and trains on the nodes
of each while it is there; with sequential all training nodes stay in memory,
and the other partitions are drawn anew each epoch.

Caches of features, --cache; they change what is read, and nothing else:

  auto    all rows if they fit, else the one of static, sieve and belady with
          which an epoch is forecast to take least time (default); gdb plan
          says which
  static  the rows of the nodes that stand in most lists, loaded before the
          first batch
  sieve   rows asked for again stay where they are, others are sifted out; 5
          bytes a row
  belady  the rows whose next use is nearest, known because batches are
          sampled ahead (--superbatch), on disk: nothing reads fewer rows, see
          docs/out-of-core.md
  none    every row is read

gdb bench cache compares these with other policies.`

// TopicLink is the page of that name.
const TopicLink = `gdb train STORE --task link learns a vector for each node and each type of
edges, and scores edges by them. The edges of the store must be in splits:
files of train, valid and test triples, or gdb ingest --edge-split. gdb eval
ranks the true end of each edge of a split among all nodes, gdb predict names
the best tails of a head (--head), heads of a tail (--tail), or scores pairs
(--pairs). docs/link.md has recipes and formulas.

Decoders, --decoder; h, r and t are the vectors of head, type and tail:

  distmult  sum of h*r*t
  complex   the real part of the sum of h*r*conj(t), of complex numbers
  transe    minus the distance of h+r from t
  rotate    minus the distance of h*r from t, of complex numbers, r of size 1
  dot       sum of h*t, for edges without types

Losses, --loss, of an edge beside its negatives:

  softmax      cross-entropy of the edge among its negatives
  logistic     the edge is true, and its negatives are false, each by itself
  margin       the edge scores --margin above each negative
  adversarial  as logistic, from --margin on, and negatives count more that
               score high

Negatives, --negatives N or all, and --negative-sampling:

  uniform  drawn evenly, for all edges of a batch together
  degree   drawn by a power of their degree (--degree-power)
  batch    the ends of the other edges in the batch
  chunked  as uniform, but anew for each tenth of a batch
  edge     as uniform, but anew for each edge: best where they are few

What is not given is as the recipe of the decoder says.`

// TopicSearch is the page of that name.
const TopicSearch = `gdb train --search finds settings that do well, by successive halving:

  gdb train cora.gdb --search 'hidden=16,64,256;lr=1e-3..1e-1' --trials 20

The settings stand between semicolons, by the names of their flags:

  hidden=16,64,256     one of these values
  fanout=10,10|5,5,5   with | between values that have commas
  lr=1e-3..1e-1        a number of the range; evenly by its logarithm if the
                       high end is at least 10 times the low one, which is
                       above 0
  heads=1..8           a whole number, if both ends are written as such

Every trial has the other flags of the command. Do not give a flag that is
searched.
Trials are drawn by --seed: of listed values each combination once, if --trials
is enough for all; of a range one number of each equal part.

All trials train for a few epochs. Then the third that is best on val trains
for three times as many in all, and so on until three trials are left, which
train for --epochs. 20 trials of 60 epochs take 351 epochs at most, and not
1,200. A trial that stops on its patience is done; one that diverges is out.

Each trial is a run, NAME-01 and so on, with NAME of --run or the next free
s0001; gdb runs compares them. Trials that differ in the model's shape and in
how it learns train at the same time, on the same batches. Those that stopped
early go on with --resume.
Ctrl-C stops a search; the same command with --run NAME goes on with it.`
