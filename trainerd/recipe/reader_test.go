package recipe

import (
	"fmt"
	"strings"
	"testing"
)

// show writes a point as text.
func show(p *Point) string {
	if p == nil {
		return "-"
	}
	words := []string{fmt.Sprint(p.Step)}
	for _, v := range p.Values {
		words = append(words, fmt.Sprintf("%s=%v", v.Tag, v.Value))
	}
	return strings.Join(words, " ")
}

func load1(t *testing.T, name string) *Recipe {
	t.Helper()
	r, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLines has lines as programs print them, each on its own.
func TestLines(t *testing.T) {
	auto := load1(t, Auto)
	for _, tc := range []struct{ line, want string }{
		{"iter 100: loss 2.5123, time 20.51ms, mfu 1.20%", "100 loss=2.5123 time=20.51 mfu=1.2"},
		{"step 250: train loss 2.0841, val loss 2.1012", "250 train/loss=2.0841 val/loss=2.1012"},
		{"[default0]:iter 100: loss 2.5, time 20ms, mfu -100.00%", "100 loss=2.5 time=20 mfu=-100"},
		{"step 00010/05000 (0.20%) | loss: 9.1 | lrm: 1.00 | dt: 500.00ms | tok/sec: 1,000 | mfu: 3.00", "10 loss=9.1 lrm=1 dt=500 tok/sec=1000 mfu=3"},
		{" [2024-05-01 10:00:00] iteration      100/     500 | consumed samples:          800 | elapsed time per iteration (ms): 123.4 | learning rate: 1.500000E-04 | lm loss: 6.513E+00 |",
			"100 consumed_samples=800 elapsed_time_per_iteration=123.4 learning_rate=0.00015 lm_loss=6.513"},
		{`2024-05-01 10:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.05, "loss": "8.213", "num_updates": "100", "lr": "1.25e-05"}`, "100 epoch=1 update=0.05 loss=8.213 lr=1.25e-05"},
		{"epoch 002:     10 / 100 loss=8.213, nll_loss=7.9, num_updates=110, lr=1e-05", "110 loss=8.213 nll_loss=7.9 lr=1e-05"},
		{"Epoch 2:  10%|█         | 10/100 [00:01<00:09,  9.87it/s, v_num=3, train_loss=0.512]", "210 train_loss=0.512"},
		{"Epoch 2/9  ━━━━━━━━━━ 10/100 0:00:01 • 0:00:09 9.87it/s v_num: 3.000 train_loss: 0.512", "210 train_loss=0.512"},
		{"Training:  10%|█     | 50/500 [00:10<01:30,  5.00it/s, loss=0.512, lr=1e-3]", "50 loss=0.512 lr=0.001"},
		{"Epoch 2/5:  10%|█     | 50/500 [00:10<01:30,  5.00it/s, loss=0.512]", "550 loss=0.512"},
		{"epoch 0: {'accuracy': 0.68, 'f1': 0.81}", "0 accuracy=0.68 f1=0.81"},
		{"[10]\ttrain-rmse:0.10234\teval-rmse:0.20345", "10 train-rmse=0.10234 eval-rmse=0.20345"},
		{"[12:01:02] [10]\ttrain-rmse:0.1", "10 train-rmse=0.1"},
		{"[10]\ttrain-rmse:0.1+0.01\ttest-rmse:0.2+0.02", "10 train-rmse=0.1 test-rmse=0.2"},
		{"[10]\ttraining's l2: 0.102\tvalid_1's l2: 0.203", "10 train/l2=0.102 valid_1/l2=0.203"},
		{"10:\tlearn: 0.5012\ttest: 0.6023\tbest: 0.6023 (10)\ttotal: 12.3ms\tremaining: 1.2s", "10 learn=0.5012 test=0.6023 best=0.6023"},
		{"INFO:tensorflow:global step 10: loss = 2.3000 (0.123 sec/step)", "10 loss=2.3"},
		{"INFO:tensorflow:loss = 0.5, step = 100 (0.2 sec)", "100 loss=0.5"},
		{"I0501 10:00:00.1 140 basic_session_run_hooks.py:262] accuracy = 0.9, loss = 0.5, step = 100 (0.2 sec)", "100 accuracy=0.9 loss=0.5"},
		{"INFO:tensorflow:Saving dict for global step 100: accuracy = 0.9, global_step = 100, loss = 0.3", "100 eval/accuracy=0.9 eval/loss=0.3"},
		{"2017-05-01 10:00:00.1: step 10, loss = 4.66 (1234.5 examples/sec; 0.104 sec/batch)", "10 loss=4.66"},
		{"I0501 10:00:00.123456 140 logging_writer.py:48] [100] accuracy=0.9, loss=0.3", "100 accuracy=0.9 loss=0.3"},
		{"I0501 10:00:00.1 140 train.py:100] epoch:  1, train_loss: 0.25, train_accuracy: 90.0, test_loss: 0.5", "1 train_loss=0.25 train_accuracy=90 test_loss=0.5"},
		{"completed step: 10, seconds: 1.2, TFLOP/s/device: 80.1, loss: 9.123", "10 seconds=1.2 TFLOP/s/device=80.1 loss=9.123"},
		{"Train Epoch: 2 [640/60000 (1%)]\tLoss: 1.234567", "60640 loss=1.234567"},
		{"Epoch: [1][  10/5005]\tTime  0.100 ( 0.200)\tData  0.000 ( 0.000)\tLoss 6.9e+00 (7.0e+00)\tAcc@1   1.00 (  0.50)", "5015 loss=6.9 acc@1=1"},
		{"Epoch: [1]  [  10/100]  eta: 0:10:00  lr: 0.1000  loss: 6.9 (7.0)  time: 0.5  data: 0.1", "110 lr=0.1 loss=6.9"},
		{"Epoch [2/5], Step [100/600], Loss: 0.2345", "700 loss=0.2345"},
		{"Epoch 2/5 | Batch 100/600 | train loss 0.5 | acc 0.7", "700 train/loss=0.5 acc=0.7"},
		{"step 100: loss 0.5, accuracy 0.9", "100 loss=0.5 accuracy=0.9"},
		{"Step 1,000 loss=0.5", "1000 loss=0.5"},
		{"[2024-05-01 10:00:00,123][INFO] - Iteration 100/500 - train loss: 0.5 - lr: 1e-3", "100 train/loss=0.5 lr=0.001"},
		{"loss: 0.5 at step 100", "100 loss=0.5"},
		{"epoch 3 loss 0.1", "3 loss=0.1"},
		{"Epoch: 03 | Train Loss: 0.512 | Train Acc: 80.1%", "3 train/loss=0.512 train/acc=80.1"},
		{"Epoch 3/10 - loss: 0.5 - val_loss: nan", "3 loss=0.5 val_loss=NaN"},
		{"Epoch=3 train_loss=0.5 val_acc=0.25", "3 train_loss=0.5 val_acc=0.25"},
		{"\x1b[32mepoch 3\x1b[0m loss 0.1", "3 loss=0.1"},
		{"loss: 0.25", "1 loss=0.25"},

		{"iter 5 of the loop", "-"},
		{"step 3: loading the data", "-"},
		{"Step 1/3 : FROM ubuntu:22.04", "-"},
		{"iteration 5 took 3.2 s", "-"},
		{"epoch 3 begins", "-"},
		{"Downloading: 45%|████      | 45/100 [00:01<00:01, 40it/s]", "-"},
		{"2024-05-01 10:00:00 INFO version 1.2.3 loaded in 0.5 s", "-"},
		{"loss of connection at 10:00", "-"},
		{"no loss function given, using cross entropy", "-"},
		{"Epoch 3: lossless audio 4 files", "-"},
		{"", "-"},
	} {
		if got := show(auto.NewReader(0).Read(tc.line)); got != tc.want {
			t.Errorf("%q\n got %s\nwant %s", tc.line, got, tc.want)
		}
	}
}

// TestTranscripts has lines that mean something only after others. Each line of a
// transcript is followed by what is known by it.
func TestTranscripts(t *testing.T) {
	for _, tc := range []struct {
		name string
		base int64
		text []string
		end  string
	}{
		{"transformers", 0, []string{
			"Map: 100%|██████| 9000/9000 [00:01<00:00, 6000 examples/s]", "-",
			"  0%|          | 0/1000 [00:00<?, ?it/s]", "-",
			"  5%|▍         | 48/1000 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': 0.5, 'grad_norm': 1.25, 'learning_rate': 4e-05, 'epoch': 0.1}", "-",
			"  5%|▌         | 50/1000 [00:10<03:10,  5.00it/s]", "50 loss=0.5 grad_norm=1.25 learning_rate=4e-05 epoch=0.1",
			"100%|██████████| 4/4 [00:00<00:00, 50.00it/s]", "-", // an evaluation
			"{'eval_loss': '0.75', 'epoch': '0.1'}", "-",
			"  5%|▌         | 50/1000 [00:10<03:10,  5.00it/s]", "50 eval_loss=0.75 epoch=0.1",
			"100%|██████████| 1000/1000 [00:10<00:00,  5.00it/s]", "-",
			"{'train_runtime': 10.5, 'train_loss': 0.25, 'epoch': 2.0}", "-",
		}, "1000 train_runtime=10.5 train_loss=0.25 epoch=2"},
		{"transformers, each pipe first", 0, []string{
			"  0%|          | 0/1000 [00:00<?, ?it/s]", "-",
			"{'loss': 0.5, 'epoch': 0.1}", "-", // before the bar was cleared
			"            ", "-",
			"  5%|▌         | 50/1000 [00:10<03:10,  5.00it/s]", "50 loss=0.5 epoch=0.1",
			"            ", "-",
			"  6%|▌         | 60/1000 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': 0.4, 'epoch': 0.2}", "60 loss=0.4 epoch=0.2", // after it was drawn again
			"  7%|▌         | 68/1000 [00:10<03:10,  5.00it/s]", "-",
			"            ", "-",
			"{'loss': 0.3, 'epoch': 0.3}", "-",
			"  7%|▌         | 70/1000 [00:10<03:10,  5.00it/s]", "70 loss=0.3 epoch=0.3",
		}, "-"},
		{"transformers without bars", 500, []string{
			"{'loss': 0.5, 'epoch': 0.1}", "501 loss=0.5 epoch=0.1",
			"{'loss': 0.4, 'epoch': 0.2}", "502 loss=0.4 epoch=0.2",
		}, "-"},
		{"Keras", 0, []string{
			"Epoch 1/2", "-",
			"\x1b[1m1/8\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━━━\x1b[0m \x1b[1m2s\x1b[0m 404ms/step - accuracy: 0.4375 - loss: 0.75", "-",
			"\x1b[1m8/8\x1b[0m \x1b[32m━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m1s\x1b[0m 30ms/step - accuracy: 0.5 - loss: 0.5 - val_loss: 0.625", "1 accuracy=0.5 loss=0.5 val_loss=0.625",
			"Epoch 2/2", "-",
			"8/8 - 0s - 10ms/step - accuracy: 0.75 - loss: 0.25", "2 accuracy=0.75 loss=0.25",
			"10/10 ━━━━━━ 0s 5ms/step - accuracy: 0.5 - loss: 0.75", "-",
		}, "-"},
		{"tf.keras", 0, []string{
			"Epoch 3/5", "-",
			" 50/100 [=========>.....] - ETA: 3s - loss: 0.7", "-",
			"100/100 [==============================] - 3s 5ms/step - loss: 0.5 - val_loss: 0.6", "3 loss=0.5 val_loss=0.6",
		}, "-"},
		{"a bar for each epoch", 0, []string{
			"train: 50%|█  | 50/100 [00:10<01:30, 5.00it/s, loss=3]", "50 loss=3",
			"train: 100%|█ | 100/100 [00:10<01:30, 5.00it/s, loss=2]", "100 loss=2",
			"train: 10%|   | 10/100 [00:10<01:30, 5.00it/s, loss=1]", "110 loss=1",
			"epoch 1: val loss 0.5", "110 val/loss=0.5",
		}, "-"},
		{"a bar for each epoch, resumed", 300, []string{
			"train: 50%|█  | 50/100 [00:10<01:30, 5.00it/s, loss=3]", "350 loss=3",
		}, "-"},
		{"a bar for all, resumed", 50, []string{
			"51%|█  | 51/100 [00:10<01:30, 5.00it/s, loss=3]", "51 loss=3",
		}, "-"},
		{"steps of each epoch without their number", 0, []string{
			"epoch 0 step 100 loss 0.5", "100 loss=0.5",
			"epoch 0 step 200 loss 0.4", "200 loss=0.4",
			"epoch 1 step 100 loss 0.3", "300 loss=0.3",
		}, "-"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := load1(t, Auto).NewReader(tc.base)
			for i := 0; i < len(tc.text); i += 2 {
				if got := show(r.Read(tc.text[i])); got != tc.text[i+1] {
					t.Errorf("%q\n got %s\nwant %s", tc.text[i], got, tc.text[i+1])
				}
			}
			if got := show(r.Flush()); got != tc.end {
				t.Errorf("the end gives %s, want %s", got, tc.end)
			}
		})
	}
}
