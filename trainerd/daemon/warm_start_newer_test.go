package daemon

import (
	"bytes"
	"strings"
	"testing"
)

// A checkpoint of a newer TensorFlow is not damage, whatever wanted its values.
func TestWarmStartNewer(t *testing.T) {
	c := clustersConfig(t, "warm_start.from=../../fixtures/ckpt_v2/damaged/min_consumer_2/model.ckpt")
	err := Run(t.Context(), c, RunOptions{Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Again: "again"})
	if err == nil || ExitCode(err) != ExitConfig || !strings.Contains(err.Error(), "a newer TensorFlow wrote it") ||
		!strings.HasSuffix(err.Error(), "; install a newer release of trainerd") {
		t.Errorf("exit code %d: %v", ExitCode(err), err)
	}
}
