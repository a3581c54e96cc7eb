package daemon

import (
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// TestCheckNamesNewer has a bundle of a newer TensorFlow, which is not damaged.
func TestCheckNamesNewer(t *testing.T) {
	const prefix = "../../fixtures/ckpt_v2/damaged/min_consumer_2/model.ckpt"
	_, err := ckptfmt.Open(prefix, nil)
	j := &job{config: &config.Config{Logdir: t.TempDir()}}
	got := j.describeResumePoint(&resumePoint{damaged: []*checkpoint.Error{{Prefix: prefix, File: prefix, Err: err}}})
	if !strings.Contains(got, "; model.ckpt is not readable by this release: ") || !strings.HasSuffix(got, "; install a newer release of trainerd") {
		t.Error(got)
	}
}
