package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
)

// sayDamaged names the tensors that could not be read, in the checkpoint of
// that prefix, and returns the end of the command.
func sayDamaged(c *cli.Context, prefix string, list []ckptfmt.DamagedTensor) error {
	progressOf(c).Clear()
	unsupported := 0
	for _, of := range byCause(list, textOf) {
		what, is := "damaged", "is"
		if isUnsupported(of[0].Err) {
			unsupported += len(of)
			what = "not supported"
		}
		if len(of) > 1 {
			is = "are"
		}
		fmt.Fprintf(c.App.ErrWriter, "ckpt: %s %s %s: %v\n", andOthers(of[0].Name, len(of)), is, what, of[0].Err)
	}
	if unsupported == len(list) {
		return exitError(exitFailed)
	}
	fmt.Fprintf(c.App.ErrWriter, "ckpt: %d damaged tensors; `ckpt verify %s` shows all damage\n", len(list), prefix)
	return exitError(exitDamaged)
}

// byCause puts together what has the same cause: a file that is missing takes very many
// tensors with it.
func byCause[T any, K comparable](list []T, cause func(T) K) [][]T {
	var groups [][]T
	at := make(map[K]int)
	for _, of := range list {
		k := cause(of)
		i, known := at[k]
		if !known {
			i = len(groups)
			at[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], of)
	}
	return groups
}

// textOf returns what says why a tensor is damaged.
func textOf(d ckptfmt.DamagedTensor) string { return d.Err.Error() }

// andOthers names the first of n tensors.
func andOthers(name string, n int) string {
	switch name = printable(name); n {
	case 1:
		return name
	case 2:
		return name + " and another tensor"
	}
	return fmt.Sprintf("%s and %d other tensors", name, n-1)
}

// isUnsupported reports whether an error says that a tensor is of a kind that ckpt
// cannot read, which is not damage.
func isUnsupported(err error) bool { return errors.Is(err, ckptfmt.ErrType) && !isDamage(err) }

// sayLost names the tensors that a copy lacks, and returns the end of the
// command.
func sayLost(c *cli.Context, to string, list []ckptfmt.DamagedTensor) error {
	progressOf(c).Clear()
	what := "damaged tensors"
	for _, of := range byCause(list, textOf) {
		fmt.Fprintf(c.App.ErrWriter, "ckpt: left out %s: %v\n", andOthers(of[0].Name, len(of)), of[0].Err)
		if isUnsupported(of[0].Err) {
			what = "tensors that are damaged or not supported"
		}
	}
	fmt.Fprintf(c.App.ErrWriter, "ckpt: %s lacks %d %s\n", to, len(list), what)
	return exitError(exitDamaged)
}
