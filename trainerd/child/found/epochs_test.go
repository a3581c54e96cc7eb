//go:build unix

package found

import "testing"

func TestCountsEpochs(t *testing.T) {
	for name, want := range map[string]bool{
		"epoch_003": true, "ckpt-epoch=3.pt": true, "model_ep12.pth": true, "epoch=3-val_loss=0.25.ckpt": true, "1epoch.pth": true, "last_Ant_ep_100_rew_123.45.pth": true, "3_epochal.pt": false,
		"epoch=3-step=120.ckpt": false, "ckpt-120.pt": false, "03-0.41.keras": false, "deep3.pt": false, "step3": false, "epoch.pt": false,
	} {
		if got := countsEpochs(name); got != want {
			t.Errorf("countsEpochs(%q) = %v", name, got)
		}
	}
}

// TestEpochsOfReports has reports that count epochs, as the names do, and one of the next
// epoch that has come before the checkpoint was found.
func TestEpochsOfReports(t *testing.T) {
	for reported, want := range map[int64]int64{10: 10, 11: 10, 400: 400} {
		c := &Checkpoint{Step: 10, files: []string{"epoch_010"}, first: Moment{Step: reported}}
		if got := c.At(); got != want {
			t.Errorf("epoch 10, found at step %d: it is of step %d, want %d", reported, got, want)
		}
	}
}
