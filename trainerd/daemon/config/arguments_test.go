package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsOf(t *testing.T) {
	type all = map[string]any
	for _, tc := range []struct {
		command string
		want    all
	}{
		{"python3 train.py", all{}},
		{"python3 -u train.py --lr 0.01 --batch-size=32 -b 8 --amp", all{"lr": 0.01, "batch-size": int64(32), "b": int64(8), "amp": true}},
		{"python3 train.py --amp --lr 1e-3 data/", all{"amp": true, "lr": 1e-3}},
		{"python3 train.py --shift -0.5 --wd=-1", all{"shift": -0.5, "wd": int64(-1)}},
		{"python3 train.py optimizer.lr=0.1 +model=resnet --multirun", all{"optimizer.lr": 0.1, "model": "resnet", "multirun": true}},
		{"torchrun --nproc-per-node=2 train.py --lr 0.1", all{"lr": 0.1}},
		{"python3 -m torch.distributed.run --nnodes 2 train.py --lr 0.1", all{"lr": 0.1}},
		{"accelerate launch --config_file a.yaml train.py --seed 3", all{"seed": int64(3)}},
		{"env LR=0.1 python3 -m tools.train --depth 4 --bf16 False", all{"depth": int64(4), "bf16": false}},
		{"bash run.sh --epochs 3", all{"epochs": int64(3)}},
		{"./trainer --layers 12 -lr 0.1", all{"layers": int64(12), "lr": 0.1}},
		{"sh -c --x", all{}},
		{"python3 -m", all{"m": true}}, // which Python refuses
		{"python3 train.py --multirun lr=0.1 --amp", all{"multirun": true, "lr": 0.1, "amp": true}},
		{"python3 a=b.py --lr 0.1", all{"lr": 0.1}},
		{"python3 train.py --note " + strings.Repeat("x", 200), all{"note": strings.Repeat("x", 200)}},
		{"python3 train.py --note " + strings.Repeat("x", 201), all{}},
		{"python3 train.py --api-key abc --hub_token=x --lr 1", all{"lr": int64(1)}},
		{"python3 train.py --note " + strings.Repeat("x", 300), all{}},
	} {
		if diff := cmp.Diff(tc.want, argumentsOf(strings.Fields(tc.command))); diff != "" {
			t.Errorf("%s:\n%s", tc.command, diff)
		}
	}
	if got := argumentsOf(nil); len(got) != 0 {
		t.Errorf("no command has %v", got)
	}
}
