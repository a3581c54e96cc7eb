package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
)

func editCommand() *cli.Command {
	return &cli.Command{
		Name:      "edit",
		Usage:     "show the metadata of a safetensors file, or change them",
		ArgsUsage: "FILE",
		Description: `Prints the texts in __metadata__, such as {"format": "pt"}, a name and its text on
a line. With --set or --unset the file is written again, and replaces the old
one when it is whole: the tensors are the same. The graph of objects that
` + "`ckpt convert`" + ` puts there stays, and is not shown.

TensorFlow checkpoints and .npz files have no metadata. What a checkpoint is
called, ` + "`ckpt mv`" + ` changes; names of tensors, ` + "`ckpt cp --rename`" + `; which checkpoint is
the current one, ` + "`ckpt select`" + `.`,
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.StringSliceFlag{Name: "set", Usage: "give a name another text: `NAME=TEXT`"},
			&cli.StringSliceFlag{Name: "unset", Usage: "remove a `NAME`"},
		},
		Action: edit,
	}
}

func edit(c *cli.Context) (err error) {
	a, err := args(c, "FILE")
	if err != nil {
		return err
	}
	changes, err := metadataChanges(c)
	if err != nil {
		return err
	}
	f, err := formats.Find(a[0])
	if err != nil {
		return err
	}
	if f.Kind != formats.Safetensors {
		next := "`ckpt help edit` says what changes the rest"
		if f.Kind == formats.Sharded {
			next = "name one of its files"
		}
		return &formats.KindError{Path: f.Path, Is: f.Kind.String() + ", which has no metadata to edit", Next: next}
	}
	s, err := rewrite.OpenFile(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	metadata := s.Metadata()
	if len(changes) == 0 {
		return printMetadata(c, metadata)
	}
	for _, change := range changes {
		if err := change(metadata); err != nil {
			return err
		}
	}
	s.SetMetadata(metadata)
	return rewrite.Write(c.Context, s, f.Path, nil)
}

// metadataChanges returns what --set and --unset do.
func metadataChanges(c *cli.Context) ([]func(map[string]string) error, error) {
	var list []func(map[string]string) error
	reserved := func(name string) error {
		if name == "" || name == rewrite.ObjectGraph {
			return usagef("%q cannot be edited", name)
		}
		return nil
	}
	for _, name := range c.StringSlice("unset") {
		if err := reserved(name); err != nil {
			return nil, err
		}
		list = append(list, func(m map[string]string) error {
			if _, ok := m[name]; !ok {
				return fmt.Errorf("there is no %q in the metadata; `ckpt edit %s` shows them", name, c.Args().First())
			}
			delete(m, name)
			return nil
		})
	}
	for _, text := range c.StringSlice("set") {
		name, value, ok := strings.Cut(text, "=")
		if !ok || !utf8.ValidString(text) {
			return nil, usagef("--set takes NAME=TEXT in UTF-8, not %q", text)
		}
		if err := reserved(name); err != nil {
			return nil, err
		}
		list = append(list, func(m map[string]string) error {
			m[name] = value
			return nil
		})
	}
	return list, nil
}

func printMetadata(c *cli.Context, metadata map[string]string) error {
	if c.Bool("json") {
		return printObject(c.App.Writer, metadata)
	}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if _, err := fmt.Fprintf(c.App.Writer, "%s\t%s\n", printable(name), printable(metadata[name])); err != nil {
			return err
		}
	}
	return nil
}
