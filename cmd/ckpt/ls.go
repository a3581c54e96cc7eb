package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/names"
	"github.com/trainerd/trainerd/cmd/internal/garbage"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

func jsonFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print JSON"} }

func lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list the checkpoints below a directory and why each stays, or the tensors of a checkpoint",
		ArgsUsage: "DIR|PREFIX|FILE",
		Description: `Of a directory, the checkpoints in it and in the folders below it are listed, with
the metrics by which models are compared, and WHY each stays: current (a restart
begins with it), pinned (by PREFIX.pin, trainerd keep), a rule of the config of
its run, or a place among the best. "goes next": the next save removes it. Without
such a config, "listed" are those that the file checkpoint names, which a Saver
removes in turn; nothing removes one that is not listed.

Of the folder of a SavedModel, or of safetensors, the tensors are listed. Where a
folder below DIR cannot be read, the others are listed and the exit code is 1.

With --tree the tensors are shown below their scopes, the parts of their names
before slashes (dots where no name has a slash), each with the number and size
of all that is in it; --depth shows only so many levels, --scopes no tensors.
--csv begins with a line of names. Of a partitioned tensor --long shows the
place of each slice. The TIME of a checkpoint is when it was saved: as the
checkpoint file says, else its manifest, else the time of its index.

In the logdir of a program that trainerd keeps alive, the checkpoints that it has
verified are listed too, of any format, with when that was. "changed" in its place
says that the files are not those that were verified.

A tensor whose entry in the index is damaged is marked ("error" in JSON and
CSV); the others are listed all the same, and the exit code is 3.` + namesHelp + nameHelp,
		Flags: []cli.Flag{
			jsonFlag(),
			namesFlag(),
			&cli.BoolFlag{Name: "csv", Usage: "print comma-separated values"},
			&cli.BoolFlag{Name: "long", Aliases: []string{"l"}, Usage: "of tensors also shard, offset, checksum and slices"},
			&cli.BoolFlag{Name: "tree", Usage: "show the tensors below their scopes, with totals"},
			&cli.BoolFlag{Name: "scopes", Usage: "show the scopes alone, with totals"},
			&cli.StringFlag{Name: "sort", Value: "name", Usage: "order tensors by `WHAT`: name, or size, the largest first"},
			&cli.IntFlag{Name: "depth", Usage: "show `N` levels of scopes"},
		},
		Action: func(c *cli.Context) error {
			a, err := args(c, "DIR or PREFIX")
			if err != nil {
				return err
			}
			if err := checkLs(c); err != nil {
				return err
			}
			if isLogdir(a[0]) && !c.Bool("tree") && !c.Bool("scopes") {
				return lsCheckpoints(c, a[0])
			}
			return lsTensors(c, a[0])
		},
	}
}

func checkLs(c *cli.Context) error {
	switch {
	case c.Bool("json") && c.Bool("csv"):
		return usagef("--json and --csv exclude each other")
	case c.Int("depth") < 0 || c.IsSet("depth") && c.Int("depth") == 0:
		return usagef("--depth must be 1 or more")
	case c.String("sort") != "name" && c.String("sort") != "size":
		return usagef("--sort takes name or size, not %q", c.String("sort"))
	case c.String("sort") == "size" && (c.Bool("long") || c.Bool("tree") || c.Bool("scopes")):
		return usagef("--sort size is about a list of tensors, without --long, --tree and --scopes")
	case c.Bool("long") && c.IsSet("names") && c.String("names") != "object":
		return usagef("--long shows what is stored, under its keys; leave --names out")
	case c.IsSet("depth") && !c.Bool("tree") && !c.Bool("scopes"):
		return usagef("--depth is about --tree and --scopes")
	}
	return nil
}

// checkState warns when the state file does not lead to a checkpoint.
func checkState(w io.Writer, dir string) error {
	if _, err := ckptdir.LatestCheckpoint(dir, nil); err != nil {
		fmt.Fprintf(w, "ckpt: the checkpoint file names none of them: %v\n", err)
	}
	return nil
}

// tensorJSON is an element of `ckpt ls PREFIX --json`. What --long adds is
// left out without it.
type tensorJSON struct {
	Name   jsonName `json:"name"`
	DType  string   `json:"dtype"`
	Shape  []int64  `json:"shape"`
	Bytes  int64    `json:"bytes"`
	Shard  *int     `json:"shard,omitempty"`
	Offset *int64   `json:"offset,omitempty"`
	CRC32C *uint32  `json:"crc32c,omitempty"` // masked, as it is stored

	// Of a partitioned tensor: the text forms of its slices, and where they are.
	Slices []string    `json:"slices,omitempty"`
	Parts  []sliceJSON `json:"parts,omitempty"`

	// The name that Keras has for it, where that is another.
	Keras jsonName `json:"keras,omitempty"`

	Error string `json:"error,omitempty"` // why it cannot be read
}

// sliceJSON is a slice of a partitioned tensor. A V1 checkpoint has no
// checksums for it, and no place but its file.
type sliceJSON struct {
	Slice  string `json:"slice"`
	Bytes  int64  `json:"bytes"`
	Shard  int    `json:"shard"`
	Offset int64  `json:"offset"`
	CRC32C uint32 `json:"crc32c"`
}

