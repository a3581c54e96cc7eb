package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/plan"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	tfpb "github.com/trainerd/trainerd/proto"
)

func planCommand() *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "say what restoring a checkpoint would match, miss and mismatch",
		ArgsUsage: "PREFIX",
		Description: `The variables to be restored are those of a MetaGraph's Saver (--meta) or the
tensors of another checkpoint (--against). A line for each name:

  match     it would be restored
  miss      the checkpoint lacks it; restoring fails
  mismatch  its type or shape differs, or it is damaged; restoring fails
  unused    only the checkpoint has it; restoring ignores it

Exits with 4 if anything is missed or mismatched. Restoring goes by keys, and so
does this; --names compares the checkpoints by other names, as a program does that
takes values over by hand. With --map the checkpoint is first changed as by
` + "`ckpt cp --map`" + `; only then its names are compared.` + namesHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "meta", Usage: "`FILE` of the MetaGraph, prefix of a checkpoint that has one, or folder of a SavedModel"},
			tagsFlag(),
			&cli.StringFlag{Name: "against", Usage: "`PREFIX` of the checkpoint whose names, types and shapes are wanted"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "leave out what matches"},
			jsonFlag(), planNamesFlag(),
			&cli.StringFlag{Name: "map", Usage: "first change tensors by the rules in `FILE`, or by the ready map of that name"},
			&cli.StringFlag{Name: "rest", Usage: "of tensors that no rule of the map matches: `WHAT` is error, keep or drop", DefaultText: "as the map says, else error"},
		},
		Action: planAction,
	}
}

func planNamesFlag() cli.Flag {
	return &cli.StringFlag{Name: "names", DefaultText: "object", Usage: "compare tensors by the names of `KIND`: object (their keys), variable or keras"}
}

// openForPlan opens a checkpoint by its keys, or by the names that are asked for.
func openForPlan(c *cli.Context, arg string) (ckptfmt.Reader, string, error) {
	if c.IsSet("names") {
		return openNamed(c, arg)
	}
	return open(arg)
}

// openMapped opens the checkpoint that is to be restored, as --map changes it.
func openMapped(c *cli.Context, arg string) (r ckptfmt.Reader, done func() error, err error) {
	if !c.IsSet("map") {
		if r, _, err = openForPlan(c, arg); err != nil {
			return nil, nil, err
		}
		return r, r.Close, nil
	}
	s, _, err := openSource(arg)
	if err != nil {
		return nil, nil, err
	}
	if err = applyMap(c, s); err == nil {
		r, err = s.Reader()
	}
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return r, s.Close, nil
}

// planJSON is an element of `ckpt plan PREFIX --json`.
type planJSON struct {
	Name   jsonName `json:"name"`
	Kind   string   `json:"kind"` // "match", "miss", "mismatch", "unused"
	Want   string   `json:"want,omitempty"`
	Have   string   `json:"have,omitempty"`
	Reason string   `json:"reason,omitempty"` // "type", "shape", "damaged", "unsupported"
}

func planAction(c *cli.Context) error {
	a, err := args(c, "PREFIX")
	if err != nil {
		return err
	}
	switch {
	case c.IsSet("tags") && !c.IsSet("meta"):
		return usagef("--tags is about --meta")
	case c.IsSet("meta") == c.IsSet("against"):
		return usagef("plan takes one of --meta and --against")
	}
	want, err := wantedVariables(c)
	if err != nil {
		return err
	}
	r, done, err := openMapped(c, a[0])
	if err != nil {
		return err
	}
	defer done()
	items, err := plan.Make(want, r)
	if err != nil {
		return err
	}
	list := []planJSON{}
	count := map[plan.Kind]int{}
	for _, item := range items {
		count[item.Kind]++
		if item.Kind != plan.Match || !c.Bool("quiet") {
			list = append(list, describeItem(item))
		}
	}
	if err := printPlan(c, list); err != nil {
		return err
	}
	fmt.Fprintf(c.App.ErrWriter, "%d match, %d miss, %d mismatch, %d unused\n",
		count[plan.Match], count[plan.Miss], count[plan.Mismatch], count[plan.Unused])
	if count[plan.Miss]+count[plan.Mismatch] > 0 {
		return exitError(exitDiffers)
	}
	return nil
}

func wantedVariables(c *cli.Context) ([]plan.Variable, error) {
	if c.IsSet("against") {
		r, _, err := openForPlan(c, c.String("against"))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return plan.Of(r)
	}
	m, name, err := readMeta(c.String("meta"), c.StringSlice("tags")...)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; --against takes a checkpoint instead", err)
	}
	if err != nil {
		return nil, err
	}
	want, err := plan.FromMeta(m)
	if err == nil && len(want) == 0 {
		err = fmt.Errorf("%w: %s has no variables", ckptfmt.ErrNotFound, name)
	}
	return want, err
}

func describeItem(item plan.Item) planJSON {
	out := planJSON{Name: jsonName(item.Name), Kind: string(item.Kind), Reason: item.Reason}
	if v := item.Want; v != nil {
		shape := shapeText(v.Shape)
		if v.AnyShape {
			shape = "[?]"
		}
		out.Want = cmp.Or(v.Foreign, knownType(v.DType), "unknown") + shape
	}
	if t := item.Have; t != nil {
		out.Have = t.TypeName() + shapeText(t.Shape)
	}
	return out
}

// knownType is the name of a type, "" for none.
func knownType(t tfpb.DataType) string {
	if t == tfpb.DataType_DT_INVALID {
		return ""
	}
	return dtype.Name(t)
}

func printPlan(c *cli.Context, list []planJSON) error {
	if c.Bool("json") {
		return printList(c.App.Writer, list)
	}
	t := terminal.Table{MaxWidth: nameWidth}
	for _, p := range list {
		row := []string{p.Kind, printable(string(p.Name))}
		switch plan.Kind(p.Kind) {
		case plan.Miss:
			row = append(row, "wanted "+p.Want)
		case plan.Mismatch:
			switch p.Reason {
			case "damaged":
				p.Have = "damaged"
			case kindUnsupported:
				p.Have = "not supported"
			}
			row = append(row, fmt.Sprintf("wanted %s, it is %s", p.Want, p.Have))
		default:
			row = append(row, p.Have)
		}
		t.Add(row...)
	}
	return t.Print(c.App.Writer, terminal.Style{})
}
