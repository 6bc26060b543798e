package linkcmd

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gdb/blockdev"
	"gdb/cmd/gdb/cli"
	"gdb/internal/files"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/nodeids"
	"gdb/train/link"
	"gdb/train/link/triples"
	"gdb/train/runs"
	"gdb/train/setting"

	"github.com/spf13/pflag"
)

// PredictOptions are the flags of gdb predict that runs of links have.
type PredictOptions struct {
	Run                  string
	Head, Tail, Relation string
	Top                  int
	OnlyNew              bool
	Pairs, Out           string
}

// Bind adds the flags of gdb predict that runs of links have.
func (o *PredictOptions) Bind(f *pflag.FlagSet) {
	f.StringVar(&o.Head, "head", "", "of a run of links: the id whose tails are predicted")
	f.StringVar(&o.Tail, "tail", "", "the id whose heads are predicted")
	f.StringVar(&o.Relation, "relation", "", "the relation between them")
	f.IntVar(&o.Top, "top", 10, "how many are predicted, the best first")
	f.BoolVar(&o.OnlyNew, "only-new", false, "leave out what is an edge of the graph already")
	f.StringVar(&o.Pairs, "pairs", "",
		"file of edges to score: head, relation and tail, or a table with a header as for ingest")
	cli.OnlyFor(f, setting.OfLinks, "head", "tail", "relation", "top", "only-new", "pairs")
}

// Validate reports flags that do not go together.
func (o *PredictOptions) Validate() error {
	ways := 0
	for _, given := range []string{o.Head, o.Tail, o.Pairs} {
		if given != "" {
			ways++
		}
	}
	switch {
	case ways != 1:
		return errors.New("predict: the run predicts links: say of what with one of --head ID, " +
			"--tail ID or --pairs FILE")
	case o.Pairs != "" && o.Relation != "":
		return errors.New("predict: --pairs names the relation of each edge: leave --relation out")
	case o.Pairs != "" && !strings.HasSuffix(o.Out, ".csv"):
		return errors.New("predict: --pairs needs --out FILE.csv, where scores go")
	case o.Pairs == "" && o.Top < 1:
		return fmt.Errorf("predict: --top %d: give at least 1", o.Top)
	case o.Pairs == "" && o.Out != "" && !strings.HasSuffix(o.Out, ".csv"):
		return fmt.Errorf("predict: --out %s: links are written to FILE.csv", o.Out)
	}
	return nil
}

// Predict is gdb predict of a run that predicts links.
func Predict(ctx context.Context, e *cli.App, st *layout.Store, dev blockdev.Device,
	o *PredictOptions) (err error) {
	if err := o.Validate(); err != nil {
		return cli.Usage(err)
	}
	t, err := link.Open(ctx, st, dev, o.Run, link.Limits{Memory: e.Memory, Threads: e.Threads})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	names, err := nodeids.Open(ctx, st, dev, nil)
	if err != nil {
		return fmt.Errorf("predict: open ids: %w", err)
	}
	defer func() { err = errors.Join(err, names.Close()) }()
	p := &predictor{App: e, ctx: ctx, trained: t, names: names, meta: st.Meta(), opt: o}
	if o.Pairs != "" {
		return p.pairs()
	}
	return p.top()
}

// predictor answers one command.
type predictor struct {
	*cli.App
	ctx     context.Context
	trained *link.Trained
	names   ids.Dictionary
	meta    *kv.Meta
	opt     *PredictOptions
}

// top prints the best edges of a node and a relation.
func (p *predictor) top() error {
	relation, err := p.trained.Relation(p.opt.Relation)
	if err != nil {
		return cli.Usage(err)
	}
	q, id := triples.Query{Relation: relation}, p.opt.Head
	if p.opt.Tail != "" {
		q.Head, id = true, p.opt.Tail
	}
	node, err := p.node(id)
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	q.Entity = uint32(node)
	links, err := p.trained.Top(p.ctx, q, p.opt.Top, p.opt.OnlyNew)
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	nodes := make([]kv.NodeID, 0, 2*len(links))
	for _, l := range links {
		nodes = append(nodes, l.Head, l.Tail)
	}
	ends, err := p.names.External(p.ctx, nodes, nil)
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	if p.opt.Out != "" {
		return p.write(func(w *csv.Writer) error {
			err := w.Write([]string{"head", "relation", "tail", "score", "known"})
			for i, l := range links {
				err = errors.Join(err, w.Write([]string{ends[2*i], p.opt.Relation, ends[2*i+1],
					score(l.Score), strconv.FormatBool(l.Known)}))
			}
			return err
		})
	}
	w := &cli.Lines{W: p.Out}
	for i, l := range links {
		end, known := ends[2*i+1], ""
		if q.Head {
			end = ends[2*i]
		}
		if l.Known {
			known = "  (an edge of the graph)"
		}
		w.Printf("%4d %12s  %s%s\n", i+1, runs.Figure(float64(l.Score), 4), end, known)
	}
	return w.Err
}

