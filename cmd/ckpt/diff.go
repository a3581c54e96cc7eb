package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show what differs between two checkpoints",
		ArgsUsage: "PREFIX PREFIX",
		Description: `Of tensors of numbers the line has how many elements differ by more than --atol
and --rtol allow, and the largest distances, absolute and relative to the larger
number. --stats adds where the largest is, the mean distance over all elements,
and the cosine of the angle between the tensors. --sort puts the largest first,
and of cosines the smallest; what is only in one checkpoint, and other types and
shapes, come before. The graph of objects is compared if both checkpoints have one.

Exits with 4 if anything differs, and with 3 if a tensor of either cannot be
read: it is named, and the others are compared. A tensor of a kind that is not
supported is named too; if nothing else differs the exit code is 1.` + namesHelp,
		Flags: []cli.Flag{
			jsonFlag(), namesFlag(),
			&cli.Float64Flag{Name: "atol", Usage: "take numbers as equal that differ by at most `N`"},
			&cli.Float64Flag{Name: "rtol", Usage: "or at most `N` times the second one; with --atol, the sum of both"},
			&cli.BoolFlag{Name: "stats", Usage: "also show the place of the largest distance, the mean and the cosine"},
			&cli.StringFlag{Name: "sort", Value: "name", Usage: "order by `WHAT`: name, max_abs, max_rel, mean_abs, elements or cosine"},
			&cli.IntFlag{Name: "top", Usage: "print only the first `N` lines"},
		},
		Action: diff,
	}
}

// diffJSON is an element of `ckpt diff A B --json`.
type diffJSON struct {
	Name     jsonName `json:"name"`
	Kind     string   `json:"kind"` // "only in a", "only in b", "type", "shape", "values", "damaged", "unsupported"
	A        string   `json:"a,omitempty"`
	B        string   `json:"b,omitempty"`
	Elements int64    `json:"elements,omitempty"`
	MaxAbs   *double  `json:"max_abs,omitempty"`
	MaxRel   *double  `json:"max_rel,omitempty"`
	MeanAbs  *double  `json:"mean_abs,omitempty"`
	Cosine   *double  `json:"cosine,omitempty"` // with --stats
	MaxAt    []int64  `json:"max_at,omitzero"`  // where the largest distance is, and what is there
	MaxA     *number  `json:"max_a,omitempty"`
	MaxB     *number  `json:"max_b,omitempty"`
	Error    string   `json:"error,omitempty"` // why it was not compared

	unit string // of Elements
}

func diff(c *cli.Context) error {
	names, err := args(c, "PREFIX", "PREFIX")
	if err != nil {
		return err
	}
	within := &inspect.DiffOptions{Abs: c.Float64("atol"), Rel: c.Float64("rtol"), Cosine: c.Bool("stats")}
	if err := checkDiff(c, within); err != nil {
		return err
	}
	a, b, err := openAligned(c, names[0], names[1])
	if err != nil {
		return err
	}
	defer a.Close()
	defer b.Close()
	list := []diffJSON{}
	for d, err := range inspect.Diff(c.Context, watch(c, a), watch(c, b), within) {
		if err != nil && d.Name == "" {
			return err
		}
		if err != nil {
			list = append(list, uncompared(d, err))
			continue
		}
		list = append(list, describe(d, within.Cosine))
	}
	progressOf(c).Clear()
	sortDiff(list, c.String("sort"))
	most := len(list)
	if c.IsSet("top") {
		most = c.Int("top")
	}
	if c.Bool("json") {
		err = printList(c.App.Writer, firstOf(list, most))
	} else {
		err = printDiff(c.App.Writer, firstOf(byCause(list, causeOf), most))
	}
	if err != nil {
		return err
	}
	return endOfDiff(list)
}

func firstOf[T any](list []T, n int) []T { return list[:min(n, len(list))] }

// causeOf is the same for tensors that were not compared for the same reason, and differs
// for all others.
func causeOf(d diffJSON) [3]string {
	if d.Error != "" {
		return [3]string{d.Kind, d.Error}
	}
	return [3]string{d.Kind, "", string(d.Name)}
}

// endOfDiff returns how the command ends, by what it has found.
func endOfDiff(list []diffJSON) error {
	is := func(kind string) func(diffJSON) bool { return func(d diffJSON) bool { return d.Kind == kind } }
	switch {
	case len(list) == 0:
		return nil
	case slices.ContainsFunc(list, is("damaged")):
		return exitError(exitDamaged)
	case len(slices.DeleteFunc(slices.Clone(list), is(kindUnsupported))) == 0:
		return exitError(exitFailed) // what could be compared is equal
	}
	return exitError(exitDiffers)
}

