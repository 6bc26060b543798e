package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gdb/cmd/gdb/cli"
	"gdb/internal/codec"
	"gdb/kv"
	"gdb/kv/catalog"
	"gdb/layout"
	"gdb/layout/neighborcache"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// hostileExcuses are parts of messages of exit 1 and 2 that a hostile store may get: it is whole,
// but
// asks for more than there is, or there is nothing of what was asked for.
var hostileExcuses = []string{"--memory", "no labeled node", "no run", "not finite", "is NaN",
	"is +Inf", "is -Inf", "diverged", "no split", "no such split", "has no node", "no label",
	"no features", "was trained on", "of another version", "format version", "no checkpoint",
	"another --run", "no weights", "has no", "keeps no out-lists", "known are", "it began with"}

// hostility makes cases of hostile stores.
type hostility struct {
	r       *rand.Rand
	codes   map[string]int // exit codes by command
	slowest struct {
		took time.Duration
		at   string
	}
}

// make puts a case made from a sound store in place of dir. It says what was done, and whether a
// full check must find it.
func (h *hostility) make(t *testing.T, s *hostileStore, dir string) (what string, damaged bool) {
	t.Helper()
	s.put(t, dir)
	names := slices.Sorted(maps.Keys(s.data))
	name := names[h.r.IntN(len(names))]
	for strings.HasSuffix(name, "LOCK") {
		name = names[h.r.IntN(len(names))]
	}
	switch {
	case h.r.IntN(4) == 0:
		what = h.special(t, filepath.Join(dir, name))
		return name + " " + what, s.listed(name)
	case h.r.IntN(5) == 0:
		return h.metadata(t, s, dir), false
	case strings.HasPrefix(name, "catalog"):
		return h.setOf(t, s, dir), true
	case strings.HasPrefix(name, "runs"):
		return name + " " + h.runFile(t, s, filepath.Join(dir, name)), false
	}
	return name + " " + h.contents(t, s, dir, name), false
}

// listed reports whether the catalog lists a file, so that a check finds that it is not as it was.
func (s *hostileStore) listed(name string) bool {
	return slices.ContainsFunc(s.meta.Files, func(m kv.FileMeta) bool { return m.Path == name })
}

// special replaces a file by something else, or changes its length.
func (h *hostility) special(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	remove := func() error { return os.Remove(path) }
	lengths := []int64{0, 1, 511, 512, 4096, info.Size() - 1, info.Size() + 1, info.Size() + 512,
		info.Size() + 4096, 1 << 40}
	length := max(0, lengths[h.r.IntN(len(lengths))])
	kinds := []struct {
		what string
		do   func() error
	}{
		{"missing", remove},
		{"a pipe", func() error { return cli.FirstError(remove(), unix.Mkfifo(path, 0o600)) }},
		{"a directory", func() error { return cli.FirstError(remove(), os.Mkdir(path, 0o700)) }},
		{"a device", func() error {
			return cli.FirstError(remove(), os.Symlink("/dev/zero", path))
		}},
		{"a link to nothing", func() error {
			return cli.FirstError(remove(), os.Symlink("none",
				path))
		}},
		{fmt.Sprintf("%d bytes long", length), func() error { return os.Truncate(path, length) }},
	}
	k := kinds[min(h.r.IntN(2*len(kinds)), len(kinds)-1)]
	if err := k.do(); err != nil {
		t.Fatal(err)
	}
	return k.what
}

// scramble changes some values of b, of 1 to 8 bytes, to others that mean something.
func (h *hostility) scramble(b []byte) string {
	var done []string
	for range 1 + h.r.IntN(3) {
		if len(b) < 8 {
			break
		}
		width := 1 << h.r.IntN(4)
		at := h.r.IntN(len(b)/width) * width
		if h.r.IntN(2) == 0 {
			at = h.r.IntN(min(len(b), 64)/width) * width // the head of a block
		}
		v := []uint64{0, 1, 1<<8 - 1, 1<<16 - 1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<63 - 1,
			1<<64 - 1,
			hostileNodes, hostileNodes - 1, h.r.Uint64(), uint64(h.r.IntN(4096))}[h.r.IntN(13)]
		var buf [8]byte
		binary.LittleEndian.PutUint64(buf[:], v)
		copy(b[at:at+width], buf[:])
		done = append(done, fmt.Sprintf("%d bytes at %d are %d", width, at, v))
	}
	return strings.Join(done, ", ")
}

