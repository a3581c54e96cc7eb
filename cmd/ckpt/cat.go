package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

func catCommand() *cli.Command {
	return &cli.Command{
		Name:      "cat",
		Usage:     "print the elements of a tensor",
		ArgsUsage: "PREFIX NAME",
		Description: `Prints an element a line in row-major order. --json prints nested arrays; a number
that JSON lacks is "NaN", "Infinity" or "-Infinity", a complex number is [re,im], a
string that is not UTF-8 is {"b64":"its bytes in base64"}.
--raw prints the elements' bytes, little-endian; int4 and bool take one byte
each, a string has its length before it as a little-endian uint64. --npy prints
a numpy file: bfloat16 is in it as the raw bytes (V2) that numpy writes for
ml_dtypes.bfloat16, an 8-bit float as V1, int4 as int8, strings as S, or as raw
bytes (V) where one of them ends in a zero byte and all have one length.

NAME may also be one of those that ` + "`ckpt ls --names`" + ` shows: that of a variable
as the program has it, or one such as optimizer/d1/kernel/momentum.` + nameHelp,
		Flags: []cli.Flag{
			jsonFlag(),
			&cli.BoolFlag{Name: "raw", Usage: "print bytes"},
			&cli.BoolFlag{Name: "npy", Usage: "print a numpy file"},
			&cli.StringFlag{Name: "slice", Usage: "print a part, such as `0,10:-`: start,length or - for each dimension"},
		},
		Action: catAction,
	}
}

func catAction(c *cli.Context) error {
	a, err := args(c, "PREFIX", "NAME")
	if err != nil {
		return err
	}
	forms := 0
	for _, form := range []string{"json", "raw", "npy"} {
		if c.Bool(form) {
			forms++
		}
	}
	if forms > 1 {
		return usagef("--json, --raw and --npy exclude each other")
	}
	r, prefix, err := open(a[0])
	if err != nil {
		return err
	}
	defer r.Close()
	t, err := lookupEither(r, nameOf(a[1]), c.String("slice"))
	if errors.Is(err, ckptfmt.ErrNotFound) {
		if meant := meantBy(r, nameOf(a[1])); meant != "" {
			return fmt.Errorf("%w; did you mean %s?", err, printable(meant))
		}
		return fmt.Errorf("%w; `ckpt ls %s` lists its tensors", err, prefix)
	}
	if err != nil {
		return err
	}
	w := &untilDone{c.Context, c.App.Writer}
	switch {
	case t.DType == tfpb.DataType_DT_INVALID && !c.Bool("raw"):
		return fmt.Errorf("%w: the values of %s cannot be shown, TensorFlow does not have their type; --raw prints their bytes", ckptfmt.ErrType, printable(nameOf(a[1])))
	case c.Bool("raw"):
		return writeRaw(w, t)
	case c.Bool("npy"):
		return writeNPY(w, t)
	case c.Bool("json"):
		return writeTensorJSON(w, t)
	}
	return writeText(w, t)
}

// untilDone writes until the command is interrupted.
type untilDone struct {
	ctx context.Context
	w   io.Writer
}

func (u *untilDone) Write(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(b)
}

func lookup(r ckptfmt.Reader, name, slice string) (*ckptfmt.Tensor, error) {
	if slice == "" {
		return r.Lookup(name)
	}
	s, err := ckptfmt.ParseTensorSlice(slice)
	if err != nil {
		return nil, usagef("%w", err)
	}
	t, err := r.LookupSlice(name, s)
	if errors.Is(err, ckptfmt.ErrSlices) {
		return nil, usagef("%w", err)
	}
	return t, err
}

// writeRaw writes the bytes of the elements.
func writeRaw(w io.Writer, t *ckptfmt.Tensor) error {
	for _, s := range t.Strings {
		if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s)))); err != nil {
			return err
		}
		if _, err := w.Write(s); err != nil {
			return err
		}
	}
	_, err := w.Write(t.Data)
	return err
}
