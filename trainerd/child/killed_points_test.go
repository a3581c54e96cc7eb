//go:build unix

package child

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKilledTrainerdLosesNoPoint kills a trainerd the moment that it announces a
// checkpoint, again and again: each time the program continues from it, and no point
// before it is missing in the end.
func TestKilledTrainerdLosesNoPoint(t *testing.T) {
	const lives, steps = int64(4), int64(50)
	dir := t.TempDir()
	program := fmt.Sprintf(`cd "$TRAINERD_LOGDIR"; s=${TRAINERD_STEP:-0}; end=$((s+%d))
while [ $s -lt $end ]; do s=$((s+1)); echo "step=$s loss=$s"; done
echo weights >ckpt-$s.tmp; mv ckpt-$s.tmp ckpt-$s; exec sleep 300`, steps)
	for life := int64(1); life <= lives; life++ {
		cmd := trainerdCommand(dir, program)
		cmd.Env = append(cmd.Env, fmt.Sprintf("CHILD_DIES_AT=%d", life*steps))
		said, err := cmd.CombinedOutput()
		if want := fmt.Sprintf("msg=saved step=%d ", life*steps); err == nil || !strings.Contains(string(said), want) {
			t.Fatalf("life %d has not announced step %d: %v\n%s", life, life*steps, err, said)
		}
		if diff := cmp.Diff(count(1, life*steps), curve(t, dir, "loss")); diff != "" {
			t.Fatalf("life %d, steps (-want +got):\n%s", life, diff)
		}
	}
}