// contents changes a block of a data file, or its header, and makes all checksums right again.
func (h *hostility) contents(t *testing.T, s *hostileStore, dir, name string) string {
	t.Helper()
	b := bytes.Clone(s.data[name])
	block := h.r.IntN(max(1, len(b)/codec.HeaderBytes))
	from := block * codec.HeaderBytes
	end := min(from+codec.HeaderBytes, len(b))
	what := "empty"
	if end-from > 40 {
		body := b[from+4 : end] // behind the checksum
		if block == 0 {
			body = b[36:min(120, len(b))] // the fields
		}
		what = fmt.Sprintf("block %d: %s", block, h.scramble(body))
	}
	files := map[string][]byte{name: b}
	s.reseal(files, name, block)
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.catalog(t, dir, files, nil, nil)
	return what
}

// reseal makes the checksum of a block right; of rows that is in another file, which is added.
func (s *hostileStore) reseal(files map[string][]byte, name string, block int) {
	b := files[name]
	if len(b) < codec.HeaderBytes {
		return
	}
	uuid, kind := s.meta.UUID, string(s.data[name][12:16])
	put := func(at int, sum uint32) { binary.LittleEndian.PutUint32(b[at:], sum) }
	at := block * codec.HeaderBytes
	switch {
	case kind == neighborcache.KindIn:
		// The last field of the header is the checksum of all that follows.
		sum := codec.BlockSum(kind, uuid, 1, b[codec.HeaderBytes:])
		put(36+48, sum)
		put(0, codec.Checksum(b[4:codec.HeaderBytes]))
	case block == 0:
		put(0, codec.Checksum(b[4:codec.HeaderBytes]))
	case kind == layout.KindRows:
		s.resealRows(files, name)
	default:
		put(at, codec.BlockSum(kind, uuid, uint64(block), b[at+4:min(at+codec.HeaderBytes,
			len(b))]))
	}
}

// resealRows makes the checksums of all units of rows right.
func (s *hostileStore) resealRows(files map[string][]byte, name string) {
	rows := append(slices.Clone(s.meta.Features), s.meta.Labels.Rows)
	i := slices.IndexFunc(rows, func(m kv.RowsMeta) bool { return m.Path == name })
	sums := layout.SumsPath(name)
	c := bytes.Clone(s.data[sums])
	seed := codec.Checksum([]byte(layout.KindRows), s.meta.UUID[:])
	const perPage = (codec.HeaderBytes - 4) / 4
	unit := 0
	for data := files[name][codec.HeaderBytes:]; len(data) > 0; unit++ {
		n := min(len(data), rows[i].SumBytes)
		at := (1+unit/perPage)*codec.HeaderBytes + 4 + unit%perPage*4
		binary.LittleEndian.PutUint32(c[at:], codec.ChecksumUpdate(seed, data[:n]))
		data = data[n:]
	}
	for page := 1; page*codec.HeaderBytes < len(c); page++ {
		b := c[page*codec.HeaderBytes:][:codec.HeaderBytes]
		binary.LittleEndian.PutUint32(b, codec.BlockSum(layout.KindSums, s.meta.UUID, uint64(page),
			b[4:]))
	}
	files[sums] = c
}

// catalog replaces the catalog by one that knows the files as they are now, with changed metadata
// or
// another set, if these are not nil.
func (s *hostileStore) catalog(t *testing.T, dir string, files map[string][]byte, meta *kv.Meta,
	sets map[string]*roaring.Bitmap) {
	t.Helper()
	if meta == nil {
		m := *s.meta
		m.Files = slices.Clone(m.Files)
		meta = &m
	}
	if sets == nil {
		sets = s.sets
	}
	for name, b := range files {
		for i, m := range meta.Files {
			if m.Path == name {
				meta.Files[i].Size, meta.Files[i].Checksum = int64(len(b)), codec.Checksum(b)
			}
		}
	}
	path := filepath.Join(dir, "catalog")
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := catalog.New(vfs.Default, path).Create(t.Context(), meta, sets); err != nil {
		t.Fatal(err)
	}
}

// metadata changes values of the catalog's metadata.
func (h *hostility) metadata(t *testing.T, s *hostileStore, dir string) string {
	t.Helper()
	b, err := json.Marshal(s.meta)
	if err != nil {
		t.Fatal(err)
	}
	changed, what := h.scrambleJSON(b)
	var m kv.Meta
	if json.Unmarshal(changed, &m) != nil || m.UUID != s.meta.UUID || m.Format != kv.FormatVersion {
		return "metadata as they were"
	}
	s.catalog(t, dir, nil, &m, nil)
	return "metadata: " + what
}

