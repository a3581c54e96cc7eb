package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	tfpb "github.com/trainerd/trainerd/proto"
)

func statCommand() *cli.Command {
	return &cli.Command{
		Name:      "stat",
		Usage:     "show smallest, largest, mean, norm, NaNs and zeros of each tensor of numbers",
		ArgsUsage: "PREFIX",
		Description: `A tensor that cannot be read is named on the standard error, the others are
shown, and the exit code is 3, or 1 where it is of a kind that is not supported.
With --nan the tensors are in the order of the
model's layers, and the first is named on the standard error: the order is that of
the graph of objects, else of the nodes in the checkpoint's MetaGraph, else that
of the names, in which numbers count as such.` + namesHelp,
		Flags: []cli.Flag{
			jsonFlag(),
			namesFlag(),
			&cli.BoolFlag{Name: "nan", Usage: "list only tensors with NaN or infinity, and exit with 4 if there are any"},
		},
		Action: stat,
	}
}

// statJSON is an element of `ckpt stat PREFIX --json`.
type statJSON struct {
	Name  jsonName `json:"name"`
	Count int      `json:"count"`
	Min   number   `json:"min"`
	Max   number   `json:"max"`
	Mean  double   `json:"mean"`
	Norm  double   `json:"norm"`
	Zeros int      `json:"zeros"`
	NaN   int      `json:"nan"`
	Inf   int      `json:"inf"`
}

func stat(c *cli.Context) error {
	a, err := args(c, "PREFIX")
	if err != nil {
		return err
	}
	r, prefix, err := openNamed(c, a[0])
	if err != nil {
		return err
	}
	defer r.Close()
	r = watch(c, r)
	list, damaged, err := stats(c, r)
	if err != nil {
		return err
	}
	progressOf(c).Clear()
	if c.Bool("nan") {
		sortByLayer(list, layerOrder(r, prefix))
	}
	if err := printStats(c, list); err != nil {
		return err
	}
	if len(damaged) > 0 {
		err = sayDamaged(c, prefix, damaged)
	}
	if len(list) > 0 && c.Bool("nan") {
		fmt.Fprintf(c.App.ErrWriter, "ckpt: the first tensor with NaN or infinity is %s\n", printable(string(list[0].Name)))
		if err != exitError(exitDamaged) { // others that are not supported change nothing
			err = exitError(exitDiffers)
		}
	}
	return err
}

// stats returns the statistics of all tensors of numbers, or, with --nan, of
// those that are not all finite; and those that cannot be read.
func stats(c *cli.Context, r ckptfmt.Reader) (list []statJSON, damaged []ckptfmt.DamagedTensor, err error) {
	list = []statJSON{}
	for info, err := range r.Tensors() {
		if err != nil && info.Name == "" {
			return nil, nil, err
		}
		if err := c.Context.Err(); err != nil {
			return nil, nil, err
		}
		var s statJSON
		if err == nil {
			s, err = statOf(r, info.Name)
		}
		// What is listed and cannot be found is in an index that is out of order.
		if err != nil && (isDamage(err) || errors.Is(err, ckptfmt.ErrNotFound) || info.DType == tfpb.DataType_DT_INVALID) {
			damaged = append(damaged, ckptfmt.DamagedTensor{Name: info.Name, Err: err})
			continue
		}
		if errors.Is(err, ckptfmt.ErrType) {
			continue // no numbers
		}
		if err != nil {
			return nil, nil, err
		}
		if s.NaN+s.Inf > 0 || !c.Bool("nan") {
			list = append(list, s)
		}
	}
	return list, damaged, nil
}

func statOf(r ckptfmt.Reader, name string) (statJSON, error) {
	t, err := r.OpenTensor(name)
	if err != nil {
		return statJSON{}, err
	}
	if t.Info.Foreign != "" {
		return statJSON{}, fmt.Errorf("%w: elements of %s are not shown as numbers", ckptfmt.ErrType, t.Info.Foreign)
	}
	s, err := inspect.StatsFrom(t, t.Info.DType)
	return statJSON{
		Name: jsonName(name), Count: s.Count, Min: number{double(s.Min), s.Least}, Max: number{double(s.Max), s.Most}, Mean: double(s.Mean), Norm: double(s.Norm),
		Zeros: s.Zeros, NaN: s.NaN, Inf: s.Inf,
	}, err
}

func printStats(c *cli.Context, list []statJSON) error {
	if c.Bool("json") {
		return printList(c.App.Writer, list)
	}
	t := terminal.NewTable("NAME", "COUNT", "MIN", "MAX", "MEAN", "NORM", "ZEROS", "NAN", "INF")
	t.MaxWidth = nameWidth
	for _, s := range list {
		t.Add(printable(string(s.Name)), strconv.Itoa(s.Count), s.Min.short(), s.Max.short(), short(s.Mean), short(s.Norm),
			strconv.Itoa(s.Zeros), strconv.Itoa(s.NaN), strconv.Itoa(s.Inf))
	}
	return t.Print(c.App.Writer, terminal.StyleFor(c.App.Writer))
}

func short(v double) string { return strconv.FormatFloat(float64(v), 'g', 6, 64) }

// number is a number of a tensor.
type number struct {
	double
	digits string // of integers of 64 bits, all of them; else ""
}

// MarshalJSON implements [json.Marshaler].
func (n number) MarshalJSON() ([]byte, error) {
	if n.digits != "" {
		return []byte(n.digits), nil
	}
	return n.double.MarshalJSON()
}

func (n number) short() string { return cmp.Or(n.digits, short(n.double)) }

// exactly is a number in as many digits as tell it from its neighbours: two that
// differ may be close.
func (n number) exactly() string {
	if n.digits != "" {
		return n.digits
	}
	bits := 64
	if x := float64(n.double); float64(float32(x)) == x {
		bits = 32
	}
	return strconv.FormatFloat(float64(n.double), 'g', -1, bits)
}
