package rewrite

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/npz"
	"github.com/trainerd/trainerd/ckptfmt/safetensors"
	"github.com/trainerd/trainerd/ckptfmt/torch"
)

// checkOf returns what says why a format cannot hold a tensor.
func checkOf(f Format, v1 bool) func(ckptfmt.Part) error {
	switch {
	case f == NPZ:
		return npz.Check
	case f == Safetensors:
		return safetensors.Check
	case f == Torch:
		return torch.Check
	case f == Checkpoint && v1:
		return ckptfmt.CheckV1
	case f == Checkpoint:
		return ckptfmt.CheckBundle
	}
	return hdf5.Check
}

// refused returns an error that names the tensors whose types a format does not have, before
// anything is written: who leaves them out would else meet one after the other. All other
// errors are left to the writer.
func refused(parts []ckptfmt.Part, check func(ckptfmt.Part) error) error {
	const most = 4
	var first error
	var others []string
	more := 0
	seen := map[string]bool{} // the slices of one tensor are several parts
	for i := range parts {
		err := check(parts[i])
		switch {
		case err == nil:
		case isDamage(err) || !errors.Is(err, ckptfmt.ErrType):
			return nil
		case seen[parts[i].Name]:
		case first == nil:
			first, seen[parts[i].Name] = err, true
		default:
			seen[parts[i].Name] = true
			if more++; more <= most {
				others = append(others, strconv.Quote(parts[i].Name))
			}
		}
	}
	switch {
	case more == 0:
		return first
	case more > most:
		others = append(others, "...")
	}
	return fmt.Errorf("%w, nor %d more: %s", first, more, strings.Join(others, ", "))
}
