package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/savedmodel"
)

func metaCommand() *cli.Command {
	return &cli.Command{
		Name:      "meta",
		Usage:     "show what a MetaGraph holds: collections, variables, saver, ops",
		ArgsUsage: "PREFIX|FILE",
		Description: `Reads the .meta file next to a checkpoint, or the file of that name, in binary
or text form. Of a SavedModel, the MetaGraph with the tag serve, or the only one, is
meant, unless --tags names another.`,
		Flags: []cli.Flag{jsonFlag(), tagsFlag()},
		Action: func(c *cli.Context) error {
			a, err := args(c, "PREFIX or FILE")
			if err != nil {
				return err
			}
			m, _, err := readMeta(a[0], c.StringSlice("tags")...)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w; a checkpoint need not have a MetaGraph", err)
			}
			if err != nil {
				return err
			}
			d, err := describeMeta(m)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return printObject(c.App.Writer, d)
			}
			return d.table().Print(c.App.Writer, terminal.Style{})
		},
	}
}

func tagsFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "tags", Usage: "the MetaGraph of a SavedModel that has this `TAG`; all of several"}
}

// readMeta reads the MetaGraph that an argument means, and returns where it is. Only those
// of SavedModels are chosen by tags.
func readMeta(arg string, tags ...string) (m *tfpb.MetaGraphDef, from string, err error) {
	if dir := savedModelOf(arg); dir != "" {
		m, err = savedmodel.Read(dir, tags...)
		return m, dir, err
	}
	if len(tags) > 0 {
		return nil, "", usagef("--tags is about SavedModels; %s is none", arg)
	}
	if from, err = metaFile(arg); err != nil {
		return nil, "", err
	}
	m, err = metagraph.ReadSaved(from)
	return m, from, err
}

// savedModelOf returns the folder of the SavedModel that an argument means, by its name or
// that of the file with its MetaGraphs; "" where it means none.
func savedModelOf(arg string) string {
	if savedmodel.Is(arg) {
		return arg
	}
	if dir := filepath.Dir(arg); strings.HasPrefix(filepath.Base(arg), "saved_model.pb") && savedmodel.Is(dir) {
		return dir
	}
	return ""
}

// metaFile returns the MetaGraph that an argument means. A V1 checkpoint has a
// file of the name of its prefix, which is not one.
func metaFile(arg string) (string, error) {
	if name := layout.MetaName(arg); isFile(name) {
		return name, nil
	}
	if isFile(arg) && fileOfCheckpoint().FindString(arg) == "" {
		return arg, noMetaGraph(arg)
	}
	f, err := find(arg)
	if err == nil && !f.Kind.IsCheckpoint() {
		err = withoutMetaGraph(f.Path, f.Kind.String())
	}
	return layout.MetaName(f.Path), err
}

// noMetaGraph returns an error for a file whose bytes are those of tensors.
func noMetaGraph(name string) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	kind, err := formats.Sniff(from, info.Size())
	if wrong := new(formats.KindError); errors.As(err, &wrong) {
		return withoutMetaGraph(name, wrong.Is)
	}
	if err == nil && !kind.IsCheckpoint() {
		return withoutMetaGraph(name, kind.String())
	}
	return nil // its reader says what is wrong, if anything is
}

