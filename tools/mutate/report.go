package main

import (
	"fmt"
	"io"

	"github.com/trainerd/trainerd/tools/internal/excuse"
)

// report writes the mutants that survived without an excuse, and the figures. It
// reports whether there are none, and no excuse is left that none needs. verbose
// also lists what no test reaches.
func (p *pkg) report(w io.Writer, excused *excuse.List, all, verbose bool) bool {
	count := map[verdict]int{}
	excuses, fine := 0, true
	for _, m := range p.mutants {
		excused.Excused(m.key()) // where chance has killed it, the excuse stays
		count[m.verdict]++
		switch {
		case m.verdict == uncovered && verbose:
			fmt.Fprintf(w, "not reached: %s\n", m)
		case m.verdict != survived:
		case excused.Excused(m.key()):
			excuses++
		default:
			fine = false
			fmt.Fprintf(w, "survived: %s\n", m)
		}
	}
	if all {
		for _, key := range excused.Unused(p.path) {
			fine = false
			fmt.Fprintf(w, "excused, but there is no such mutant: %s\n", key)
		}
	}
	unjudged := ""
	if n := count[pending]; n > 0 {
		unjudged = fmt.Sprintf(", %d not judged", n)
	}
	fmt.Fprintf(w, "%s: %d mutants: %d killed, %d survived (%d of them excused), %d not reached by a test%s\n",
		p.path, len(p.mutants), count[killed], count[survived], excuses, count[uncovered], unjudged)
	return fine
}
