package daemon

import (
	"path/filepath"
	"testing"
)

// TestHParamsOfEndedInput trains until the input of the graph ends, twice: the run is as
// complete as one that has made all its steps, and the HPARAMS tab says so once.
func TestHParamsOfEndedInput(t *testing.T) {
	c := graphConfig(t, filepath.Join(graphsDir, "softmax_ref", "graph.meta"), "[train]", "steps = 1000000")
	c.Graph.Bundle = filepath.Join(graphsDir, "softmax_ref", "feeds", "feeds")
	for range 2 {
		runJob(t, t.Context(), c)
		ends := 0
		for _, tag := range tagsOf(t, c.Logdir) {
			if tag == "_hparams_/session_end_info" {
				ends++
			}
		}
		if ends != 1 {
			t.Errorf("the events have the end of the run %d times; want 1", ends)
		}
	}
}