func withoutMetaGraph(path, is string) error {
	return &formats.KindError{Path: path, Is: is, Next: "it has no MetaGraph"}
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// metaJSON is what `ckpt meta --json` prints.
type metaJSON struct {
	TensorFlow string     `json:"tensorflow,omitempty"` // version that wrote it
	Tags       []string   `json:"tags"`
	Nodes      int        `json:"nodes"`
	Functions  int        `json:"functions"`
	Saver      *saverJSON `json:"saver"` // null when there is none
	Signatures []string   `json:"signatures"`
	// Collections have names of nodes and variables, numbers, types, and the
	// sizes of what cannot be shown.
	Collections map[string][]string `json:"collections"`
	Ops         map[string]int      `json:"ops"` // nodes of each
}

type saverJSON struct {
	Version  int32  `json:"version"`
	Filename string `json:"filename_tensor_name"`
	Save     string `json:"save_tensor_name"`
	Restore  string `json:"restore_op_name"`
	Keeps    int32  `json:"max_to_keep"`
	Sharded  bool   `json:"sharded"`
}

func describeMeta(m *tfpb.MetaGraphDef) (*metaJSON, error) {
	d := &metaJSON{
		TensorFlow:  m.GetMetaInfoDef().GetTensorflowVersion(),
		Tags:        append([]string{}, m.GetMetaInfoDef().GetTags()...),
		Nodes:       len(m.GetGraphDef().GetNode()),
		Functions:   len(m.GetGraphDef().GetLibrary().GetFunction()),
		Signatures:  append([]string{}, slices.Sorted(maps.Keys(m.GetSignatureDef()))...),
		Collections: map[string][]string{},
		Ops:         map[string]int{},
	}
	if s := m.GetSaverDef(); s != nil {
		d.Saver = &saverJSON{int32(s.GetVersion()), s.GetFilenameTensorName(), s.GetSaveTensorName(), s.GetRestoreOpName(), s.GetMaxToKeep(), s.GetSharded()}
	}
	for name, c := range m.GetCollectionDef() {
		values, err := describeCollection(name, c)
		if err != nil {
			return nil, err
		}
		d.Collections[name] = values
	}
	for _, n := range m.GetGraphDef().GetNode() {
		d.Ops[n.GetOp()]++
	}
	return d, nil
}

// table is the same for people.
func (d *metaJSON) table() *terminal.Table {
	t := new(terminal.Table)
	if d.TensorFlow != "" {
		t.Add("tensorflow", printable(d.TensorFlow))
	}
	for _, tag := range d.Tags {
		t.Add("tag", printable(tag))
	}
	t.Add("nodes", strconv.Itoa(d.Nodes))
	t.Add("functions", strconv.Itoa(d.Functions))
	if s := d.Saver; s != nil {
		t.Add("saver", fmt.Sprintf("V%d, save %s, restore %s, keeps %d", s.Version, printable(s.Save), printable(s.Restore), s.Keeps))
	}
	for _, name := range d.Signatures {
		t.Add("signature", printable(name))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Collections)) {
		for _, value := range d.Collections[name] {
			t.Add("collection "+printable(name), printable(value))
		}
	}
	for _, op := range d.opsByCount() {
		t.Add("op "+printable(op), strconv.Itoa(d.Ops[op]))
	}
	return t
}

// opsByCount returns the ops, the most frequent first.
func (d *metaJSON) opsByCount() []string {
	return slices.SortedFunc(maps.Keys(d.Ops), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.Ops[b], d.Ops[a]), cmp.Compare(a, b))
	})
}

// variableCollections hold encoded VariableDefs.
var variableCollections = []string{"variables", "trainable_variables", "local_variables", "model_variables", "global_step"}

func describeCollection(name string, c *tfpb.CollectionDef) ([]string, error) {
	values := append([]string{}, c.GetNodeList().GetValue()...)
	for _, b := range c.GetBytesList().GetValue() {
		if !slices.Contains(variableCollections, name) {
			values = append(values, fmt.Sprintf("%d bytes", len(b)))
			continue
		}
		v := &tfpb.VariableDef{}
		if err := proto.Unmarshal(b, v); err != nil {
			return nil, &ckptfmt.CorruptError{Name: name, Part: "collection", Err: err}
		}
		values = append(values, v.GetVariableName())
	}
	for _, v := range c.GetInt64List().GetValue() {
		values = append(values, strconv.FormatInt(v, 10))
	}
	for _, v := range c.GetFloatList().GetValue() {
		values = append(values, strconv.FormatFloat(float64(v), 'g', -1, 32))
	}
	for _, v := range c.GetAnyList().GetValue() {
		values = append(values, v.GetTypeUrl())
	}
	return values, nil
}