// isLogdir reports whether an argument is a directory whose checkpoints, and those below it, are
// meant: one that is a model of its own has them if a program has trained there under trainerd.
func isLogdir(arg string) bool { return isDir(arg) && (!isModelFolder(arg) || hasRecords(arg)) }

// isModelFolder reports whether a directory has no checkpoints, but a model of
// another format.
func isModelFolder(dir string) bool {
	f, err := formats.FindIn(dir)
	if wrong := new(formats.KindError); !errors.As(err, &wrong) && (err != nil || f.Kind == formats.Checkpoint) {
		return false
	}
	list, err := ckptdir.List(dir)
	return err == nil && len(list) == 0
}

func lsTensors(c *cli.Context, arg string) error {
	garbage.CollectLate()
	r, prefix, err := openNamed(c, arg)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, other := r.(*formats.Reader); other && c.Bool("long") {
		return usagef("--long shows shards and checksums, which only TensorFlow checkpoints have; %s is none", prefix)
	}
	if c.String("sort") == "size" {
		r = bySize{r}
	}
	var damaged []ckptfmt.DamagedTensor
	if slices.ContainsFunc([]string{"long", "json", "csv", "tree", "scopes"}, c.Bool) {
		damaged, err = lsInForm(c, r)
	} else {
		damaged, err = lsShort(c, r)
	}
	if err != nil && isDamage(err) {
		err = fmt.Errorf("%w; `ckpt verify %s` shows all damage", err, prefix)
	}
	if err == nil && len(damaged) > 0 {
		err = sayDamaged(c, prefix, damaged)
	}
	return err
}

// lsShort prints a line for each tensor. Like lsInForm it returns those that
// cannot be read.
func lsShort(c *cli.Context, r ckptfmt.Reader) ([]ckptfmt.DamagedTensor, error) {
	t, err := newTensorLines(r)
	if err != nil {
		return nil, err
	}
	if err := t.print(c.App.Writer, terminal.StyleFor(c.App.Writer)); err != nil {
		return nil, err
	}
	return t.damaged, t.sum.summarise(c.App.ErrWriter)
}

// lsInForm prints tensors as the flags say.
func lsInForm(c *cli.Context, r ckptfmt.Reader) ([]ckptfmt.DamagedTensor, error) {
	x, err := readListing(c, r)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Bool("tree") || c.Bool("scopes"):
		err = lsScopes(c, x.intact())
	case c.Bool("json"):
		err = printTensorsJSON(c.App.Writer, x, c.Bool("long"))
	case c.Bool("csv"):
		err = printTensorsCSV(c.App.Writer, x, c.Bool("long"))
	default:
		if err = printTensors(c.App.Writer, x); err == nil {
			err = summarise(c.App.ErrWriter, x.intact())
		}
	}
	return x.damaged, err
}

// listing is what a checkpoint holds.
type listing struct {
	tensors []ckptfmt.TensorInfo // also damaged ones
	parts   map[string][]sliceJSON
	damaged []ckptfmt.DamagedTensor
	errors  map[string]error // of damaged ones
	names   *names.Table     // for JSON
}

func readListing(c *cli.Context, r ckptfmt.Reader) (*listing, error) {
	x := &listing{errors: make(map[string]error)}
	for info, err := range r.Tensors() {
		if err != nil && info.Name == "" {
			return nil, err
		}
		if err != nil {
			x.fail(ckptfmt.DamagedTensor{Name: info.Name, Err: err})
		}
		x.tensors = append(x.tensors, info)
	}
	if x.names = (&names.Table{}); c.Bool("json") {
		x.names = tableOfNames(r)
	}
	b, ok := r.(*ckptfmt.BundleReader)
	if !ok || !c.Bool("long") {
		return x, nil
	}
	var damaged []ckptfmt.DamagedTensor
	var err error
	if x.parts, damaged, err = slicesOf(b); err != nil {
		return nil, err
	}
	for _, d := range damaged {
		x.fail(d)
	}
	return x, nil
}

// fail notes a tensor that cannot be read.
func (x *listing) fail(d ckptfmt.DamagedTensor) {
	if x.errors[d.Name] == nil {
		x.damaged = append(x.damaged, d)
		x.errors[d.Name] = d.Err
	}
}

func (x *listing) intact() []ckptfmt.TensorInfo {
	return slices.DeleteFunc(slices.Clone(x.tensors), func(t ckptfmt.TensorInfo) bool { return x.errors[t.Name] != nil })
}

// lsScopes prints tensors below their scopes.
func lsScopes(c *cli.Context, list []ckptfmt.TensorInfo) error {
	w, root, depth := c.App.Writer, scopesOf(list), c.Int("depth")
	switch {
	case c.Bool("json"):
		return printScopesJSON(w, root, depth)
	case c.Bool("csv"):
		return printScopesCSV(w, root, depth)
	}
	if err := printScopes(w, root, depth, !c.Bool("scopes")); err != nil {
		return err
	}
	return summarise(c.App.ErrWriter, list)
}

