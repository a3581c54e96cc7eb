package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/urfave/cli/v2"
)

func treeCommand() *cli.Command {
	return &cli.Command{
		Name:      "tree",
		Usage:     "show the objects that tf.train.Checkpoint saved, with the names that Keras gave them",
		ArgsUsage: "PREFIX",
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
			root, err := ckptfmt.ObjectTree(r)
			if errors.Is(err, ckptfmt.ErrNotFound) {
				return fmt.Errorf("%w; this checkpoint has names alone, `ckpt ls %s` lists them", err, prefix)
			}
			if err != nil {
				return err
			}
			buf := bufio.NewWriter(c.App.Writer)
			fmt.Fprintln(buf, "root")
			p := treePrinter{buf, r}
			if err := p.below(root, 1); err != nil {
				return err
			}
			return buf.Flush()
		},
	}
}

type treePrinter struct {
	w *bufio.Writer
	r ckptfmt.Reader
}

// below prints what an object has, at the given depth.
func (p treePrinter) below(o *ckptfmt.Object, depth int) error {
	indent := strings.Repeat("  ", depth)
	for _, v := range o.Values {
		info, err := p.r.Info(v.Key)
		if err != nil {
			return err
		}
		name := ""
		if v.FullName != "" {
			name = "  " + printable(v.FullName)
		}
		fmt.Fprintf(p.w, "%s= %s%s%s\n", indent, ckptfmt.DTypeName(info.DType), shapeText(info.Shape), name)
	}
	for _, c := range o.Children {
		fmt.Fprintf(p.w, "%s%s\n", indent, printable(c.Name))
		if err := p.below(c, depth+1); err != nil {
			return err
		}
	}
	for _, l := range o.Links {
		fmt.Fprintf(p.w, "%s%s -> %s\n", indent, printable(l.Name), pathText(l.Path))
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
