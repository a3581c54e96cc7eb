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
	for _, d := range list {
		what := "damaged"
		if isUnsupported(d.Err) {
			unsupported++
			what = "not supported"
		}
		fmt.Fprintf(c.App.ErrWriter, "ckpt: %s is %s: %v\n", printable(d.Name), what, d.Err)
	}
	if unsupported == len(list) {
		return exitError(exitFailed)
	}
	fmt.Fprintf(c.App.ErrWriter, "ckpt: %d damaged tensors; `ckpt verify %s` shows all damage\n", len(list), prefix)
	return exitError(exitDamaged)
}

// isUnsupported reports whether an error says that a tensor is of a kind that ckpt
// cannot read, which is no damage.
func isUnsupported(err error) bool { return errors.Is(err, ckptfmt.ErrType) && !isDamage(err) }

// sayLost names the tensors that a copy lacks, and returns the end of the
// command.
func sayLost(c *cli.Context, to string, list []ckptfmt.DamagedTensor) error {
	progressOf(c).Clear()
	what := "damaged tensors"
	for _, d := range list {
		fmt.Fprintf(c.App.ErrWriter, "ckpt: left out %s: %v\n", printable(d.Name), d.Err)
		if isUnsupported(d.Err) {
			what = "tensors that are damaged or not supported"
		}
	}
	fmt.Fprintf(c.App.ErrWriter, "ckpt: %s lacks %d %s\n", to, len(list), what)
	return exitError(exitDamaged)
}