// scrambleJSON changes some values of JSON.
func (h *hostility) scrambleJSON(b []byte) (changed []byte, what string) {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return b, "nothing"
	}
	var places []func() string
	h.places(v, "", &places)
	for range 1 + h.r.IntN(2) {
		if len(places) > 0 {
			what += " " + places[h.r.IntN(len(places))]()
		}
	}
	changed, err := json.Marshal(v)
	if err != nil {
		return b, "nothing"
	}
	return changed, what
}

// places collects what can be changed in a value that was decoded from JSON.
func (h *hostility) places(v any, path string, to *[]func() string) {
	set := func(old any, put func(any)) {
		*to = append(*to, func() string {
			now := h.other(old)
			put(now)
			return fmt.Sprintf("%s is %.60v", path, now)
		})
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			path := path + "." + k
			*to = append(*to,
				func() string {
					now := h.other(v[k])
					v[k] = now
					return fmt.Sprintf("%s is %.60v",
						path, now)
				})
			h.places(v[k], path, to)
		}
	case []any:
		for i := range v {
			if i < 4 {
				h.places(v[i], fmt.Sprintf("%s[%d]", path, i), to)
				set(v[i], func(now any) { v[i] = now })
			}
		}
	}
}

// other is another value of the kind of v.
func (h *hostility) other(v any) any {
	switch v.(type) {
	case json.Number:
		return []json.Number{"0", "1", "-1", "2", "7", "255", "4096", "65536", "2147483648",
			"4294967295",
			"4294967297", "9223372036854775807", "1000000000000"}[h.r.IntN(13)]
	case string:
		return []string{"", "x", "../../etc/passwd", "/dev/zero", strings.Repeat("a", 1<<16),
			"\x00",
			"f16", "class", "multi", "target", "dense", "in"}[h.r.IntN(12)]
	case bool:
		return h.r.IntN(2) == 0
	case []any:
		return []any{}
	}
	return nil
}

// setOf replaces a split by one that does not fit.
func (h *hostility) setOf(t *testing.T, s *hostileStore, dir string) string {
	t.Helper()
	sets := maps.Clone(s.sets)
	name := []string{"train", "val", "test"}[h.r.IntN(3)]
	set := sets[name].Clone()
	set.Add([]uint32{hostileNodes, 1 << 31, 1<<32 - 1}[h.r.IntN(3)])
	if h.r.IntN(2) == 0 {
		set.Remove(set.Minimum())
	}
	sets[name] = set
	s.catalog(t, dir, nil, nil, sets)
	return fmt.Sprintf("split %s with node %d", name, set.Maximum())
}

// runFile changes a file of the run.
func (h *hostility) runFile(t *testing.T, s *hostileStore, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	what := ""
	switch base := filepath.Base(path); {
	case base == "run.json":
		b, what = h.scrambleRun(b)
	case base == "CURRENT":
		name := []string{"checkpoint-2", "../../topology", "checkpoint-../x", "", "checkpoint--1",
			strings.Repeat("x", 300)}[h.r.IntN(6)]
		b = fmt.Appendf(nil, "%s %08x\n", name, codec.BlockSum("CKPT", s.meta.UUID, 0,
			[]byte(name)))
		what = fmt.Sprintf("%.60q", b)
	case base == "state" && h.r.IntN(2) == 0:
		b, what = h.position(s, b)
	default:
		what = h.scramble(b)
		if base == "state" {
			binary.LittleEndian.PutUint32(b, codec.Checksum(b[4:codec.HeaderBytes]))
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return what
}

// scrambleRun changes settings of a run, with the right checksum.
func (h *hostility) scrambleRun(b []byte) ([]byte, string) {
	b, what := h.scrambleJSON(b)
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		return b, what
	}
	delete(fields, "crc32c")
	body, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return b, what
	}
	body = append(bytes.TrimSuffix(body, []byte("\n}")),
		",\n  \"crc32c\": \""+codec.SealZeros+"\"\n}\n"...)
	codec.SealJSON(body)
	return body, what
}

// position changes the position of a checkpoint, with the right checksums.
func (h *hostility) position(s *hostileStore, b []byte) ([]byte, string) {
	le := binary.LittleEndian
	size := int(le.Uint32(b[36:]))
	text, what := h.scrambleJSON(b[codec.HeaderBytes:][:size])
	out := append(bytes.Clone(b[:codec.HeaderBytes]), text...)
	out = append(out, b[codec.HeaderBytes+size:]...)
	le.PutUint32(out[36:], uint32(len(text)))
	le.PutUint32(out[40:], codec.BlockSum("CKPT", s.meta.UUID, 0, text))
	le.PutUint32(out, codec.Checksum(out[4:codec.HeaderBytes]))
	return out, "position: " + what
}
