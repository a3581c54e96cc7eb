package main

import (
	"bufio"
	"encoding/hex"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/digest"
	"github.com/trainerd/trainerd/ckptfmt/names"
)

func hashCommand() *cli.Command {
	return &cli.Command{
		Name:      "hash",
		Usage:     "print a SHA-256 of each tensor, and one of all of them",
		ArgsUsage: "PREFIX|FILE",
		Description: `The hashes depend on names, types, shapes and elements alone. So a checkpoint and
what ` + "`ckpt convert`" + ` and ` + "`ckpt cp`" + ` make of it, in whatever format and number of
files, have the same. Prints a line for each tensor - its hash, two blanks, its
name - and last the hash of all, without a name; with --total nothing but that.
The graph of objects is none of the tensors. doc/formats/hash.md defines the
bytes that are hashed.

A tensor that cannot be read has no hash, and neither have all of them together:
it is named on the standard error, and the exit code is 3.

Keys are hashed, unless --names asks for other names.` + nameHelp,
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.BoolFlag{Name: "total", Usage: "print the hash of all tensors only"},
			&cli.StringFlag{Name: "names", DefaultText: "object", Usage: "hash tensors under the names of `KIND`: object (their keys), variable or keras"},
			&cli.StringSliceFlag{Name: "only", Usage: "take only tensors that match a `PATTERN`"},
			&cli.StringSliceFlag{Name: "exclude", Usage: "leave out tensors that match a `PATTERN`"},
		},
		Action: hashAction,
	}
}

// hashJSON is what `ckpt hash --json` prints. Hash is left out where a tensor
// could not be read.
type hashJSON struct {
	Algorithm string           `json:"algorithm"` // "sha256"
	Hash      string           `json:"hash,omitempty"`
	Tensors   []tensorHashJSON `json:"tensors"`
}

type tensorHashJSON struct {
	Name  jsonName `json:"name"`
	DType string   `json:"dtype"`
	Shape []int64  `json:"shape"`
	Hash  string   `json:"hash,omitempty"`
	Error string   `json:"error,omitempty"`
}

func hashAction(c *cli.Context) error {
	a, err := args(c, "PREFIX")
	if err != nil {
		return err
	}
	r, prefix, err := open(a[0])
	if err != nil {
		return err
	}
	defer r.Close()
	take, err := chosen(c, tableOfNames(r))
	if err != nil {
		return err
	}
	kind := names.Object
	if c.IsSet("names") {
		if kind, err = namesKind(c); err != nil {
			return err
		}
	}
	list, total, damaged, err := hashes(c, names.NewReader(watch(c, r), tableOfNames(r), kind), take)
	if err != nil {
		return err
	}
	progressOf(c).Clear()
	if err := printHashes(c, list, total); err != nil {
		return err
	}
	if len(damaged) > 0 {
		return sayDamaged(c, prefix, damaged)
	}
	return nil
}

// chosen returns what applies --only and --exclude, to keys and to all other
// names.
func chosen(c *cli.Context, table *names.Table) (func(name string) bool, error) {
	only, err := patterns(c.StringSlice("only"))
	if err != nil {
		return nil, err
	}
	exclude, err := patterns(c.StringSlice("exclude"))
	if err != nil {
		return nil, err
	}
	return func(name string) bool {
		all := table.Matched(table.Key(name))
		return (len(only) == 0 || matchAny(only, all...)) && !matchAny(exclude, all...)
	}, nil
}

// hashes returns the hashes of all tensors, that of all together, "" where there
// is none, and the tensors that cannot be read.
func hashes(c *cli.Context, r ckptfmt.Reader, take func(string) bool) ([]tensorHashJSON, string, []ckptfmt.DamagedTensor, error) {
	list := []tensorHashJSON{}
	var damaged []ckptfmt.DamagedTensor
	whole := digest.NewWhole()
	for t, err := range digest.Tensors(c.Context, r, take) {
		if err != nil && (t.Info.Name == "" || !isDamage(err) && !isUnsupported(err)) {
			return nil, "", nil, err
		}
		entry := tensorHashJSON{Name: jsonName(t.Info.Name), DType: t.Info.TypeName(), Shape: append([]int64{}, t.Info.Shape...)}
		if err != nil {
			entry.Error = err.Error()
			damaged = append(damaged, ckptfmt.DamagedTensor{Name: t.Info.Name, Err: err})
		} else {
			entry.Hash = hex.EncodeToString(t.Hash[:])
			whole.Add(&t)
		}
		list = append(list, entry)
	}
	if len(list) == 0 {
		return nil, "", nil, fmt.Errorf("%w: nothing to hash", ckptfmt.ErrNotFound)
	}
	if len(damaged) > 0 {
		return list, "", damaged, nil
	}
	total := whole.Sum()
	return list, hex.EncodeToString(total[:]), nil, nil
}

func printHashes(c *cli.Context, list []tensorHashJSON, total string) error {
	switch {
	case c.Bool("json"):
		if c.Bool("total") {
			list = []tensorHashJSON{}
		}
		return printObject(c.App.Writer, hashJSON{"sha256", total, list})
	case c.Bool("total"):
		list = nil
	}
	w := bufio.NewWriter(c.App.Writer)
	for _, t := range list {
		if t.Hash != "" {
			fmt.Fprintf(w, "%s  %s\n", t.Hash, printable(string(t.Name)))
		}
	}
	if total != "" {
		fmt.Fprintln(w, total)
	}
	return w.Flush()
}
