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
		{"Iteration 1 of 400   residual = 1.5e+04   t = 0.01 s", "1 residual=15000 t=0.01"},
		{`{"ts": "2026-01-01T00:00:00Z", "msg": "progress", "data": {"globalStep": 5, "loss": 0.25}}`, "5 data/loss=0.25"},
		{"iter  10 value 25.270162", "10 value=25.270162"},
		{"step 1 loss tensor(2.5, device='cuda:0', grad_fn=<NllLossBackward0>)", "1 loss=2.5"},
		{"step 1 loss: tensor(2.5) acc: tensor(0.5, dtype=torch.float64)", "1 loss=2.5 acc=0.5"},
		{"Step 100, loss: Array(0.5, dtype=float32)", "100 loss=0.5"},
		{"step:1 - actor/entropy:np.float64(0.5) - actor/pg_loss:np.float32(-0.25)", "1 actor/entropy=0.5 actor/pg_loss=-0.25"},
		{"\x1b[36m(TaskRunner pid=123, ip=10.0.0.7)\x1b[0m step:1 - actor/entropy:0.5 - actor/pg_loss:-0.25", "1 actor/entropy=0.5 actor/pg_loss=-0.25"},
		{"global_step=1234, episodic_return=[21.]", "1234 episodic_return=21"},
		{"2026-01-01,10:00:00 | INFO | Train Epoch: 1 [  512/10000 (5%)] Data (t): 0.100 Batch (t): 0.500, 1000.0/s, 1000.0/s/gpu LR: 0.000010 Logit Scale: 14.286 Contrastive_loss: 6.2000 (6.3000) Loss: 6.2500 (6.2)",
			"512 lr=1e-05 logit_scale=14.286 contrastive_loss=6.2 loss=6.25"},
		{"Train: 1 [  50/1251 (  4%)]  Loss: 6.92 (6.93)  Time: 0.4s, 600.0/s  (0.5s, 500/s)  LR: 1.000e-05  Data: 0.01 (0.02)", "50 loss=6.92 lr=1e-05"},
		{"INFO 2026-01-01 10:00:00 ot_train.py:351 step:12K smpl:96K ep:250 epch:5.25 loss:0.125 grdn:1.5 lr:1.0e-05 updt_s:0.1 data_s:0.001", "12000 epch=5.25 loss=0.125 grdn=1.5 lr=1e-05"},
		{"[train] step: 200, loss: 0.5, accuracy: 81.25", "200 train/loss=0.5 train/accuracy=81.25"},
		{"[test] step: 200, loss: 0.25, accuracy: 82.5", "200 val/loss=0.25 val/accuracy=82.5"},
		{" 100: 2.5, 3.5 avg loss, 0.001 rate, 3.2 seconds, 6400 images", "100 loss=2.5 avg_loss=3.5 rate=0.001"},
		{"trainer/global_step=12 train/loss=0.5", "12 train/loss=0.5"},
		{"step\t100\tloss\t0.5", "100 loss=0.5"},
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
		{"Epoch: [1][  10/5005]\tTime  0.100 ( 0.200)\tData  0.000 ( 0.000)\tLoss 6.9e+00 (7.0e+00)\tAcc@1   1.00 (  0.50)", "10 loss=6.9 acc@1=1"},
		{"Epoch: [1]  [  10/100]  eta: 0:10:00  lr: 0.1000  loss: 6.9 (7.0)  time: 0.5  data: 0.1", "10 lr=0.1 loss=6.9"},
		{"Epoch [2/5], Step [100/600], Loss: 0.2345", "700 loss=0.2345"},
		{"Epoch 2/5 | Batch 100/600 | train loss 0.5 | acc 0.7", "700 train/loss=0.5 acc=0.7"},
		{"step 100: loss 0.5, accuracy 0.9", "100 loss=0.5 accuracy=0.9"},
		{"Step [100/600], Loss: 0.5, LR: 0.01", "100 loss=0.5 lr=0.01"},
		{"Iter: [100/600] loss 0.5", "100 loss=0.5"},
		{"Step 1,000 loss=0.5", "1000 loss=0.5"},
		{"[2024-05-01 10:00:00,123][INFO] - Iteration 100/500 - train loss: 0.5 - lr: 1e-3", "100 train/loss=0.5 lr=0.001"},
		{"loss: 0.5 at step 100", "100 loss=0.5"},
		{"epoch 3 loss 0.1", "3 loss=0.1"},
		{"Epoch: 03 | Train Loss: 0.512 | Train Acc: 80.1%", "3 train/loss=0.512 train/acc=80.1"},
		{"Epoch 3/10 - loss: 0.5 - val_loss: nan", "3 loss=0.5 val_loss=NaN"},
		{"Epoch=3 train_loss=0.5 val_acc=0.25", "3 train_loss=0.5 val_acc=0.25"},
		{"\x1b[32mepoch 3\x1b[0m loss 0.1", "3 loss=0.1"},
		{"loss: 0.25", "1 loss=0.25"},

		{"Epoch 3/10 Step 20/400 - loss: 0.5", "820 loss=0.5"},
		{"\x1b[32m2024-05-01 10:00:00.123\x1b[0m | \x1b[1mINFO    \x1b[0m | \x1b[36m__main__\x1b[0m:\x1b[36mtrain\x1b[0m:\x1b[36m42\x1b[0m - \x1b[1mEpoch 1/5 Step 20/30 (13.3%) - loss: 1.012e+00 - lr: 9.8e-02 - tokens: 20,480\x1b[0m",
			"20 loss=1.012 lr=0.098 tokens=20480"},
		{"2024-05-01 10:00:00.123 | INFO     | pkg.train:<module>:42 - step 20 loss 0.5", "20 loss=0.5"},
		{"Cost after iteration 100: 0.6437", "100 cost=0.6437"},
		{"[1/25][10/1583]\tLoss_D: 0.6\tLoss_G: 4.9\tD(x): 0.7\tD(G(z)): 0.2 / 0.01", "10 Loss_D=0.6 Loss_G=4.9"},
		{"[Epoch 1/200] [Batch 10/938] [D loss: 0.69] [G loss: 0.70]", "10 D_loss=0.69 G_loss=0.7"},
		{"[100/600] D_loss: 0.3 G_loss: 0.4", "100 d_loss=0.3 g_loss=0.4"},
		{"[host] 2026-11-23 10:00:00,123 (trainer:763) INFO: 1epoch:train:1-50batch: iter_time=0.1, forward_time=0.2, loss=12.3", "50 loss=12.3"},
		{"[2026-11-23 10:00:00] Ep. 1 : Up. 100 : Sen. 5,000 : Cost 9.12 * 10,000 @ 100 after 10,000 : Time 10.2s : 1000 words/s : gNorm 3.1", "100 Cost=9.12 gNorm=3.1"},
		{"1|10|Loss: 1.23:  10%|███       | 10/100 [00:10<01:30,  1.0it/s]", "10 loss=1.23"},
		{"accuracy: 0.5, loss: 1.2 ||:  10%|#         | 10/100 [00:10<01:30,  1.0it/s]", "10 accuracy=0.5 loss=1.2"},
		{"gen 12 best fitness 0.9 mean fitness 0.4", "12 best_fitness=0.9 mean_fitness=0.4"},
		{"[=========>     ] 90/150 cost 1.7213", "90 cost=1.7213"},
		{"90/150 [====>   ] - loss 1.5 - acc 0.5", "90 loss=1.5 acc=0.5"},
		{"[    5] loss = 0.5", "5 loss=0.5"},
		{"[5] train loss: 0.5, val loss: 0.25", "5 train/loss=0.5 val/loss=0.25"},
		{"100: loss 0.5, acc 0.75", "100 loss=0.5 acc=0.75"},
		{"100 loss=0.5", "100 loss=0.5"},
		{"(12) cost 3.5", "12 cost=3.5"},
		{"3 errors in 2 files", "-"},
		{"12 losses of 30", "-"},
		{"1 error generated.", "-"},
		{"10:20:30 loss 0.5", "-"},
		{"50/100 [==>...] - ETA: 3s - loss: 0.7", "-"},
		{"\xc9poque 3, Step 20 | loss 0.5 | \xb5s 3", "20 loss=0.5"},
		{"[####----] 90/150 | loss: 1.5, acc: 0.5", "90 loss=1.5 acc=0.5"},
		{"Generation 12: best=0.9 avg=0.4", "12 best=0.9 avg=0.4"},
		{"epoch: 3 | trn loss: 0.25 | vld loss: 0.3", "3 train/loss=0.25 val/loss=0.3"},
		{`{"type": "train", "iter": 5, "metrics": {"loss": 20.75, "grad_norm": 16.5}, "time": 1700000000.1}`, "5 metrics/loss=20.75 metrics/grad_norm=16.5"},
		{`INFO:root:{"epoch": 2, "val_loss": 0.5, "acc": NaN}`, "2 epoch=2 val_loss=0.5 acc=NaN"},
		{"{'step': 100, 'loss': tensor(0.5, device='cuda:0'), 'lrs': [0.1, 0.2], 'eval': {'acc': np.float64(0.75)}, 'ok': True}", "100 loss=0.5 eval/acc=0.75"},
		{`{"global_step": "200", "epoch": 1, "loss": "0.5", "val": [{"loss": 3}]}`, "200 epoch=1 loss=0.5"},
		{`{"epoch": 0.25, "loss": 0.5}`, "1 epoch=0.25 loss=0.5"},
		{"{'loss': 0.5, 'memory/max (GiB)': 1.5, 'epoch': 0.1}", "1 loss=0.5 memory/max_(GiB)=1.5 epoch=0.1"},
		{"step 1_000 | loss: 0.5 | tokens: 1_000_000", "1000 loss=0.5 tokens=1e+06"},
		{"step 100 | loss: 1.234,56 | lr: 0,001", "100 loss=1234.56 lr=0.001"},
		{"step: 10  loss: 12,3 lr: 1,5e-3", "10 loss=12.3 lr=0.0015"},
		{"[rank0]:[titan] 2025-01-01 10:00:00,123 - root - INFO - \x1b[36mstep: 10  \x1b[32mloss:  7.8  \x1b[33mmemory: 10.5GiB(12.3%)  \x1b[34mtps: 1,234  mfu: 1.2%\x1b[0m", "10 loss=7.8 tps=1234 mfu=1.2"},
		{"2024/05/01 10:00:00 - mmengine - INFO - Epoch(train)  [2][ 50/118]  lr: 1.0e-03  eta: 0:10:00  time: 0.50  data_time: 0.01  memory: 1000  loss: 0.5", "168 lr=0.001 loss=0.5"},
		{"2024/05/01 10:00:00 - mmengine - INFO - Iter(train) [  50/1000]  lr: 1.0e-03  eta: 0:10:00  loss: 0.5", "50 lr=0.001 loss=0.5"},
		{"[05/01 10:00:00 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 2.5  loss_cls: 1.25  time: 0.5  lr: 0.001  max_mem: 1000M", "19 total_loss=2.5 loss_cls=1.25 lr=0.001"},
		{"Epoch 0: :   1%|▏         | 10/1000 [00:10<16:30,  1.00it/s, v_num=, reduced_train_loss=10.30, val_loss=1e1]", "10 reduced_train_loss=10.3 val_loss=10"},
		{"[1,  2000] loss: 2.25", "2000 loss=2.25"},
		{"[100/1000] loss: 0.5", "100 loss=0.5"},
		{"[   2/150] train/loss=7.5e+01 it/s=19.8", "2 train/loss=75"},
		{"[12/150] lr: 0.5, acc: 0.25", "12 lr=0.5 acc=0.25"},
		{"[3/10] Building CXX object loss.o", "-"},
		{"[3/10] error in file 7", "-"},
		{"Training loss (for one batch) at step 200: 0.5125", "200 loss=0.5125"},
		{"step 100, training accuracy 0.75", "100 train/accuracy=0.75"},
		{"Step: 100, Minibatch Loss= 0.5000, Training Accuracy= 0.750", "100 loss=0.5 train/accuracy=0.75"},
		{"Iter 0100 | Time 0.5000(0.4000) | Loss 0.5125(0.5200)", "100 loss=0.5125"},
		{"Ep 3 | it 200 | loss 0.5", "200 loss=0.5"},
		{"Episode 100  reward: 3.25  epsilon: 0.125", "100 reward=3.25 epsilon=0.125"},
		{"Timesteps: 2048, mean reward 20.5", "2048 mean_reward=20.5"},
		{"epoch 1 loss 0.5125:  10%|█         | 50/500 [00:10<01:30,  5.00it/s]", "50 loss=0.5125"},
		{"train: 50%|█ | 50/100 [00:10<01:30, 5.00it/s, loss=4.25, acc=81.2%]", "50 loss=4.25 acc=81.2"},
		{"| epoch   1 |   200/ 2983 batches | lr 5.00 | ms/batch 12.50 | loss  8.25 | ppl  3432.50", "200 lr=5 ms/batch=12.5 loss=8.25 ppl=3432.5"},
		{"| end of epoch   1 | time: 40.01s | valid loss  6.00 | valid ppl   403.50", "1 val/loss=6 val/ppl=403.5"},
		{"Iteration 100: loss is 0.5", "100 loss=0.5"},
		{"Step   100   Loss   0.5125", "100 loss=0.5125"},

		{`{"config": {"lr": 0.1, "batch": 32, "layers": 3}}`, "-"},
		{`{"step": 3, "event": "loading the loss"}`, "-"},
		{"Epoch 00003: val_loss improved from 0.5 to 0.4, saving model to x-3.h5", "-"},
		{"step 5 of 10: reading the file loss.csv", "-"},
		{"it was at 10 that loss: 0.5", "-"},
		{"loss 1.25", "1 loss=1.25"},
		{"Train Loss 1.25, acc 0.5", "1 train/loss=1.25 acc=0.5"},
		{"val_loss   1.25", "1 val_loss=1.25"},
		{"loss 2 of 3 runs", "-"},
		{"loss 3x smaller", "-"},
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
		r := auto.NewReader(0)
		p := r.Read(tc.line)
		if p == nil {
			p = r.Flush()
		}
		if got := show(p); got != tc.want {
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
		{"a program that does not clear its bar", 0, []string{
			"Map: 100%|██████| 9000/9000 [00:01<00:00, 6000 examples/s]", "-",
			"  0%|          | 0/1000 [00:00<?, ?it/s]", "-",
			"  5%|▍         | 48/1000 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': 0.5, 'grad_norm': 1.25, 'learning_rate': 4e-05, 'epoch': 0.1}", "-",
			"  5%|▌         | 50/1000 [00:10<03:10,  5.00it/s]", "-",
			"  5%|▌         | 51/1000 [00:10<03:10,  5.00it/s]", "50 loss=0.5 grad_norm=1.25 learning_rate=4e-05 epoch=0.1",
			"100%|██████████| 4/4 [00:00<00:00, 50.00it/s]", "-", // an evaluation
			"100%|██████████| 1000/1000 [00:10<00:00,  5.00it/s]", "-",
			"{'train_runtime': 10.5, 'train_loss': 0.25, 'epoch': 2.0}", "-",
		}, "1000 train_runtime=10.5 train_loss=0.25 epoch=2"},
		{"transformers", 0, []string{
			"  0%|          | 0/1000 [00:00<?, ?it/s]", "-",
			"{'loss': '0.5', 'epoch': '0.1'}", "-",
			"  4%|▍         | 48/1000 [00:10<03:10,  5.00it/s]", "-", // from before, by the slower pipe
			"            ", "-",
			"  5%|▌         | 50/1000 [00:10<03:10,  5.00it/s]", "50 loss=0.5 epoch=0.1",
			"{'eval_loss': '0.75', 'epoch': '0.1'}", "-",
			"            ", "-",
			"100%|██████████| 4/4 [00:00<00:00, 50.00it/s]", "-", // the bar of the evaluation
			"  5%|▌         | 50/1000 [00:10<03:10,  5.00it/s]", "50 eval_loss=0.75 epoch=0.1",
		}, "-"},
		{"transformers, each pipe first", 0, []string{
			"  0%|          | 0/1000 [00:00<?, ?it/s]", "-",
			"{'loss': 0.5, 'epoch': 0.1}", "-", // before the bar was cleared
			"            ", "-",
			"  5%|▌         | 50/1000 [00:10<03:10,  5.00it/s]", "50 loss=0.5 epoch=0.1",
			"            ", "-",
			"  6%|▌         | 60/1000 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': 0.4, 'epoch': 0.12}", "60 loss=0.4 epoch=0.12", // after it was drawn again
			"  7%|▌         | 68/1000 [00:10<03:10,  5.00it/s]", "-",
			"            ", "-",
			"{'loss': 0.3, 'epoch': 0.14}", "-",
			"  7%|▌         | 70/1000 [00:10<03:10,  5.00it/s]", "70 loss=0.3 epoch=0.14",
			"{'loss': 0.2, 'epoch': 0.16}", "-", // long before the bars
			"{'loss': 0.1, 'epoch': 0.18}", "-",
			"  7%|▌         | 75/1000 [00:10<03:10,  5.00it/s]", "-",
			"            ", "-",
			"  8%|▌         | 80/1000 [00:10<03:10,  5.00it/s]", "80 loss=0.2 epoch=0.16",
			"            ", "-",
			"  9%|▌         | 90/1000 [00:10<03:10,  5.00it/s]", "90 loss=0.1 epoch=0.18",
		}, "-"},
		{"transformers, lines that are read after the next bars", 0, []string{
			"  0%|          | 0/1000 [00:00<?, ?it/s]", "-",
			"{'loss': 0.5, 'epoch': 0.25}", "-",
			"            ", "-",
			"  1%|▌         | 10/1000 [00:10<03:10,  5.00it/s]", "10 loss=0.5 epoch=0.25",
			"            ", "-",
			"  2%|▌         | 20/1000 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': 0.4, 'epoch': 0.5}", "20 loss=0.4 epoch=0.5",
			"            ", "-",
			"  3%|▌         | 30/1000 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': 0.3, 'epoch': 0.75}", "30 loss=0.3 epoch=0.75",
			"            ", "-",
			"  4%|▌         | 40/1000 [00:10<03:10,  5.00it/s]", "-",
			"  4%|▌         | 41/1000 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': 0.2, 'epoch': 1.0}", "-",
			"            ", "-",
			"  5%|▌         | 51/1000 [00:10<03:10,  5.00it/s]", "40 loss=0.2 epoch=1",
			"{'loss': 0.1, 'epoch': 1.25}", "-",
			"            ", "-",
			"  6%|▌         | 60/1000 [00:10<03:10,  5.00it/s]", "50 loss=0.1 epoch=1.25",
		}, "-"},
		{"transformers, two first lines at the wrong bars, which are not believed for long", 0, []string{
			"  0%|          | 0/1000 [00:00<?, ?it/s]", "-",
			"{'loss': 0.5, 'epoch': 0.25}", "-",
			"            ", "-",
			"  2%|▌         | 20/1000 [00:10<03:10,  5.00it/s]", "20 loss=0.5 epoch=0.25",
			"{'loss': 0.5, 'epoch': 0.5}", "-",
			"            ", "-",
			"  4%|▌         | 40/1000 [00:10<03:10,  5.00it/s]", "40 loss=0.5 epoch=0.5",
			"            ", "-",
			"  5%|▌         | 50/1000 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': 0.4, 'epoch': 1.25}", "99 loss=0.4 epoch=1.25",
			"            ", "-",
			"  6%|▌         | 60/1000 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': 0.4, 'epoch': 1.5}", "119 loss=0.4 epoch=1.5",
			"            ", "-",
			"  7%|▌         | 70/1000 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': 0.4, 'epoch': 1.75}", "70 loss=0.4 epoch=1.75",
			"            ", "-",
			"  8%|▌         | 80/1000 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': 0.4, 'epoch': 2}", "80 loss=0.4 epoch=2",
		}, "-"},
		{"transformers, epochs with one digit, which are exact", 0, []string{
			"  0%|          | 0/75 [00:00<?, ?it/s]", "-",
			"{'loss': '0.5', 'epoch': '0.4'}", "-",
			"            ", "-",
			" 13%|▌         | 10/75 [00:10<03:10,  5.00it/s]", "10 loss=0.5 epoch=0.4",
			"            ", "-",
			" 29%|▌         | 22/75 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': '0.4', 'epoch': '0.8'}", "20 loss=0.4 epoch=0.8",
			"{'loss': '0.3', 'epoch': '1.2'}", "-",
			"            ", "-",
			" 40%|▌         | 30/75 [00:10<03:10,  5.00it/s]", "30 loss=0.3 epoch=1.2",
			"            ", "-",
			" 54%|▌         | 41/75 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': '0.2', 'epoch': '1.6'}", "40 loss=0.2 epoch=1.6",
			"            ", "-",
			"100%|██████████| 75/75 [00:10<00:00,  5.00it/s]", "-",
			"{'train_runtime': '10.5', 'train_loss': '0.25', 'epoch': '3'}", "75 train_runtime=10.5 train_loss=0.25 epoch=3",
		}, "-"},
		{"transformers, the first line at a later bar", 0, []string{
			"  0%|          | 0/75 [00:00<?, ?it/s]", "-",
			"            ", "-",
			" 13%|▌         | 13/75 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': '0.5', 'epoch': '0.4'}", "13 loss=0.5 epoch=0.4",
			"{'loss': '0.4', 'epoch': '0.8'}", "-",
			"            ", "-",
			" 29%|▌         | 20/75 [00:10<03:10,  5.00it/s]", "20 loss=0.4 epoch=0.8",
			"            ", "-",
			" 29%|▌         | 32/75 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': '0.3', 'epoch': '1.2'}", "30 loss=0.3 epoch=1.2",
		}, "-"},
		{"transformers, no step after the last", 0, []string{
			"  0%|          | 0/75 [00:00<?, ?it/s]", "-",
			"            ", "-",
			" 17%|▌         | 13/75 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': '0.5', 'epoch': '0.4'}", "13 loss=0.5 epoch=0.4",
			"            ", "-",
			" 35%|▌         | 26/75 [00:10<03:10,  5.00it/s]", "-",
			"{'loss': '0.4', 'epoch': '0.8'}", "26 loss=0.4 epoch=0.8",
			"            ", "-",
			"100%|██████████| 75/75 [00:10<00:00,  5.00it/s]", "-",
			"{'train_runtime': '10.5', 'train_loss': '0.25', 'epoch': '3'}", "75 train_runtime=10.5 train_loss=0.25 epoch=3",
		}, "-"},
		{"transformers without bars", 500, []string{
			"{'loss': 0.5, 'epoch': 0.1}", "501 loss=0.5 epoch=0.1",
			"{'eval_loss': 0.75, 'epoch': 0.1}", "501 eval_loss=0.75 epoch=0.1",
			"{'loss': 0.4, 'epoch': 0.2}", "502 loss=0.4 epoch=0.2",
			"{'train_runtime': 10.5, 'train_loss': 0.25, 'epoch': 0.2}", "502 train_runtime=10.5 train_loss=0.25 epoch=0.2",
		}, "-"},
		{"Keras", 0, []string{
			"Epoch 1/2", "-",
			"\x1b[1m1/8\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━━━\x1b[0m \x1b[1m2s\x1b[0m 404ms/step - accuracy: 0.4375 - loss: 0.75", "-",
			"\x1b[1m8/8\x1b[0m \x1b[32m━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m1s\x1b[0m 30ms/step - accuracy: 0.5 - loss: 0.5 - val_loss: 0.625", "1 accuracy=0.5 loss=0.5 val_loss=0.625",
			"Epoch 2/2", "-",
			"8/8 - 0s - 10ms/step - accuracy: 0.75 - loss: 0.25", "-",
			"10/10 ━━━━━━ 0s 5ms/step - accuracy: 0.5 - loss: 0.75", "-",
			"8/8 ━━━━━━ 0s 5ms/step - accuracy: 0.5 - loss: 0.75", "-",
		}, "2 accuracy=0.75 loss=0.25"},
		{"Keras, an epoch at a time, each drawn twice", 4, []string{
			"8/8 ━━━━━━ 1s 30ms/step - accuracy: 0.5 - loss: 0.5", "-",
			"8/8 ━━━━━━ 1s 30ms/step - accuracy: 0.5 - loss: 0.5", "-",
			"8/8 ━━━━━━ 1s 30ms/step - accuracy: 0.5 - loss: 0.25", "5 accuracy=0.5 loss=0.5",
			"10/10 ━━━━━━ 0s 5ms/step - accuracy: 0.5 - loss: 0.75", "-", // an evaluation
		}, "6 accuracy=0.5 loss=0.25"},
		{"Keras, fit in a loop", 0, []string{
			"8/8 - 7s - 900ms/step - loss: 0.5 - val_loss: 0.75", "-",
			"Epoch 2/2", "1 loss=0.5 val_loss=0.75",
			"8/8 - 1s - 100ms/step - loss: 0.25 - val_loss: 0.5", "2 loss=0.25 val_loss=0.5",
			"Epoch 3/3", "-",
		}, "-"},
		{"a bar of its own in epochs", 0, []string{
			"\x1b[1mEpoch 1/12\x1b[0m", "-",
			"\x1b[2K   1/20 ━ loss: 0.75 - ω: 0.5", "-",
			"\x1b[2K  20/20 ━━━━━━━━━ loss: 0.5 - ω: 0.25", "-",
			"Epoch 2/12", "1 loss=0.5",
		}, "-"},
		{"Keras, a bar that stays before its validation", 0, []string{
			"Epoch 1/2", "-",
			"8/8 ━━━━━━ 1s 30ms/step - accuracy: 0.5 - loss: 0.5", "-",
			"8/8 ━━━━━━ 1s 30ms/step - accuracy: 0.5 - loss: 0.5 - val_loss: 0.625", "1 accuracy=0.5 loss=0.5 val_loss=0.625",
			"Epoch 2/2", "-",
			"8/8 ━━━━━━ 1s 30ms/step - accuracy: 0.5 - loss: 0.25", "-",
			"Epoch 3/2", "2 accuracy=0.5 loss=0.25",
		}, "-"},
		{"tf.keras", 0, []string{
			"Epoch 3/5", "-",
			" 50/100 [=========>.....] - ETA: 3s - loss: 0.7", "-",
			"100/100 [==============================] - 3s 5ms/step - loss: 0.5 - val_loss: 0.6", "3 loss=0.5 val_loss=0.6",
		}, "-"},
		{"a bar for each epoch", 0, []string{
			"train: 49%|█  | 49/100 [00:10<01:30, 5.00it/s]", "-",
			"train: 50%|█  | 50/100 [00:10<01:30, 5.00it/s, loss=4]", "-",
			"train: 50%|█  | 50/100 [00:10<01:30, 5.00it/s, loss=3]", "-", // drawn again
			"train: 100%|█ | 100/100 [00:10<01:30, 5.00it/s, loss=2]", "50 loss=3",
			"train: 10%|   | 10/100 [00:10<01:30, 5.00it/s, loss=1]", "100 loss=2",
			"epoch 1: val loss 0.5", "110 val/loss=0.5",
		}, "110 loss=1"},
		{"a bar for each epoch, resumed", 300, []string{
			"train: 50%|█  | 50/100 [00:10<01:30, 5.00it/s, loss=3]", "-",
		}, "350 loss=3"},
		{"a bar for all, resumed", 50, []string{
			"51%|█  | 51/100 [00:10<01:30, 5.00it/s, loss=3]", "-",
		}, "51 loss=3"},
		{"Lightning", 0, []string{
			"Epoch 0: 100%|█| 10/10 [00:01<00:09,  9.87it/s, train_loss=2]", "-",
			"Epoch 0:   0%|█| 0/10 [00:01<00:09,  9.87it/s, train_loss=2]", "-",
			"Epoch 1:   0%|█| 0/10 [00:01<00:09,  9.87it/s, train_loss=2]", "-",
			"Epoch 1:  10%|█| 1/10 [00:01<00:09,  9.87it/s, train_loss=2]", "10 train_loss=2",
			"Epoch 1:  10%|█| 1/10 [00:01<00:09,  9.87it/s, train_loss=1]", "-",
		}, "11 train_loss=1"},
		{"a bar that is not drawn at its end", 0, []string{
			"Epoch 1/3: 95%|█  | 38/40 [00:10<01:30, 5.00it/s, loss=3]", "-",
			"Epoch 1: train_loss=0.5", "40 train_loss=0.5",
			"Epoch 2/3: 10%|█  | 4/40 [00:10<01:30, 5.00it/s, loss=3]", "38 loss=3",
			"Epoch 2: val_loss=0.5", "44 val_loss=0.5",
		}, "44 loss=3"},
		{"evaluations between steps", 0, []string{
			"Epoch(train)  [1][50/100]  lr: 1.0e-03  loss: 0.5", "50 lr=0.001 loss=0.5",
			"Epoch(val) [1][5/10]  accuracy/top1: 70.5", "-",
			"Epoch(val) [1][10/10]  accuracy/top1: 80.5", "50 val/accuracy/top1=80.5",
			`{"epoch": 1, "val_loss": 0.25}`, "50 epoch=1 val_loss=0.25",
		}, "-"},
		{"a count of all epochs", 0, []string{
			"Epoch[1] Iteration[20/120] Loss: 0.5", "20 loss=0.5",
			"Epoch[1] Iteration[40/120] Loss: 0.5", "40 loss=0.5",
			"Epoch[2] Iteration[60/120] Loss: 0.25", "60 loss=0.25",
			"Epoch[2] Iteration[80/120] Loss: 0.25", "80 loss=0.25",
			"Epoch[3] Iteration[100/120] Loss: 0.25", "100 loss=0.25",
		}, "-"},
		{"a count of all epochs, resumed", 40, []string{
			"Epoch[2] Iteration[60/120] Loss: 0.25", "60 loss=0.25",
			"Epoch[3] Iteration[100/120] Loss: 0.25", "100 loss=0.25",
		}, "-"},
		{"a count of each epoch, by the time", 0, []string{
			"Epoch[2] Iteration[20/120] Loss: 0.5", "140 loss=0.5",
			"Epoch[3] Iteration[40/120] Loss: 0.5", "280 loss=0.5",
			"Epoch[3] Iteration[100/120] Loss: 0.5", "340 loss=0.5",
			"Epoch[4] Iteration[40/120] Loss: 0.5", "400 loss=0.5",
		}, "-"},
		{"a count of each epoch, resumed by its number", 2, []string{
			"Epoch[3] Iteration[10/120] Loss: 0.5", "250 loss=0.5",
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
