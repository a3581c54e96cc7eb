package found

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

func TestStepOfName(t *testing.T) {
	for name, want := range map[string]int64{
		"ckpt-120.pt":                        120,
		"epoch=3-step=120.ckpt":              120,
		"step=120-loss=0.35.ckpt":            120,
		"step_000120":                        120,
		"global_step500":                     500,
		"checkpoint-500":                     500,
		"model.ckpt-120.index":               120,
		"model.ckpt-120.data-00000-of-00001": 120,
		"weights.120.h5":                     120,
		"ckpt.120":                           120,
		"iter_0001000.safetensors":           1000,
		"ckpt-7.optim.pt":                    7,
		"02-0.41.keras":                      2,
		"weights.03-0.41-91.25.hdf5":         3,
		"epoch=4-val_loss=0.25.ckpt":         4,
		"epoch=4-val_acc=81.ckpt":            4,
		"epoch=2-step=60-v1.ckpt":            60,
		"checkpoint_epoch3_iter1000.pth":     1000,
		"epoch_003":                          3,
		"ckpt-epoch2-1000.pt":                1000,
		"model_loss-0.25.pt":                 NoStep,
		"optim_000020_rank1.pt":              20,
		"model-20-shard-3.npz":               20,
		"last-v1.ckpt":                       NoStep,
		"ep0-ba100-rank0.pt":                 100, // Composer
		"model_name=0--val_loss=9.10-step=99-consumed_samples=51200.0-last": 99,    // NeMo
		"last_Ant_ep_100_rew_123.45.pth":                                    100,   // rl_games
		"chkpnt7000.pth":                                                    7000,  // 3D Gaussian Splatting
		"model_0012499.rank_0.pth":                                          12499, // DINOv2
		"at-step00001000-state":                                             1000,  // kohya
		"checkpoint_1_500.pt":                                               500,   // fairseq
		"1epoch.pth":                                                        1,     // ESPnet
		"model_2026-11-26_20-09-10.pt":                                      NoStep,
		"policy-2026-11-26T20:09:10.pkl":                                    NoStep,
		"20261126_200910_model.pt":                                          NoStep,
		"state_20261126_030531_20.txt":                                      20,
		"ckpt_1795726839.pt":                                                NoStep, // seconds since 1970
		"rl_model_20480512_steps.zip":                                       20480512,
		"ckpt-20261126":                                                     20261126,
		"footstep":                                                          NoStep,
		"sac_280k.zip":                                                      280000, "step-2M.pt": 2000000, "ckpt_10K_ema.pt": 10000, "w-10kimg.pt": 10, "ckpt-9999999999999999k.pt": NoStep,
		"ckpt-9223372036854775k.pt": 9223372036854775000, "ckpt-9223372036854776k.pt": NoStep,
		"yolov4_last.weights": NoStep, "resnet50-best.pt": NoStep, "resnet50_best_20.pt": 20, "epoch3_best.pt": 3, "model_100_best.pt": 100, "yolov4_60.weights": 60,
		"last.pt":                               NoStep,
		"model.h5":                              NoStep,
		"":                                      NoStep,
		"ckpt-99999999999999999999999999999.pt": NoStep,
	} {
		if got := stepOfName(name); got != want {
			t.Errorf("stepOfName(%q) = %d, want %d", name, got, want)
		}
	}
}

func TestNameOf(t *testing.T) {
	for _, tc := range []struct{ files, want string }{
		{"ckpt-1.pt", "ckpt-1.pt"},
		{"m.ckpt-1.data-00000-of-00001 m.ckpt-1.index m.ckpt-1.meta", "m.ckpt-1"},
		{"m.ckpt-1.index", "m.ckpt-1"},
		{"a/step_5.json a/step_5.npz", "a/step_5"},
		{"rank0-5.pt rank1-5.pt", "rank0-5.pt"},
		{"a.pt b.pt", "a.pt"},
	} {
		if got := nameOf(strings.Fields(tc.files)); got != tc.want {
			t.Errorf("nameOf(%s) = %q, want %q", tc.files, got, tc.want)
		}
	}
}