// slicesOf returns where the slices of partitioned tensors are, and the tensors
// that cannot be read.
func slicesOf(r *ckptfmt.BundleReader) (map[string][]sliceJSON, []ckptfmt.DamagedTensor, error) {
	parts, damaged, err := ckptfmt.IntactParts(r)
	if err != nil {
		return nil, nil, err
	}
	found := make(map[string][]sliceJSON)
	for _, p := range parts {
		if p.IsWhole() {
			continue
		}
		size, err := p.Size()
		if err != nil {
			return nil, nil, err
		}
		found[p.Name] = append(found[p.Name], sliceJSON{p.Slice.String(), size, p.Shard, p.Offset, p.CRC})
	}
	return found, damaged, nil
}

func printTensorsJSON(w io.Writer, x *listing, long bool) error {
	out := make([]tensorJSON, len(x.tensors))
	for i, t := range x.tensors {
		out[i] = tensorJSON{Name: jsonName(t.Name), DType: t.TypeName(), Shape: append([]int64{}, t.Shape...), Bytes: t.Bytes}
		if name := x.names.Name(names.Keras, t.Name); name != t.Name {
			out[i].Keras = jsonName(name)
		}
		if err := x.errors[t.Name]; err != nil {
			out[i].Error = err.Error()
		}
		if !long {
			continue
		}
		if len(t.Slices) == 0 {
			out[i].Shard, out[i].Offset, out[i].CRC32C = &x.tensors[i].Shard, &x.tensors[i].Offset, &x.tensors[i].CRC
		}
		for _, s := range t.Slices {
			out[i].Slices = append(out[i].Slices, s.String())
		}
		out[i].Parts = x.parts[t.Name]
	}
	return printList(w, out)
}

// printTensors prints what --long asks for.
func printTensors(w io.Writer, x *listing) error {
	t := terminal.NewTable(append(tensorColumns[:], "SHARD", "OFFSET", "CRC32C", "SLICE")...)
	t.MaxWidth = nameWidth
	for _, info := range x.tensors {
		row := tensorRow(&info)
		switch {
		case x.errors[info.Name] != nil:
			t.Add(append(row, "-", "-", "-", damagedMark)...)
		case len(info.Slices) == 0:
			t.Add(append(row, placeText(info.Shard, info.Offset, info.CRC)...)...)
		default:
			t.Add(append(row, "-", "-", "-", fmt.Sprintf("%d slices", len(info.Slices)))...)
			for _, row := range sliceRows("", info, x.parts[info.Name]) {
				t.Add(row...)
			}
		}
	}
	return t.Print(w, terminal.StyleFor(w))
}

func placeText(shard int, offset int64, crc uint32) []string {
	return []string{strconv.Itoa(shard), strconv.FormatInt(offset, 10), fmt.Sprintf("%08x", crc)}
}

// sliceRows has a row for each slice of a partitioned tensor, in which the
// name is name.
func sliceRows(name string, x ckptfmt.TensorInfo, parts []sliceJSON) [][]string {
	var rows [][]string
	for _, p := range parts {
		shape := ""
		if s, err := ckptfmt.ParseTensorSlice(p.Slice); err == nil {
			if dims, err := s.Shape(x.Shape); err == nil {
				shape = shapeText(dims)
			}
		}
		row := []string{name, dtype.Name(x.DType), shape, strconv.FormatInt(p.Bytes, 10)}
		rows = append(rows, append(append(row, placeText(p.Shard, p.Offset, p.CRC32C)...), p.Slice))
	}
	return rows
}

// printTensorsCSV has a row for each slice in the place of a partitioned
// tensor's row if its place is asked for. Where any tensor is damaged, the last
// column says how.
func printTensorsCSV(w io.Writer, x *listing, long bool) error {
	header := []string{"name", "dtype", "shape", "bytes"}
	if long {
		header = append(header, "shard", "offset", "crc32c", "slice")
	}
	var rows [][]string
	add := func(row []string, err error) {
		row = append(row, make([]string, len(header)-len(row))...)
		if err != nil {
			row = append(row, err.Error())
		} else if len(x.damaged) > 0 {
			row = append(row, "")
		}
		rows = append(rows, row)
	}
	for _, t := range x.tensors {
		row := []string{escapeName(t.Name), t.TypeName(), shapeText(t.Shape), strconv.FormatInt(t.Bytes, 10)}
		switch err := x.errors[t.Name]; {
		case err != nil:
			add(row, err)
		case long && len(x.parts[t.Name]) > 0:
			for _, row := range sliceRows(row[0], t, x.parts[t.Name]) {
				add(row, nil)
			}
		case long:
			add(append(row, placeText(t.Shard, t.Offset, t.CRC)...), nil)
		default:
			add(row, nil)
		}
	}
	if len(x.damaged) > 0 {
		header = append(header, "error")
	}
	return printCSV(w, append([][]string{header}, rows...))
}

// summarise adds up what the tensors hold.
func summarise(w io.Writer, list []ckptfmt.TensorInfo) error {
	var t totals
	for i := range list {
		if err := t.add(&list[i]); err != nil {
			return err
		}
	}
	return t.summarise(w)
}
