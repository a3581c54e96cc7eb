package main

import (
	"cmp"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/names"
	"github.com/trainerd/trainerd/cmd/internal/cliargs"
)

const namesHelp = `

A checkpoint of tf.train.Checkpoint has keys such as
optimizer/_variables/2/.ATTRIBUTES/VARIABLE_VALUE. With --names variable its
tensors are shown by the names that the program gave to its variables, as
` + "`ckpt tree`" + ` shows them; what has no such name, or shares it with another,
keeps its key. With --names keras each has a short name: layer/kernel, and
optimizer/layer/kernel/momentum for what an optimizer keeps; objects that share
a name are shown by their paths. So are those of a Keras model without --names,
and others by the paths of their objects, such as net/layer/kernel, except in JSON,
in CSV and with --long, where --names object is what is meant unless another kind is
asked for. As arguments all of these names are taken.`

func namesFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "names", Value: string(names.Auto), DefaultText: "keras for Keras models, else the paths of objects",
		Usage: "show tensors by the names of `KIND`: object (their keys), variable or keras",
	}
}

// namesKind returns the kind of names that --names asks for.
func namesKind(c *cli.Context) (names.Kind, error) {
	switch kind := names.Kind(c.String("names")); kind {
	case names.Object, names.Variable, names.Keras:
		return kind, nil
	case names.Auto:
		if c.Bool("json") || c.Bool("csv") || c.Bool("long") { // for programs: what TensorFlow takes
			return names.Object, nil
		}
		return kind, nil
	default:
		return kind, usagef("--names takes object, variable or keras, not %q", string(kind))
	}
}

// openNamed is open with the names that --names asks for.
func openNamed(c *cli.Context, arg string) (ckptfmt.Reader, string, error) {
	kind, err := namesKind(c)
	if err != nil {
		return nil, "", err
	}
	r, prefix, err := open(arg)
	if err != nil || kind == names.Object {
		return r, prefix, err
	}
	named, err := withNames(r, kind)
	if err != nil {
		return nil, prefix, errors.Join(err, r.Close())
	}
	return named, prefix, nil
}

// openAligned opens two checkpoints so that the same variable has the same name
// in both, unless their keys are asked for.
func openAligned(c *cli.Context, first, second string) (a, b ckptfmt.Reader, err error) {
	if c.IsSet("names") && names.Kind(c.String("names")) != names.Keras {
		if a, _, err = openNamed(c, first); err != nil {
			return nil, nil, err
		}
		if b, _, err = openNamed(c, second); err != nil {
			return nil, nil, errors.Join(err, a.Close())
		}
		return a, b, nil
	}
	kind, err := namesKind(c)
	if err != nil {
		return nil, nil, err
	}
	if a, err = openToAlign(first); err != nil {
		return nil, nil, err
	}
	if b, err = openToAlign(second); err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	alignedA, alignedB, err := names.Align(a, b, kind)
	if err != nil {
		return nil, nil, errors.Join(err, a.Close(), b.Close())
	}
	return alignedA, alignedB, nil
}

// openToAlign opens what an argument means, with the names that its format has.
func openToAlign(arg string) (ckptfmt.Reader, error) {
	f, err := find(arg)
	if err != nil {
		return nil, err
	}
	r, err := openFormat(f)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// withNames shows the tensors of r by a kind of names. A damaged graph of
// objects has none: what it is asked for by default is shown by its keys.
func withNames(r ckptfmt.Reader, kind names.Kind) (ckptfmt.Reader, error) {
	table, err := names.Of(r)
	if err != nil && kind == names.Auto && isDamage(err) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	return names.NewReader(r, table, kind), nil
}

// tableOfNames is names.Of where a damaged graph of objects has no names.
func tableOfNames(r ckptfmt.Reader) *names.Table {
	table, err := names.Of(r)
	if err != nil {
		return &names.Table{}
	}
	return table
}

// lookupEither takes a key, or any other name that the graph of objects has for
// it.
func lookupEither(r ckptfmt.Reader, name, slice string) (*ckptfmt.Tensor, error) {
	t, err := lookup(r, name, slice)
	if !errors.Is(err, ckptfmt.ErrNotFound) {
		return t, err
	}
	key := tableOfNames(r).Key(name) // the name may be wrong, whatever the graph of objects is
	if key == name {
		return t, err
	}
	return lookup(r, key, slice)
}

// meantBy returns the name that may be meant by one that no tensor has: one that ends
// in the same way, as the scopes before it depend on the program, or the most similar.
func meantBy(r ckptfmt.Reader, name string) string {
	table := tableOfNames(r)
	var known []string
	best := ""
	for info := range r.Tensors() {
		for _, n := range table.All(info.Name) {
			known = append(known, n)
			if len(n) > len(best) && (strings.HasSuffix(name, "/"+n) || strings.HasSuffix(n, "/"+name)) {
				best = n
			}
		}
	}
	return cmp.Or(best, cliargs.Nearest(name, known))
}
