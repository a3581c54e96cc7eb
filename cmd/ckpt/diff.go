package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show what differs between two checkpoints",
		ArgsUsage: "PREFIX PREFIX",
		Description: `Exits with 4 if anything differs, and with 3 if a tensor of either cannot be
read: it is named, and the others are compared.` + namesHelp,
		Flags: []cli.Flag{
			jsonFlag(), namesFlag(),
			&cli.Float64Flag{Name: "atol", Usage: "take numbers as equal that differ by at most `N`"},
			&cli.Float64Flag{Name: "rtol", Usage: "or at most `N` times the second one; with --atol, the sum of both"},
		},
		Action: diff,
	}
}

// diffJSON is an element of `ckpt diff A B --json`.
type diffJSON struct {
	Name     jsonName `json:"name"`
	Kind     string   `json:"kind"` // "only in a", "only in b", "type", "shape", "values", "damaged"
	A        string   `json:"a,omitempty"`
	B        string   `json:"b,omitempty"`
	Elements int64    `json:"elements,omitempty"`
	MaxAbs   *double  `json:"max_abs,omitempty"`
	MaxRel   *double  `json:"max_rel,omitempty"`
	Error    string   `json:"error,omitempty"` // damaged: how
}

func diff(c *cli.Context) error {
	names, err := args(c, "PREFIX", "PREFIX")
	if err != nil {
		return err
	}
	within := &inspect.DiffOptions{Abs: c.Float64("atol"), Rel: c.Float64("rtol")}
	if !(within.Abs >= 0 && within.Rel >= 0) { // nor NaN
		return usagef("--atol and --rtol want numbers of 0 or more")
	}
	a, b, err := openAligned(c, names[0], names[1])
	if err != nil {
		return err
	}
	defer a.Close()
	defer b.Close()
	list := []diffJSON{}
	damaged := 0
	for d, err := range inspect.Diff(c.Context, watch(c, a), watch(c, b), within) {
		if err != nil && d.Name == "" {
			return err
		}
		if err != nil {
			damaged++
			list = append(list, diffJSON{Name: jsonName(d.Name), Kind: "damaged", Error: err.Error()})
			continue
		}
		list = append(list, describe(d))
	}
	progressOf(c).Clear()
	if c.Bool("json") {
		err = printList(c.App.Writer, list)
	} else {
		err = printDiff(c.App.Writer, list)
	}
	if err != nil || len(list) == 0 {
		return err
	}
	if damaged > 0 {
		return exitError(exitDamaged)
	}
	return exitError(exitDiffers)
}

func printDiff(w io.Writer, list []diffJSON) error {
	for _, d := range list {
		if _, err := fmt.Fprintln(w, d.text()); err != nil {
			return err
		}
	}
	return nil
}

func describe(d inspect.Difference) diffJSON {
	kind := func(t *ckptfmt.TensorInfo) string { return ckptfmt.DTypeName(t.DType) + shapeText(t.Shape) }
	out := diffJSON{Name: jsonName(d.Name), Elements: d.Elements}
	if d.A != nil {
		out.A = kind(d.A)
	}
	if d.B != nil {
		out.B = kind(d.B)
	}
	switch {
	case d.B == nil:
		out.Kind = "only in a"
	case d.A == nil:
		out.Kind = "only in b"
	case d.A.DType != d.B.DType:
		out.Kind = "type"
	case out.A != out.B:
		out.Kind = "shape"
	default:
		out.Kind = "values"
		if !d.NotNumbers {
			maxAbs, maxRel := double(d.MaxAbs), double(d.MaxRel)
			out.MaxAbs, out.MaxRel = &maxAbs, &maxRel
		}
	}
	return out
}

func (d diffJSON) text() string {
	name := printable(string(d.Name))
	switch {
	case d.Kind == "damaged":
		return fmt.Sprintf("? %s damaged: %s", name, d.Error)
	case d.Kind == "only in a":
		return fmt.Sprintf("- %s %s", name, d.A)
	case d.Kind == "only in b":
		return fmt.Sprintf("+ %s %s", name, d.B)
	case d.Kind != "values":
		return fmt.Sprintf("! %s %s -> %s", name, d.A, d.B)
	case d.MaxAbs == nil:
		return fmt.Sprintf("~ %s %s: %d elements differ", name, d.A, d.Elements)
	}
	return fmt.Sprintf("~ %s %s: %d elements differ, by at most %.6g (relative %.6g)",
		name, d.A, d.Elements, float64(*d.MaxAbs), float64(*d.MaxRel))
}
