package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
)

func treeCommand() *cli.Command {
	return &cli.Command{
		Name:      "tree",
		Usage:     "show the objects that tf.train.Checkpoint saved, with the names that Keras gave them",
		ArgsUsage: "PREFIX|FILE",
		Description: `What has no graph of objects, such as a checkpoint of TensorFlow 1 or a file of
another format, is shown by the scopes of its names, as by ` + "`ckpt ls --tree`" + `.`,
		Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			a, err := args(c, "PREFIX")
			if err != nil {
				return err
			}
			r, prefix, err := open(a[0])
			if err != nil {
				return err
			}
			defer r.Close()
			root, err := inspect.Objects(r)
			if errors.Is(err, ckptfmt.ErrNotFound) {
				return treeOfNames(c, r, prefix)
			}
			if err != nil {
				return err
			}
			if c.Bool("json") {
				o, err := objectOf(r, root)
				if err != nil {
					return err
				}
				return printObject(c.App.Writer, o)
			}
			return printTree(c.App.Writer, r, root)
		},
	}
}

// treeOfNames prints the tensors of what has no graph of objects, and then names those
// that cannot be read.
func treeOfNames(c *cli.Context, r ckptfmt.Reader, prefix string) error {
	x, err := readListing(c, r)
	if err != nil {
		return err
	}
	root := scopesOf(x.intact())
	if c.Bool("json") {
		err = printScopesJSON(c.App.Writer, root, 0)
	} else {
		err = printScopes(c.App.Writer, root, 0, true)
	}
	if err == nil && len(x.damaged) > 0 {
		err = sayDamaged(c, prefix, x.damaged)
	}
	return err
}

// printTree prints the objects for people.
func printTree(w io.Writer, r ckptfmt.Reader, root *inspect.Object) error {
	buf := bufio.NewWriter(w)
	fmt.Fprintln(buf, "root")
	p := treePrinter{buf, r, map[string]string{}}
	p.learn(root)
	if err := p.below(root, 1); err != nil {
		return err
	}
	return buf.Flush()
}

type treePrinter struct {
	w *bufio.Writer
	r ckptfmt.Reader
	// names are what the program calls the values of objects, by their paths.
	names map[string]string
}

// learn notes the names below an object.
func (p treePrinter) learn(o *inspect.Object) {
	if len(o.Values) == 1 && o.Values[0].FullName != "" {
		p.names[o.Path] = "  " + printable(o.Values[0].FullName)
	}
	for _, c := range o.Children {
		p.learn(c)
	}
}

// value describes a tensor of an object: its type and shape, and the name that
// the program gave it. One that a copy left out is said to be missing.
func (p treePrinter) value(v inspect.ObjectValue) (string, error) {
	name := ""
	if v.FullName != "" {
		name = "  " + printable(v.FullName)
	}
	info, err := p.r.Info(v.Key)
	if errors.Is(err, ckptfmt.ErrNotFound) {
		return p.apart(v.Key) + name, nil
	}
	if err != nil && isDamage(err) {
		return "= damaged" + name, nil
	}
	if err != nil {
		return "", err
	}
	return "= " + info.TypeName() + shapeText(info.Shape) + name, nil
}

// apart describes a value that is not stored under its key: the state of an iterator, or a
// lookup table, which is two tensors.
func (p treePrinter) apart(key string) string {
	if state, err := p.r.Info(key + iteratorState); err == nil {
		return "= iterator of " + state.TypeName() + shapeText(state.Shape)
	}
	keys, err := p.r.Info(key + "-keys")
	if err != nil {
		return "= missing"
	}
	values, err := p.r.Info(key + "-values")
	if err != nil {
		return "= missing"
	}
	return fmt.Sprintf("= table of %s%s to %s%s", keys.TypeName(), shapeText(keys.Shape), values.TypeName(), shapeText(values.Shape))
}

// iteratorState is what tf.data adds to the key that the graph has for an iterator.
const iteratorState = "_STATE"

// below prints what an object has, at the given depth. An object that is one
// value and no more is a line.
func (p treePrinter) below(o *inspect.Object, depth int) error {
	indent := strings.Repeat("  ", depth)
	for _, v := range o.Values {
		text, err := p.value(v)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.w, "%s%s\n", indent, text)
	}
	for _, c := range o.Children {
		if len(c.Values) == 1 && len(c.Children)+len(c.Links)+len(c.Slots) == 0 {
			text, err := p.value(c.Values[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(p.w, "%s%s %s\n", indent, printable(c.Name), text)
			continue
		}
		fmt.Fprintf(p.w, "%s%s\n", indent, printable(c.Name))
		if err := p.below(c, depth+1); err != nil {
			return err
		}
	}
	for _, l := range o.Links {
		fmt.Fprintf(p.w, "%s%s -> %s%s\n", indent, printable(l.Name), pathText(l.Path), p.names[l.Path])
	}
	for _, s := range o.Slots {
		fmt.Fprintf(p.w, "%sslot %s of %s\n", indent, printable(s.Name), pathText(s.Variable))
	}
	return nil
}

func pathText(path string) string {
	if path == "" {
		return "root"
	}
	return printable(path)
}

// objectJSON is an object of `ckpt tree --json`, the root first.
type objectJSON struct {
	Path     string        `json:"path"`
	Values   []valueJSON   `json:"values,omitempty"`
	Children []*objectJSON `json:"children,omitempty"`
	Links    []linkJSON    `json:"links,omitempty"`
	Slots    []slotJSON    `json:"slots,omitempty"`
}

type valueJSON struct {
	Key      jsonName `json:"key"`
	FullName jsonName `json:"full_name,omitempty"`
	DType    string   `json:"dtype,omitempty"` // missing of tables, where a copy left the tensor out, and where it is damaged
	Shape    []int64  `json:"shape"`           // null there
}

type linkJSON struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

type slotJSON struct {
	Name     string `json:"name"`
	Variable string `json:"variable"`
	Slot     string `json:"slot"`
}

// objectOf describes an object and all below it.
func objectOf(r ckptfmt.Reader, o *inspect.Object) (*objectJSON, error) {
	out := &objectJSON{Path: o.Path}
	for _, v := range o.Values {
		info, err := r.Info(v.Key)
		if err != nil && !errors.Is(err, ckptfmt.ErrNotFound) && !isDamage(err) {
			return nil, err
		}
		value := valueJSON{Key: jsonName(v.Key), FullName: jsonName(v.FullName)}
		if err == nil {
			value.DType, value.Shape = info.TypeName(), append([]int64{}, info.Shape...)
		}
		out.Values = append(out.Values, value)
	}
	for _, c := range o.Children {
		child, err := objectOf(r, c)
		if err != nil {
			return nil, err
		}
		out.Children = append(out.Children, child)
	}
	for _, l := range o.Links {
		out.Links = append(out.Links, linkJSON(l))
	}
	for _, s := range o.Slots {
		out.Slots = append(out.Slots, slotJSON(s))
	}
	return out, nil
}