// TestRunFolders has the same step in the folders of two starts, and in those of
// two workers: the newest start has it, and all workers do.
func TestRunFolders(t *testing.T) {
	dir := childtest.Logdir(t, "version_0/c/step=5.pt", "version_0/c/step=9.pt", "version_1/c/step=9.pt", "rank0/c/step=7.pt", "rank1/c/step=7.pt")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	found := New(root, "*/c/*.pt", Options{}).find()
	for step, want := range map[int64]string{
		5: "version_0/c/step=5.pt", 9: "version_1/c/step=9.pt", 7: "rank0/c/step=7.pt rank1/c/step=7.pt",
	} {
		if got := strings.Join(found[key{step: step}].files, " "); got != want {
			t.Errorf("step %d has %s, want %s", step, got, want)
		}
	}
}

func openStore(t *testing.T, dir, pattern string, policy ...retention.Policy) *Store {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return New(root, pattern, Options{Retention: policy})
}

// TestRotateStaysInside has links from the logdir to the outside: neither they
// nor what they name may go.
func TestRotateStaysInside(t *testing.T) {
	outside := childtest.Logdir(t, "ckpt-1.pt", "dir/ckpt-1.pt")
	dir := childtest.Logdir(t, "ckpt-2.pt", "ckpt-3.pt")
	for link, target := range map[string]string{"ckpt-1.pt": "ckpt-1.pt", "sub": "dir"} {
		if err := os.Symlink(filepath.Join(outside, target), filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	for _, pattern := range []string{"ckpt-*", "sub/ckpt-*", "*/ckpt-*"} {
		s := openStore(t, dir, pattern, retention.Last(1))
		s.Refresh(true)
		if _, err := s.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	if got := childtest.Below(t, outside); len(got) != 2 {
		t.Errorf("outside is left %v", got)
	}
	if _, err := os.Lstat(filepath.Join(dir, "ckpt-1.pt")); err != nil {
		t.Error(err)
	}
}

func TestCheckPattern(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"ckpt-*": true, "a/*.pt": true, "../x": false, "/tmp/x": false, "a/../../x": false, "[": false, "": false,
	} {
		if got := CheckPattern(pattern) == ""; got != ok {
			t.Errorf("CheckPattern(%q) is fine: %v, want %v", pattern, got, ok)
		}
	}
}

// TestScanWaitsForTheEnd has a file that is still being written.
func TestScanWaitsForTheEnd(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1")
	s := openStore(t, dir, "ckpt-*")
	if added, _ := s.Refresh(true); !slices.Equal(steps(added), []int64{1}) {
		t.Fatalf("at first: %v", added)
	}
	for _, text := range []string{"a", "ab", "abc"} {
		childtest.Write(t, filepath.Join(dir, "ckpt-2"), text)
		if added, _ := s.Refresh(false); added != nil {
			t.Fatalf("while it grows: %v", added)
		}
	}
	if added, _ := s.Refresh(false); !slices.Equal(steps(added), []int64{2}) {
		t.Fatalf("once it is still: %v", added)
	}
	if added, _ := s.Refresh(false); added != nil {
		t.Fatalf("again: %v", added)
	}
	if c, ok := s.Before(&Checkpoint{Step: 2}); !ok || c.Path != filepath.Join(s.root.Name(), "ckpt-1") {
		t.Errorf("before step 2 there is %v", c)
	}
}

// TestScanDecidesNothingElse has a file that grows next to one that is damaged, and next to
// a folder on trial: verdicts about these do not let it count.
func TestScanDecidesNothingElse(t *testing.T) {
	for name, text := range map[string]string{"ckpt-1.safetensors": "x", "ckpt-1/model.safetensors": childtest.Tensors()} {
		dir := t.TempDir()
		s := openStore(t, dir, "ckpt-*")
		childtest.Write(t, filepath.Join(dir, name), text)
		if name != "ckpt-1.safetensors" {
			s.opts.IsPast = func(c *Checkpoint) bool { return c.Step == 2 }
			s.Refresh(true)
		}
		for i := range 3 {
			childtest.Write(t, filepath.Join(dir, "ckpt-2"), strings.Repeat("x", i+1))
			if added, _ := s.Refresh(false); added != nil {
				t.Errorf("next to %s: added %v while it grows", name, added)
			}
		}
	}
}

// TestRejectedForTheSystem tells damage from what the system did not let happen: only the
// first may be moved aside.
func TestRejectedForTheSystem(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{errEmpty, true},
		{&ckptfmt.CorruptError{Err: fs.ErrNotExist}, true},
		{&fs.PathError{Op: "read", Path: "x", Err: syscall.EIO}, false},
		{fs.ErrPermission, false},
		{fs.ErrNotExist, false},
		{&notDurableError{errEmpty}, false},
	} {
		if got := (Rejected{err: tc.err}).Damaged(); got != tc.want {
			t.Errorf("%v: damaged = %v", tc.err, got)
		}
	}
}

func TestRotate(t *testing.T) {
	for _, tc := range []struct {
		name, pattern string
		policy        []retention.Policy
		files, want   string
	}{
		{"last two", "ckpt-*", []retention.Policy{retention.Last(2)}, "ckpt-1.pt ckpt-2.pt ckpt-10.pt", "ckpt-10.pt ckpt-2.pt"},
		{"no policy", "ckpt-*", nil, "ckpt-1.pt ckpt-2.pt", "ckpt-1.pt ckpt-2.pt"},
		{"the newest always", "ckpt-*", []retention.Policy{retention.Last(0)}, "ckpt-1.pt ckpt-2.pt", "ckpt-2.pt"},
		{"without a step", "*.pt", []retention.Policy{retention.Last(1)}, "best.pt ckpt-1.pt ckpt-2.pt", "best.pt ckpt-2.pt"},
		{"pinned", "ckpt-*", []retention.Policy{retention.Last(1)}, "ckpt-1.pt ckpt-1.pt.pin ckpt-2.pt", "ckpt-1.pt ckpt-1.pt.pin ckpt-2.pt"},
		{"several files", "s/*", []retention.Policy{retention.Last(1)}, "s/1.json s/1.npy s/2.json s/2.npy", "s/2.json s/2.npy"},
		{"one of several files is pinned", "s/*", []retention.Policy{retention.Last(1)}, "s/1.a s/1.b s/1.b.pin s/2.a s/2.b s/3.a s/3.b", "s/1.a s/1.b s/1.b.pin s/3.a s/3.b"},
		{"folders", "step_*", []retention.Policy{retention.Last(1)}, "step_1/a/b step_1/c step_2/a", "step_2/a"},
		{"ours", "*", []retention.Policy{retention.Last(1)},
			"events.out.tfevents.1700000000.host run-report.1 trainerd.9 .hidden-3 ckpt-4.tmp ckpt-5~ ckpt-6 ckpt-7",
			".hidden-3 ckpt-4.tmp ckpt-5~ ckpt-7 events.out.tfevents.1700000000.host run-report.1 trainerd.9"},
		{"union", "ckpt-*", []retention.Policy{retention.Last(1), retention.Steps{1}}, "ckpt-1 ckpt-2 ckpt-3", "ckpt-1 ckpt-3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := childtest.Logdir(t, strings.Fields(tc.files)...)
			s := openStore(t, dir, tc.pattern, tc.policy...)
			if _, broken := s.Refresh(true); broken != nil {
				t.Fatal(broken)
			}
			if _, err := s.Rotate(); err != nil {
				t.Fatal(err)
			}
			if records, bad := manifest.Records(dir); len(records) != len(s.known) || bad != nil {
				t.Errorf("%d manifests of %d checkpoints, %v", len(records), len(s.known), bad)
			}
			if diff := cmp.Diff(strings.Fields(tc.want), childtest.Below(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSound(t *testing.T) {
	safetensors := "\x40\x00\x00\x00\x00\x00\x00\x00" + `{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}          ` + "12345678"
	for _, tc := range []struct {
		name, file, text string
		sound            bool
	}{
		{"anything", "c-1.bin", "x", true},
		{"empty", "c-1.bin", "", false},
		{"safetensors", "c-1.safetensors", safetensors, true},
		{"safetensors, cut", "c-1.safetensors", safetensors[:len(safetensors)-1], false},
		{"safetensors, cut in its header", "c-1.safetensors", safetensors[:20], false},
		{"safetensors, cut in its length", "c-1.safetensors", safetensors[:5], false},
		{"safetensors, mad length", "c-1.safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}", false},
		{"zip, cut", "c-1.pt", "PK\x03\x04 and no more", false},
		{"index alone", "c-1.index", "x", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			childtest.Write(t, filepath.Join(dir, tc.file), tc.text)
			added, broken := openStore(t, dir, "c-*").Refresh(true)
			if got := len(added) == 1 && broken == nil; got != tc.sound {
				t.Errorf("sound: %v, %v; want %v", added, broken, tc.sound)
			}
		})
	}
}
