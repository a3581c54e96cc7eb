package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// damageShown is how many damaged places of a file a command names that is not
// about damage.
const damageShown = 5

// reporter prints damage and remembers that there was some.
type reporter struct {
	out    io.Writer
	count  int
	limit  int            // of places that are named of a file; 0: all
	places map[string]int // by file
}

// newReporter names the first damaged places of each file.
func newReporter(c *cli.Context) *reporter {
	return &reporter{out: c.App.ErrWriter, limit: damageShown, places: make(map[string]int)}
}

// newFullReporter names every damaged place.
func newFullReporter(c *cli.Context) *reporter {
	return &reporter{out: c.App.ErrWriter, places: make(map[string]int)}
}

func (r *reporter) damaged(err error) {
	r.count++
	var damage *tfrecord.CorruptError
	hint := ""
	if errors.As(err, &damage) {
		if r.places[damage.Name]++; r.limit > 0 && r.places[damage.Name] > r.limit {
			return
		}
		if damage.Offset == 0 && damage.Part == tfrecord.PartLength {
			hint = "; is it an events file?"
		}
	}
	fmt.Fprintf(r.out, "tfevents: %v%s\n", err, hint)
}

func (r *reporter) all(damage []error) {
	for _, err := range damage {
		r.damaged(err)
	}
}

// result is the error of a command that has read everything.
func (r *reporter) result() error {
	for _, name := range slices.Sorted(maps.Keys(r.places)) {
		if more := r.places[name] - r.limit; r.limit > 0 && more > 0 {
			fmt.Fprintf(r.out, "tfevents: %s: %d more; `tfevents verify` names all\n", name, more)
		}
	}
	switch r.count {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%w in one place", errDamaged)
	}
	return fmt.Errorf("%w in %d places", errDamaged, r.count)
}
