package main

import (
	"errors"
	"strconv"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/urfave/cli/v2"
)

func statCommand() *cli.Command {
	return &cli.Command{
		Name:      "stat",
		Usage:     "show smallest, largest, mean, norm, NaNs and zeros of each tensor of numbers",
		ArgsUsage: "PREFIX",
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.BoolFlag{Name: "nan", Usage: "list only tensors with NaN or infinity, and exit with 4 if there are any"},
		},
		Action: stat,
	}
}

// statJSON is an element of `ckpt stat PREFIX --json`.
type statJSON struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Min   double `json:"min"`
	Max   double `json:"max"`
	Mean  double `json:"mean"`
	Norm  double `json:"norm"`
	Zeros int    `json:"zeros"`
	NaN   int    `json:"nan"`
	Inf   int    `json:"inf"`
}

func stat(c *cli.Context) error {
	a, err := args(c, "PREFIX")
	if err != nil {
		return err
	}
	r, _, err := open(a[0])
	if err != nil {
		return err
	}
	defer r.Close()
	r = watch(c, r)
	list, err := stats(c, r)
	if err != nil {
		return err
	}
	progressOf(c).Clear()
	if err := printStats(c, list); err != nil {
		return err
	}
	if len(list) > 0 && c.Bool("nan") {
		return exitError(exitDiffers)
	}
	return nil
}

// stats returns the statistics of all tensors of numbers, or, with --nan, of
// those that are not all finite.
func stats(c *cli.Context, r ckptfmt.Reader) ([]statJSON, error) {
	list := []statJSON{}
	for info, err := range r.Tensors() {
		if err != nil {
			return nil, err
		}
		if err := c.Context.Err(); err != nil {
			return nil, err
		}
		s, err := statOf(r, info.Name)
		if errors.Is(err, ckptfmt.ErrType) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if s.NaN+s.Inf > 0 || !c.Bool("nan") {
			list = append(list, s)
		}
	}
	return list, nil
}

func statOf(r ckptfmt.Reader, name string) (statJSON, error) {
	t, err := r.OpenTensor(name)
	if err != nil {
		return statJSON{}, err
	}
	s, err := ckptfmt.StatsFrom(t, t.Info.DType)
	return statJSON{
		Name: name, Count: s.Count, Min: double(s.Min), Max: double(s.Max), Mean: double(s.Mean), Norm: double(s.Norm),
		Zeros: s.Zeros, NaN: s.NaN, Inf: s.Inf,
	}, err
}

func printStats(c *cli.Context, list []statJSON) error {
	if c.Bool("json") {
		return printList(c.App.Writer, list)
	}
	t := terminal.NewTable("NAME", "COUNT", "MIN", "MAX", "MEAN", "NORM", "ZEROS", "NAN", "INF")
	for _, s := range list {
		t.Add(printable(s.Name), strconv.Itoa(s.Count), short(s.Min), short(s.Max), short(s.Mean), short(s.Norm),
			strconv.Itoa(s.Zeros), strconv.Itoa(s.NaN), strconv.Itoa(s.Inf))
	}
	return t.Print(c.App.Writer, terminal.StyleFor(c.App.Writer))
}

func short(v double) string { return strconv.FormatFloat(float64(v), 'g', 6, 64) }