// node finds an entity. The error of an id that is not there says what was probably meant.
func (p *predictor) node(id string) (kv.NodeID, error) {
	node, err := p.names.Internal(p.ctx, id)
	if !errors.Is(err, kv.ErrNotFound) {
		return node, err
	}
	meant, examples := ids.Alternatives(p.ctx, p.names, p.meta, id)
	switch {
	case meant != "":
		err = fmt.Errorf("%w; did you mean %q?", err, meant)
	case len(examples) > 0:
		err = fmt.Errorf("%w: ids are written as in the source, such as %.100q", err, examples[0])
	}
	return 0, err
}

// score writes a score with all its digits.
func score(v float32) string { return strconv.FormatFloat(float64(v), 'g', -1, 32) }

// pairsOnce are scored together.
const pairsOnce = 4096

// pairs scores the edges of a file.
func (p *predictor) pairs() error {
	in, err := p.FS.Open(p.opt.Pairs)
	if err != nil {
		return fmt.Errorf("predict: --pairs: %w", err)
	}
	return errors.Join(p.write(func(w *csv.Writer) error {
		if err := w.Write([]string{"head", "relation", "tail", "score"}); err != nil {
			return err
		}
		return p.scorePairs(newPairReader(in, p.opt.Pairs, sourceOf(p.meta)), w)
	}), in.Close())
}

// scorePairs scores the edges that a reader has.
func (p *predictor) scorePairs(in *pairReader, out *csv.Writer) error {
	for more := true; more; {
		var lines [][3]string
		var edges []triples.Triple
		for more && len(lines) < pairsOnce {
			line, err := in.next()
			if more = !errors.Is(err, io.EOF); !more {
				break
			}
			var edge triples.Triple
			if err == nil {
				edge, err = p.edge(line, in.src)
			}
			if err != nil {
				return in.wrong(err)
			}
			lines, edges = append(lines, line), append(edges, edge)
		}
		scores, err := p.trained.Scores(p.ctx, edges)
		if err != nil {
			return fmt.Errorf("predict: %w", err)
		}
		for i, v := range scores {
			l := lines[i]
			if err := out.Write([]string{l[0], l[1], l[2], score(v)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// end finds an end of an edge by its id, which may lack its type as the ids of the source do.
func (p *predictor) end(id, ofType string) (kv.NodeID, error) {
	if ofType != "" && !strings.HasPrefix(id, ofType+":") {
		if node, err := p.names.Internal(p.ctx, ofType+":"+id); !errors.Is(err, kv.ErrNotFound) {
			return node, err
		}
	}
	return p.node(id)
}

// edge finds the numbers of a line.
func (p *predictor) edge(line [3]string, of pairSource) (e triples.Triple, err error) {
	if e.Relation, err = p.trained.Relation(line[1]); err != nil {
		return e, err
	}
	head, err := p.end(line[0], of.headType)
	if err != nil {
		return e, err
	}
	tail, err := p.end(line[2], of.tailType)
	e.Head, e.Tail = uint32(head), uint32(tail)
	return e, err
}

// write writes a CSV file whole, or not at all.
func (p *predictor) write(fn func(w *csv.Writer) error) error {
	f, err := files.CreateAtomic(p.FS, p.opt.Out)
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	w := csv.NewWriter(f)
	err = fn(w)
	if w.Flush(); err == nil {
		err = w.Error()
	}
	if err != nil {
		return errors.Join(err, f.Abort())
	}
	if err := f.Commit(); err != nil {
		return fmt.Errorf("predict: write %s: %w", p.opt.Out, err)
	}
	if p.Quiet {
		return nil
	}
	_, err = fmt.Fprintf(p.Out, "predictions are in %s\n", p.opt.Out)
	return err
}