// diffOrders are what --sort takes, besides name, and what is ordered: the
// largest first.
var diffOrders = map[string]func(d *diffJSON) *double{
	"max_abs":  func(d *diffJSON) *double { return d.MaxAbs },
	"max_rel":  func(d *diffJSON) *double { return d.MaxRel },
	"mean_abs": func(d *diffJSON) *double { return d.MeanAbs },
	"elements": func(d *diffJSON) *double {
		if d.Kind != "values" {
			return nil
		}
		n := double(d.Elements)
		return &n
	},
	"cosine": func(d *diffJSON) *double {
		if d.Cosine == nil {
			return nil
		}
		angle := -*d.Cosine
		return &angle
	},
}

func checkDiff(c *cli.Context, within *inspect.DiffOptions) error {
	if !(within.Abs >= 0 && within.Rel >= 0) { // nor NaN
		return usagef("--atol and --rtol want numbers of 0 or more")
	}
	if by := c.String("sort"); by != "name" && diffOrders[by] == nil {
		return usagef("--sort takes name, max_abs, max_rel, mean_abs, elements or cosine, not %q", by)
	}
	if c.String("sort") == "cosine" && !c.Bool("stats") {
		return usagef("--sort cosine needs --stats")
	}
	if c.IsSet("top") && c.Int("top") < 1 {
		return usagef("--top must be 1 or more")
	}
	return nil
}

// sortDiff orders a list by a figure, what has none first.
func sortDiff(list []diffJSON, by string) {
	figure := diffOrders[by]
	if figure == nil {
		return // they are ordered by name
	}
	slices.SortStableFunc(list, func(a, b diffJSON) int {
		x, y := figure(&a), figure(&b)
		switch {
		case x == nil || y == nil:
			return cmp.Compare(boolInt(x != nil), boolInt(y != nil))
		case math.IsNaN(float64(*x)) || math.IsNaN(float64(*y)):
			return cmp.Compare(boolInt(!math.IsNaN(float64(*x))), boolInt(!math.IsNaN(float64(*y))))
		}
		return cmp.Compare(*y, *x)
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// placeIn returns the index of an element in each dimension.
func placeIn(shape []int64, at int64) []int64 {
	index := make([]int64, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		index[i] = at % shape[i]
		at /= shape[i]
	}
	return index
}

// printDiff prints a line for each difference, and for each reason why tensors were not
// compared.
func printDiff(w io.Writer, list [][]diffJSON) error {
	for _, of := range list {
		text := of[0].text()
		if of[0].Error != "" {
			text = uncomparedText(of)
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

// uncompared says why a tensor was not compared.
func uncompared(d inspect.Difference, err error) diffJSON {
	kind := "damaged"
	if isUnsupported(err) {
		kind = kindUnsupported
	}
	return diffJSON{Name: jsonName(d.Name), Kind: kind, Error: err.Error()}
}

func describe(d inspect.Difference, stats bool) diffJSON {
	kind := func(t *ckptfmt.TensorInfo) string { return t.TypeName() + shapeText(t.Shape) }
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
	case d.A.TypeName() != d.B.TypeName():
		out.Kind = "type"
	case out.A != out.B:
		out.Kind = "shape"
	default:
		out.Kind, out.unit = "values", "elements"
		if d.A.Foreign != "" {
			out.unit = "bytes"
		}
		if !d.NotNumbers {
			maxAbs, maxRel, mean := double(d.MaxAbs), double(d.MaxRel), double(d.MeanAbs)
			out.MaxAbs, out.MaxRel, out.MeanAbs = &maxAbs, &maxRel, &mean
			out.MaxAt, out.MaxA, out.MaxB = placeIn(d.A.Shape, d.MaxAt), &number{double(d.MaxA), d.DigitsA}, &number{double(d.MaxB), d.DigitsB}
			if cosine := double(d.Cosine); stats {
				out.Cosine = &cosine
			}
		}
	}
	return out
}

// uncomparedText says why tensors were not compared.
func uncomparedText(of []diffJSON) string {
	what := "damaged"
	if of[0].Kind == kindUnsupported {
		what = "not supported"
	}
	return fmt.Sprintf("? %s %s: %s", andOthers(string(of[0].Name), len(of)), what, of[0].Error)
}

func (d diffJSON) text() string {
	name := printable(string(d.Name))
	switch {
	case d.Kind == "only in a":
		return fmt.Sprintf("- %s %s", name, d.A)
	case d.Kind == "only in b":
		return fmt.Sprintf("+ %s %s", name, d.B)
	case d.Kind != "values":
		return fmt.Sprintf("! %s %s -> %s", name, d.A, d.B)
	case d.MaxAbs == nil:
		return fmt.Sprintf("~ %s %s: %d %s differ", name, d.A, d.Elements, d.unit)
	}
	text := fmt.Sprintf("~ %s %s: %d elements differ, by at most %.6g (relative %.6g)",
		name, d.A, d.Elements, float64(*d.MaxAbs), float64(*d.MaxRel))
	if d.Cosine != nil { // with --stats
		text += fmt.Sprintf(", at %s from %s to %s; mean %.6g; cosine %.6g",
			shapeText(d.MaxAt), d.MaxA.exactly(), d.MaxB.exactly(), float64(*d.MeanAbs), float64(*d.Cosine))
	}
	return text
}
