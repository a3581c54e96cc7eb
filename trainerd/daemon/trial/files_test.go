package trial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/trainerd/recipe"
)

// TestSavedIn has files as programs make them.
func TestSavedIn(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files []string
		want  *Saved
	}{
		{"nothing", []string{"train.log", "train.py", "out.txt"}, nil},
		{"files", []string{"out/ckpt-10.pt", "out/ckpt-20.pt", "out/best.pt", "out/ckpt-30.pt.tmp"}, &Saved{"out", "ckpt-*.pt", []string{"ckpt-10.pt", "ckpt-20.pt"}, true}},
		{"folders", []string{"logs/j/checkpoint-5/model.safetensors", "logs/j/checkpoint-5/rng.pth", "logs/j/checkpoint-10/model.safetensors"},
			&Saved{"logs/j", "checkpoint-*", []string{"checkpoint-5", "checkpoint-10"}, true}},
		{"bundles", []string{"logs/j/model.ckpt-5.index", "logs/j/model.ckpt-5.data-00000-of-00001", "logs/j/model.ckpt-5.meta", "logs/j/checkpoint"},
			&Saved{"logs/j", "model.ckpt-*", []string{"model.ckpt-5"}, true}},
		{"Lightning", []string{"lightning_logs/version_0/checkpoints/epoch=0-step=5.ckpt"},
			&Saved{"lightning_logs", "version_*/checkpoints/epoch=*-step=*.ckpt", []string{"version_0/checkpoints/epoch=0-step=5.ckpt"}, true}},
		{"a folder for each start", []string{"outputs/2026-11-22/10-20-30/ckpt/step_5.pt", "outputs/2026-11-22/10-20-30/ckpt/step_10.pt"},
			&Saved{"outputs", "*-*-*/*-*-*/ckpt/step_*.pt", []string{"2026-11-22/10-20-30/ckpt/step_5.pt", "2026-11-22/10-20-30/ckpt/step_10.pt"}, true}},
		{"a folder of checkpoints", []string{"runs/a/checkpoints/epoch_001/model.pt", "runs/a/checkpoints/epoch_002/model.pt"},
			&Saved{"runs/a", "checkpoints/epoch_*", []string{"checkpoints/epoch_001", "checkpoints/epoch_002"}, true}},
		{"a time in each name", []string{"ck/02-24-32-it20/w.npy.json", "ck/02-24-33-it40/w.npy.json"}, &Saved{"ck", "*-*-*-it*", []string{"02-24-32-it20", "02-24-33-it40"}, true}},
		{"a time in each name of a sequel", []string{"runs/state_20261126_030531_20.txt", "runs/state_20261126_030532_40.txt"},
			&Saved{"runs", "state_*_*_*.txt", []string{"state_20261126_030531_20.txt", "state_20261126_030532_40.txt"}, true}},
		{"Orbax", []string{"work/checkpoints/25/state/d/x", "work/checkpoints/50/_CHECKPOINT_METADATA"}, &Saved{"work", "checkpoints/[0-9]*", []string{"checkpoints/25", "checkpoints/50"}, true}},
		{"below the logdir", []string{"logs/j/checkpoints/epoch=0-step=5.ckpt"}, &Saved{"logs/j", "checkpoints/epoch=*-step=*.ckpt", []string{"checkpoints/epoch=0-step=5.ckpt"}, true}},
		{"Lightning, the best in a folder of their own", []string{"checkpoints/best/epoch=00-val_loss=0.57.ckpt", "checkpoints/best/epoch=01-val_loss=0.44.ckpt", "checkpoints/model-step=50.ckpt", "checkpoints/last.ckpt"},
			&Saved{"checkpoints", "model-step=*.ckpt", []string{"model-step=50.ckpt"}, true}},
		{"events elsewhere", []string{"models/01-0.70.keras", "logs/train/events.out.tfevents.1.host.1.0.v2", "logs/j/events.out.tfevents.1.host.trainerd"},
			&Saved{".", "models/*-*.*.keras", []string{"models/01-0.70.keras"}, true}},
		{"events in the logdir of the trial", []string{"tf_ckpts/ckpt-1.index", "logs/j/events.out.tfevents.1.host.1.0.v2"}, &Saved{".", "tf_ckpts/ckpt-*", []string{"tf_ckpts/ckpt-1"}, true}},
		{"events next to them", []string{"exp/a/ckpt-1.pt", "exp/runs/events.out.tfevents.1.host.1.0"}, &Saved{"exp", "a/ckpt-*.pt", []string{"a/ckpt-1.pt"}, true}},
		{"JSON in a folder that says it", []string{"ck/step_40.json", "ck/step_80.json"}, &Saved{"ck", "step_*.json", []string{"step_40.json", "step_80.json"}, true}},
		{"times", []string{"models/m_2026-11-26_20-09-10.pt", "models/m_2026-11-26_20-10-10.pt"},
			&Saved{"models", "m_*-*-*_*-*-*.pt", []string{"m_2026-11-26_20-09-10.pt", "m_2026-11-26_20-10-10.pt"}, false}},
		{"Weights & Biases", []string{"wandb/run-20261126_200910-ab12cd/files/ckpt_5.pt"},
			&Saved{"wandb", "run-*/files/ckpt_*.pt", []string{"run-20261126_200910-ab12cd/files/ckpt_5.pt"}, true}},
		{"SummaryWriter", []string{"runs/Nov26_20-09-10_vm/ckpt_5.pt"}, &Saved{"runs", "*_*-*-*_vm/ckpt_*.pt", []string{"Nov26_20-09-10_vm/ckpt_5.pt"}, true}},
		{"a name and a time", []string{"a_20261126-200910/ckpt_5.pt"}, &Saved{".", "a_*-*/ckpt_*.pt", []string{"a_20261126-200910/ckpt_5.pt"}, true}},
		{"scikit-learn", []string{"models/model.joblib", "models/report.json"}, &Saved{"models", "model.joblib", []string{"model.joblib"}, false}},
		{"LightGBM", []string{"model.txt.snapshot_iter_10", "model.txt.snapshot_iter_20"},
			&Saved{".", "model.txt.snapshot_iter_*", []string{"model.txt.snapshot_iter_10", "model.txt.snapshot_iter_20"}, true}},
		{"the examples of PyTorch", []string{"checkpoint.pth.tar", "model_best.pth.tar"}, &Saved{".", "checkpoint.pth.tar", []string{"checkpoint.pth.tar"}, false}},
		{"timm", timm("last", "model_best", "checkpoint-0", "checkpoint-1", "checkpoint-2"),
			&Saved{"output/train", "*-*-resnet*-*/last.pth.tar", []string{"20261126-200910-resnet18-224/last.pth.tar"}, false}},
		{"timm, without a best", timm("last", "checkpoint-0", "checkpoint-1"), &Saved{"output/train", "*-*-resnet*-*/checkpoint-*.pth.tar", []string{"20261126-200910-resnet18-224/checkpoint-0.pth.tar", "20261126-200910-resnet18-224/checkpoint-1.pth.tar"}, true}},
		{"Ultralytics", []string{"runs/detect/train/weights/last.pt", "runs/detect/train/weights/best.pt", "runs/detect/train/weights/epoch5.pt"},
			&Saved{"runs/detect/train", "weights/last.pt", []string{"weights/last.pt"}, false}},
		{"Lightning, the best and the last", []string{"ck/epoch=0-val_loss=0.57.ckpt", "ck/epoch=1-val_loss=0.44.ckpt", "ck/last.ckpt"}, &Saved{"ck", "last.ckpt", []string{"last.ckpt"}, false}},
		{"Lightning, the best alone", []string{"ck/epoch=0-val_loss=0.57.ckpt", "ck/epoch=1-val_loss=0.44.ckpt"},
			&Saved{"ck", "epoch=*-val_loss=*.*.ckpt", []string{"epoch=0-val_loss=0.57.ckpt", "epoch=1-val_loss=0.44.ckpt"}, true}},
		{"every so many steps, and the best", []string{"ck/step_100.pt", "ck/step_200.pt", "ck/best.pt", "ck/last.pt"}, &Saved{"ck", "step_*.pt", []string{"step_100.pt", "step_200.pt"}, true}},
		{"the best of another kind", []string{"ck/epoch_1.pt", "ck/epoch_2.pt", "ck/best.onnx", "ck/last.pt"}, &Saved{"ck", "epoch_*.pt", []string{"epoch_1.pt", "epoch_2.pt"}, true}},
		{"several files of a step", []string{"out/weights_5.npz", "out/optim_5.npz", "out/meta_5.json", "out/samples_5.png", "out/samples_5.npz", "out/metrics_5.json", "out/log_5.txt", "out/model_5.onnx",
			"out/weights_10.npz", "out/optim_10.npz", "out/meta_10.json", "out/samples_10.png", "out/samples_10.npz", "out/metrics_10.json", "out/log_10.txt", "out/model_10.onnx", "out/export_10.pt", "out/ema_10.pt",
			"out/weights_15.npz", "out/best_15.npz", "out/optim_15.npz", "out/config.json", "out/train.json"},
			&Saved{"out", "{weights_*.npz,meta_*.json,optim_*.npz}", []string{"meta_5.json", "optim_5.npz", "weights_5.npz", "meta_10.json", "optim_10.npz", "weights_10.npz", "optim_15.npz", "weights_15.npz"}, true}},
		{"samples more often than models", []string{"samples_1.npz", "samples_2.npz", "samples_3.npz", "model_3.npz"}, &Saved{".", "model_*.npz", []string{"model_3.npz"}, true}},
		{"two files, replaced", []string{"generator.pt", "discriminator.pt", "data.npz", "last_images.pt", "G_loss.npy"},
			&Saved{".", "{generator.pt,discriminator.pt}", []string{"discriminator.pt", "generator.pt"}, false}},
		{"ranks", []string{"ckpt_5_rank0.pt", "ckpt_5_rank1.pt", "rng_5_rank0.pt", "rng_5_rank1.pt"},
			&Saved{".", "{ckpt_*_rank*.pt,rng_*_rank*.pt}", []string{"ckpt_5_rank0.pt", "ckpt_5_rank1.pt", "rng_5_rank0.pt", "rng_5_rank1.pt"}, true}},
		{"any name, found by listing", []string{"ck/state_10.bin", "ck/state_20.bin"}, &Saved{".", "ck/state_*.bin", []string{"ck/state_10.bin", "ck/state_20.bin"}, true}},
		{"any name", []string{"ck/state_10.bin", "ck/state_20.bin"}, &Saved{"ck", "state_*.bin", []string{"state_10.bin", "state_20.bin"}, true}},
		{"any name below another", []string{"exp/ck/state_10.bin", "exp/ck/state_20.bin"}, &Saved{"exp", "ck/state_*.bin", []string{"ck/state_10.bin", "ck/state_20.bin"}, true}},
		{"checkpoints, found by listing", []string{"checkpoints/epoch_1/a.pt", "checkpoints/epoch_1/b.txt"}, &Saved{".", "checkpoints/epoch_*", []string{"checkpoints/epoch_1"}, true}},
		{"with a log, found by listing", []string{"out/state_10.bin", "out/train.txt"}, &Saved{"out", "state_*.bin", []string{"state_10.bin"}, true}},
		{"in the working directory, found by listing", []string{"state_10.bin"}, &Saved{".", "state_*.bin", []string{"state_10.bin"}, true}},
		{"one name, found by listing", []string{"out/ckpt.pt"}, &Saved{"out", "ckpt.pt", []string{"ckpt.pt"}, false}},
		{"Stable-Baselines3", []string{"out/rl_model_256_steps.zip", "out/rl_model_512_steps.zip", "out/rl_model_replay_buffer_256_steps.pkl", "out/rl_model_replay_buffer_512_steps.pkl", "out/x/y.csv"},
			&Saved{"out", "{rl_model_*_steps.zip,rl_model_replay_buffer_*_steps.pkl}", []string{"rl_model_256_steps.zip", "rl_model_replay_buffer_256_steps.pkl", "rl_model_512_steps.zip", "rl_model_replay_buffer_512_steps.pkl"}, true}},
		{"text", []string{"out/model_10.txt", "out/model_20.txt", "out/table.csv", "out/log_1.txt", "out/log_2.txt"}, &Saved{"out", "model_*.txt", []string{"model_10.txt", "model_20.txt"}, true}},
		{"text in a folder that says it", []string{"models/lgb_20.txt", "models/lgb_40.txt", "model_final.txt"}, &Saved{"models", "lgb_*.txt", []string{"lgb_20.txt", "lgb_40.txt"}, true}},
		{"text of boosting", []string{"out/lgb_20.txt", "out/lgb_40.txt", "out/fold_1.txt", "out/fold_2.txt"},
			&Saved{"out", "lgb_*.txt", []string{"lgb_20.txt", "lgb_40.txt"}, true}},
		{"no extension", []string{"out/model.0020", "out/model.0040", "out/notes"}, &Saved{"out", "model.*", []string{"model.0020", "model.0040"}, true}},
		{"an unknown form, several files", []string{"art/checkpoint/model-1.burn", "art/checkpoint/optim-1.burn", "art/checkpoint/scheduler-1.burn", "art/checkpoint/model-2.burn", "art/checkpoint/optim-2.burn", "art/checkpoint/scheduler-2.burn", "art/checkpoint/model-3.burn"},
			&Saved{"art", "checkpoint/{model-*.burn,optim-*.burn,scheduler-*.burn}", []string{"checkpoint/model-1.burn", "checkpoint/optim-1.burn", "checkpoint/scheduler-1.burn", "checkpoint/model-2.burn", "checkpoint/optim-2.burn", "checkpoint/scheduler-2.burn", "checkpoint/model-3.burn"}, true}},
		{"NeMo", []string{"nemo/checkpoints/gpt--val_loss=0.50-step=100-consumed_samples=800.0.ckpt", "nemo/checkpoints/gpt--val_loss=0.40-step=200-consumed_samples=1600.0.ckpt"},
			&Saved{"nemo", "checkpoints/gpt--val_loss=*.*-step=*-consumed_samples=*.*.ckpt", []string{"checkpoints/gpt--val_loss=0.50-step=100-consumed_samples=800.0.ckpt", "checkpoints/gpt--val_loss=0.40-step=200-consumed_samples=1600.0.ckpt"}, true}},
		{"steps of epochs in folders", []string{"ck/epoch0/step20.pt", "ck/epoch0/optim_step20.pt", "ck/epoch0/step40.pt", "ck/epoch0/optim_step40.pt", "ck/epoch1/step20.pt", "ck/epoch1/optim_step20.pt"},
			&Saved{"ck", "epoch*/{step*.pt,optim_step*.pt}", []string{"epoch0/optim_step20.pt", "epoch0/step20.pt", "epoch1/optim_step20.pt", "epoch1/step20.pt", "epoch0/optim_step40.pt", "epoch0/step40.pt"}, true}},
		{"GROMACS", []string{"run/state.cpt", "run/state_prev.cpt", "run/md.log"}, &Saved{"run", "state.cpt", []string{"state.cpt"}, false}},
		{"compressed, replaced", []string{"out/model.pkl.zst", "out/a.csv.gz"}, &Saved{"out", "model.pkl.zst", []string{"model.pkl.zst"}, false}},
		{"Go", []string{"run/snap-000010.gob", "run/snap-000020.gob"}, &Saved{"run", "snap-*.gob", []string{"snap-000010.gob", "snap-000020.gob"}, true}},
		{"a folder that says it", []string{"snapshots/0010.gob", "snapshots/0020.gob", "plots/0010.dat", "plots/0020.dat"}, &Saved{"snapshots", "*.gob", []string{"0010.gob", "0020.gob"}, true}},
		{"a folder that says it, metrics", []string{"snapshots/metrics_10.txt", "snapshots/metrics_20.txt", "snapshots/a_10.csv", "snapshots/a_20.csv"}, nil},
		{"one text alone, metrics and predictions", []string{"model_10.txt", "metrics_step_1.csv", "metrics_step_2.csv", "state_1.csv", "state_2.csv", "epoch_1.csv", "epoch_2.csv", "epoch_1.txt", "epoch_2.txt", "predictions/epoch_1.csv", "predictions/epoch_2.csv"}, nil},
		{"HDF5, replaced", []string{"backup/latest.weights.h5"}, &Saved{"backup", "latest.weights.h5", []string{"latest.weights.h5"}, false}},
		{"HDF5 and its epoch, replaced", []string{"backup/latest.weights.h5", "backup/training_metadata.json", "backup/model_config.json", "training_state.json"},
			&Saved{"backup", "{latest.weights.h5,training_metadata.json}", []string{"latest.weights.h5", "training_metadata.json"}, false}},
		{"HDF5 and its epoch, with those before", []string{"backup/latest.weights.h5", "backup/latest.weights.h5.bkp", "backup/training_metadata.json", "backup/training_metadata.json.bkp"},
			&Saved{"backup", "{latest.weights.h5,training_metadata.json}", []string{"latest.weights.h5", "training_metadata.json"}, false}},
		{"a model and its state, replaced", []string{"out/model.safetensors", "out/optimizer.pt", "out/trainer_state.json", "out/config.json"},
			&Saved{"out", "{model.safetensors,optimizer.pt,trainer_state.json}", []string{"model.safetensors", "optimizer.pt", "trainer_state.json"}, false}},
		{"HDF5", []string{"ck/w_01.h5", "ck/w_02.h5", "ck/a.csv"}, &Saved{"ck", "w_*.h5", []string{"w_01.h5", "w_02.h5"}, true}},
		{"replaced", []string{"out/ckpt.pt"}, &Saved{"out", "ckpt.pt", []string{"ckpt.pt"}, false}},
	} {
		dir := t.TempDir()
		var changed []string
		for _, name := range tc.files {
			changed = append(changed, filepath.Join(dir, name))
		}
		got := roots{dir: dir, logdir: filepath.Join(dir, "logs/j")}.savedIn(changed, strings.HasSuffix(tc.name, "by listing"))
		if got != nil {
			rel, err := filepath.Rel(dir, got.Logdir)
			if err != nil {
				t.Fatal(err)
			}
			got.Logdir = rel
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// timm returns names as timm's CheckpointSaver gives them: the last one is that of each epoch,
// those with a number are the best, and so is model_best.
func timm(names ...string) (files []string) {
	for _, name := range names {
		files = append(files, "output/train/20261126-200910-resnet18-224/"+name+".pth.tar")
	}
	return files
}

// TestLists has scripts that take whatever is in a folder, and such as do not.
func TestLists(t *testing.T) {
	for source, want := range map[string]bool{
		"names = sorted(os.listdir('ck'))": true, "for p in Path('ck').iterdir():": true, `glob.glob("ck/*")`: true, `Path(d).glob('*')`: true,
		"last=$(ls -t ck | head -1)": true, "for f in ck/*; do": true, "fs.readdirSync('ck')": true, "for f in ck/*": true,
		`glob.glob("ck/state_*.bin")`: false, "torch.load('ck/last.pt')": false, "a = b * c": false, "for f in ck/*.bin; do": false, "def f(*args): /* text */": false,
	} {
		if got := lists(source); got != want {
			t.Errorf("lists(%q) = %v, want %v", source, got, want)
		}
	}
}

// TestResumesByFlag has command lines of programs that take --resume.
func TestResumesByFlag(t *testing.T) {
	for _, tc := range []struct {
		command, args string
		want          bool
	}{
		{"train --resume auto", "--resume {checkpoint}", true},
		{"train --resume=latest", "--resume {checkpoint}", true},
		{"train --resume ckpt-5.pt", "--resume {checkpoint}", false}, // the newest is to win
		{"train --resume", "--resume", true},
		{"train --resumed auto", "--resume {checkpoint}", false},
		{"train", "", false},
	} {
		f := &Findings{Options: Options{Command: strings.Fields(tc.command)}, Resume: recipe.Resume{Args: strings.Fields(tc.args)}}
		if got := f.resumesByFlag(); got != tc.want {
			t.Errorf("%s, with %q: %v", tc.command, tc.args, got)
		}
	}
}

// TestSavedOutside checks that what a program saves in a folder that its command names is
// found, wherever that is.
func TestSavedOutside(t *testing.T) {
	base := t.TempDir()
	work, out, data := filepath.Join(base, "work"), filepath.Join(base, "runs", "one"), filepath.Join(base, "data.csv")
	for _, dir := range []string{work, data + ".d"} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(data, []byte("1,2\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"--out", out}, {"--out=" + out}, {"../runs/one"}, {"--out", filepath.Dir(out)}} {
		o := Options{Dir: work, Logdir: filepath.Join(work, "logs"), Command: append([]string{"python3", "-m", "train", "--data", data, "/"}, words...)}
		before := o.roots().look()
		if err := os.MkdirAll(out, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ckpt-10.pt", "ckpt-20.pt", "log.txt"} {
			if err := os.WriteFile(filepath.Join(out, name), []byte("x"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		s := o.savedSince(before)
		if s == nil || s.Logdir != out || s.Pattern != "ckpt-*.pt" || s.count() != 2 {
			t.Errorf("%q: %+v", words, s)
		}
		if err := os.RemoveAll(filepath.Dir(out)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFoldersOutside has checkpoints that are folders, and folders of starts, in a folder that
// the command names: they are not logdirs.
func TestFoldersOutside(t *testing.T) {
	for _, tc := range []struct {
		files            string
		logdir, patterns string
	}{
		{"checkpoint-5/model.safetensors checkpoint-5/trainer_state.json checkpoint-10/model.safetensors checkpoint-10/trainer_state.json", ".", "checkpoint-*"},
		{"run/checkpoint-5/model.npz run/checkpoint-10/model.npz run/log.txt", "run", "checkpoint-*"},
		{"2026-11-28_08-30-00/ckpt_5.pt 2026-11-28_08-30-00/ckpt_10.pt 2026-11-28_08-30-00/args.json", ".", "*-*-*_*-*-*/ckpt_*.pt"},
		{"models/ckpt_5.pt models/ckpt_10.pt models/args.json tb/events.out.tfevents.1.host", ".", "models/ckpt_*.pt"},
	} {
		base := t.TempDir()
		work, out := filepath.Join(base, "work"), filepath.Join(base, "out")
		o := Options{Dir: work, Logdir: filepath.Join(work, "logs"), Command: []string{"train", "--output_dir", out}}
		var changed []string
		for name := range strings.FieldsSeq(tc.files) {
			changed = append(changed, filepath.Join(out, name))
		}
		s := o.roots().savedIn(changed, false)
		if s == nil || s.Logdir != filepath.Join(out, tc.logdir) || s.Pattern != tc.patterns || s.count() != 2 {
			t.Errorf("%s: %+v", tc.files, s)
		}
	}
}
