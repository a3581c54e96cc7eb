package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/urfave/cli/v2"
	"google.golang.org/protobuf/proto"
)

func metaCommand() *cli.Command {
	return &cli.Command{
		Name:      "meta",
		Usage:     "show what a MetaGraph holds: collections, variables, saver, ops",
		ArgsUsage: "PREFIX|FILE",
		Description: `Reads the .meta file beside a checkpoint, or the file of that name, in binary
or text form.`,
		Action: func(c *cli.Context) error {
			a, err := args(c, "PREFIX or FILE")
			if err != nil {
				return err
			}
			name, err := metaFile(a[0])
			if err != nil {
				return err
			}
			m, err := ckptfmt.ReadMetaGraph(name)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w; a checkpoint need not have a MetaGraph", err)
			}
			if err != nil {
				return err
			}
			t, err := describeMeta(m)
			if err != nil {
				return err
			}
			return t.write(c.App.Writer)
		},
	}
}

// metaFile returns the MetaGraph that an argument means.
func metaFile(arg string) (string, error) {
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() && fileOfCheckpoint.FindString(arg) == "" {
		return arg, nil
	}
	prefix, err := prefixOf(arg)
	return ckptfmt.MetaName(prefix), err
}

func describeMeta(m *tfpb.MetaGraphDef) (*table, error) {
	t := &table{}
	info := m.GetMetaInfoDef()
	if v := info.GetTensorflowVersion(); v != "" {
		t.add("tensorflow", printable(v))
	}
	for _, tag := range info.GetTags() {
		t.add("tag", printable(tag))
	}
	nodes := m.GetGraphDef().GetNode()
	t.add("nodes", strconv.Itoa(len(nodes)))
	t.add("functions", strconv.Itoa(len(m.GetGraphDef().GetLibrary().GetFunction())))
	if s := m.GetSaverDef(); s != nil {
		t.add("saver", fmt.Sprintf("V%d, save %s, restore %s, keeps %d", s.GetVersion(), s.GetSaveTensorName(), s.GetRestoreOpName(), s.GetMaxToKeep()))
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetSignatureDef())) {
		t.add("signature", printable(name))
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetCollectionDef())) {
		if err := describeCollection(t, name, m.CollectionDef[name]); err != nil {
			return nil, err
		}
	}
	for _, op := range countOps(nodes) {
		t.add("op "+printable(op.name), strconv.Itoa(op.n))
	}
	return t, nil
}

// variableCollections hold encoded VariableDefs.
var variableCollections = []string{"variables", "trainable_variables", "local_variables", "model_variables", "global_step"}

func describeCollection(t *table, name string, c *tfpb.CollectionDef) error {
	label := "collection " + printable(name)
	for _, node := range c.GetNodeList().GetValue() {
		t.add(label, printable(node))
	}
	for _, b := range c.GetBytesList().GetValue() {
		if !slices.Contains(variableCollections, name) {
			t.add(label, fmt.Sprintf("%d bytes", len(b)))
			continue
		}
		v := &tfpb.VariableDef{}
		if err := proto.Unmarshal(b, v); err != nil {
			return &ckptfmt.CorruptError{Name: name, Part: "collection", Err: err}
		}
		t.add(label, printable(v.GetVariableName()))
	}
	for _, v := range c.GetInt64List().GetValue() {
		t.add(label, strconv.FormatInt(v, 10))
	}
	for _, v := range c.GetFloatList().GetValue() {
		t.add(label, strconv.FormatFloat(float64(v), 'g', -1, 32))
	}
	for _, v := range c.GetAnyList().GetValue() {
		t.add(label, printable(v.GetTypeUrl()))
	}
	return nil
}

type opCount struct {
	name string
	n    int
}

// countOps counts the nodes of each op, the most frequent first.
func countOps(nodes []*tfpb.NodeDef) []opCount {
	counts := map[string]int{}
	for _, n := range nodes {
		counts[n.GetOp()]++
	}
	var list []opCount
	for name, n := range counts {
		list = append(list, opCount{name, n})
	}
	slices.SortFunc(list, func(a, b opCount) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	return list
}
