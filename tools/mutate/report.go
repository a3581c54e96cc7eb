package main

import (
	"fmt"
	"io"

	"github.com/trainerd/trainerd/tools/internal/excuse"
)

// report writes the mutants that survived, and the figures. It
// reports whether there are none, and no excuse is left that none needs. verbose
// also lists what no test reaches.
func (p *pkg) report(w io.Writer, excuses *excuse.List, all, verbose bool) bool {
	count := map[verdict]int{}
	for _, m := range p.mutants {
		count[m.verdict]++
		switch {
		case m.verdict == uncovered && verbose:
			fmt.Fprintf(w, "not reached: %s\n", m)
		case m.verdict == survived:
			fmt.Fprintf(w, "survived: %s\n", m)
		}
	}
	fine := count[survived] == 0
	if all {
		for _, key := range excuses.Unused(p.path) {
			fine = false
			fmt.Fprintf(w, "excused, but there is no such mutant: %s\n", key)
		}
	}
	unjudged := ""
	if n := count[pending]; n > 0 {
		unjudged = fmt.Sprintf(", %d not judged", n)
	}
	fmt.Fprintf(w, "%s: %d mutants: %d killed, %d survived, %d excused, %d not reached by a test%s\n",
		p.path, len(p.mutants), count[killed], count[survived], count[excused], count[uncovered], unjudged)
	return fine
}
