package recipe

import (
	"strings"
	"testing"
)

// frameworks has what trainers of 2026 print, each line with what is known by it after "=> ".
var frameworks = map[string]string{
	"libtorch": `
Train Epoch: 1 [  640/60000] Loss: 0.2500 => 640 loss=0.25
Train Epoch: 1 [60000/60000] Loss: 0.2400 => 60000 loss=0.24
Train Epoch: 2 [  640/60000] Loss: 0.2300 => 60640 loss=0.23`,
	"libtorch, DCGAN": `
[ 1/10][ 30/938] D_loss: 0.6900 | G_loss: 1.2000 => 30 D_loss=0.69 G_loss=1.2
[ 1/10][130/938] D_loss: 0.5900 | G_loss: 1.1000 => 130 D_loss=0.59 G_loss=1.1`,
	"Keras, a loop of one's own": `
Start of epoch 0
Training loss (for 1 batch) at step 0: 2.5 => 0 loss=2.5
Seen so far: 64 samples
Training loss (for 1 batch) at step 200: 0.5 => 200 loss=0.5
Training acc over epoch: 0.7500 => 200 acc=0.75
Validation acc: 0.5000 => 200 val/acc=0.5
Time taken: 0.60s

Start of epoch 1
Training loss (for 1 batch) at step 0: 0.375 => 200 loss=0.375
Training loss (for 1 batch) at step 200: 0.25 => 400 loss=0.25
Training acc over epoch: 0.8750 => 400 acc=0.875`,
	"absl, from a file of one's own": `
I1128 23:10:54.230521 139874 train.py:88] [10] accuracy=0.5000, loss=1.25 => 10 accuracy=0.5 loss=1.25`,
	"a dict with its step, and an epoch": `
{'loss': 0.5, 'learning_rate': 0.25, 'step': 20, 'epoch': 0.2} => 20 loss=0.5 learning_rate=0.25 epoch=0.2
{'loss': 0.25, 'learning_rate': 0.25, 'step': 30, 'epoch': 0.3} => 30 loss=0.25 learning_rate=0.25 epoch=0.3`,
	"Caffe": `
I1127 21:00:00.123456 1234 solver.cpp:239] Iteration 100 (2.5 iter/s, 40s/100 iters), loss = 0.25 => 100 loss=0.25`,
	"dlib": `
step#: 500   learning rate: 0.1  average loss: 0.25 => 500 rate=0.1 loss=0.25`,
	"RSL-RL": `
################################################################################
                       Learning iteration 5/1500

                       Computation: 50000 steps/s (collection: 0.5s, learning 0.1s) => 5 Computation=50000
               Value function loss: 0.2500 => 5 Value_function_loss=0.25
                       Mean reward: 1.50 => 5 Mean_reward=1.5
--------------------------------------------------------------------------------
                       Learning iteration 6/1500

                    Iteration time: 0.50s => 6 Iteration_time=0.5
                       Mean reward: 2.50 => 6 Mean_reward=2.5`,
	"MXNet": `
INFO:root:Epoch[0] Batch [0-100]	Speed: 50000.00 samples/sec	accuracy=0.5 => 100 accuracy=0.5
INFO:root:Epoch[0] Batch [100-200]	Speed: 50000.00 samples/sec	accuracy=0.75 => 200 accuracy=0.75
INFO:root:Epoch[1] Batch [0-100]	Speed: 50000.00 samples/sec	accuracy=0.875 => 300 accuracy=0.875`,
	"StyleGAN": `
tick 5     kimg 20.0     time 1m 05s       sec/tick 30.0    sec/kimg 7.50    gpumem 5.5    augment 0.125 => 5 kimg=20 sec/tick=30 sec/kimg=7.5 gpumem=5.5 augment=0.125`,
	"R's torch": `
Loss at epoch 3: 0.125 => 3 loss=0.125`,
	"Julia": `
[ Info: epoch = 3, loss = 0.125 => 3 loss=0.125
┌ Info: training
│   epoch = 4
│   loss = 0.25
└   acc = 0.5 => 4 loss=0.25 acc=0.5
┌ Warning: a message that has not ended when
epoch 5 loss 0.5 => 5 loss=0.5
└   loss = 7`,
	"luz": `
Epoch 3/10
Train metrics: Loss: 0.25 - Acc: 0.5 => 3 loss=0.25 acc=0.5
Valid metrics: Loss: 0.5 - Acc: 0.25 => 3 val/loss=0.5 val/acc=0.25
Epoch 4/10
Train metrics: Loss: 0.125 - Acc: 0.75 => 4 loss=0.125 acc=0.75`,
	"llm.c": `
val loss 4.5 => 1 val/loss=4.5
step    1/100 | loss 4.250000 (+1.0z)| norm 2.1234 (-0.2z)| lr 3.00e-04 | 100.12 ms | 40.1% bf16 MFU | 34563 tok/s => 1 loss=4.25 lr=0.0003
step   20/100 | loss 4.000000 (+1.0z)| norm 2.1234 (-0.2z)| lr 3.00e-04 | 100.12 ms | 40.1% bf16 MFU | 34563 tok/s => 20 loss=4 lr=0.0003
val loss 4.25 => 20 val/loss=4.25`,
	"Composer": `
[epoch=1][batch=10/200]:
	 Train time/epoch: 0 => 10 time/epoch=0
	 Train loss/train/total: 7.0195 => 10 loss/train/total=7.0195
	 Train metrics/train/LanguagePerplexity: 1118.25 => 10 metrics/train/LanguagePerplexity=1118.25
[Eval batch=1/4] Eval on eval data
[Eval batch=4/4] Eval on eval data:
	 Eval metrics/eval/LanguageCrossEntropy: 6.5 => 10 metrics/eval/LanguageCrossEntropy=6.5
Train loss/train/total: 3`,
	"Composer by batches": `
[batch=20/4800]:
	 Train loss/train/total: nan => 20 loss/train/total=NaN`,
	"OLMo-core": `
2026-11-26 10:00:00.123	host:0	olmo_core.train.callbacks.console_logger:87	INFO	[step=100/4769,epoch=1,eta=1h30m]
    train/CE loss=2.310 => 100 train/CE_loss=2.31
    optim/total grad norm=0.4200 => 100 optim/total_grad_norm=0.42
    throughput/total tokens=1,048,576 => 100 throughput/total_tokens=1.048576e+06
2026-11-26 10:00:01.123	host:0	olmo_core.train.callbacks.console_logger:66	INFO	[step=101/???,epoch=1]
train/CE loss=2.3, as the page says`,
	"axlearn": `
I1126 10:00:00.1 140 trainer.py:500] trainer process   0 step      100] loss=10.25 aux={'perplexity': 29732.5, 'loss': 10.25} => 100 loss=10.25 perplexity=29732.5`,
	"torchtitan": `
[rank0]:[titan] 2026-01-01 10:00:00,123 - root - INFO - ` + "\x1b[31mstep:  1  \x1b[32mloss:  8.1250  \x1b[38;2;180;60;0mgrad_norm:  1.2500  \x1b[36mmemory: 10.50GiB(12.30%)  \x1b[34mtps: 1,234  \x1b[36mtflops: 5.50  \x1b[35mmfu: 1.25%\x1b[39m" + ` => 1 loss=8.125 grad_norm=1.25 tps=1234 tflops=5.5 mfu=1.25
[rank0]:[titan] 2026-01-01 10:00:00,123 - root - INFO - validate step: 10  loss:  7.5000  memory: 10.50GiB(12.30%)  tps: 1,234 => 10 val/loss=7.5 val/tps=1234`,
	"torchtune": `
1|10|Loss: 1.25:  10%|█         | 10/100 [00:10<01:30,  1.0it/s]
Step 1 | loss:1.25 lr:2e-05 tokens_per_second_per_gpu:100.5 => 1 loss=1.25 lr=2e-05 tokens_per_second_per_gpu=100.5
=> 10 loss=1.25`,
	"NeMo": `
retraining/0 [default0]:Training epoch 1, iteration 97/99 | lr: 1.5e-05 | global_batch_size: 128 | global_step: 197 | peak_memory(GB): 10.5 | reduced_train_loss: 6.25 | train_step_timing in s: 12.25 | tokens_per_sec_per_gpu: 1.0e+04 => 197 lr=1.5e-05 global_batch_size=128 peak_memory(GB)=10.5 reduced_train_loss=6.25 train_step_timing=12.25 tokens_per_sec_per_gpu=10000`,
	"MaxText": `
completed step: 10, seconds: 1.250, TFLOP/s/device: 80.500, Tokens/s/device: 3410.500, total_weights: 8192, loss: 9.125 => 10 seconds=1.25 TFLOP/s/device=80.5 Tokens/s/device=3410.5 total_weights=8192 loss=9.125
eval metrics after step: 10, loss=9.250, total_weights=75264.0 => 10 eval/loss=9.25 eval/total_weights=75264`,
	"TRL, Unsloth": `
  5%|▌         | 50/1000 [00:10<03:10,  5.00it/s]

{'loss': '0.5', 'grad_norm': '1.25', 'rewards/chosen': '0.75', 'epoch': '0.1'}
  5%|▌         | 50/1000 [00:10<03:10,  5.00it/s]
  6%|▌         | 60/1000 [00:12<03:08,  5.00it/s] => 50 loss=0.5 grad_norm=1.25 rewards/chosen=0.75 epoch=0.1`,
	"Ultralytics": `
      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
        1/3         0G      1.125      2.75      1.25        215        640: 100%|██████████| 4/4 [00:03<00:00,  1.23it/s]
                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 1/1 [00:00<00:00,  1.23it/s]
                   all          4         17      0.625       0.5      0.75      0.25 => 1 metrics/precision=0.625 metrics/recall=0.5 metrics/mAP50=0.75 metrics/mAP50_95=0.25
=> 1 box_loss=1.125 cls_loss=2.75 dfl_loss=1.25`,
	"MMEngine": `
2026/05/01 10:00:00 - mmengine - INFO - Epoch(train)  [1][ 50/118]  lr: 1.0e-03  eta: 0:10:00  time: 0.50  data_time: 0.01  memory: 1000  loss: 0.5 => 50 lr=0.001 loss=0.5
2026/05/01 10:00:00 - mmengine - INFO - Epoch(val) [1][10/10]    coco/bbox_mAP: 0.2500  data_time: 0.01  time: 0.03 => 50 val/coco/bbox_mAP=0.25`,
	"MMCV": `
2026-05-01 10:00:00,123 - mmdet - INFO - Epoch [1][50/7330]	lr: 2.0e-03, eta: 1 day, 0:10:00, time: 0.5, data_time: 0.05, memory: 3000, loss_cls: 0.25, loss: 1.25 => 50 lr=0.002 data_time=0.05 memory=3000 loss_cls=0.25 loss=1.25`,
	"rich.progress": `
training ━━━━━━━━━━━━━━━━╸━━━━━━━ 36/40 loss 2.125 0:00:01
training ━━━━━━━━━━━━━━━━━━╸━━━━━ 37/40 loss 2.0 0:00:01 => 36 loss=2.125
[10:00:00] saved state at step 37                                    train.py:12
training ━━━━━━━━━━━━━━━━━━━━━━━╸  38/40 loss 1.5 acc: 0.25 0:00:01 => 37 loss=2
=> 38 loss=1.5 acc=0.25`,
	"rich.progress with epochs": `
Epoch 0 ━━━━━━━━━━━━━━━━╸━━━━━━━  90% 36/40 • loss=2.125 • 0:00:01 < 0:00:09
Epoch 0 ━━━━━━━━━━━━━━━━━━━━━━━━ 100% 40/40 • loss=2.5 • 0:00:01 < 0:00:09 => 36 loss=2.125
Epoch 1 ━━━━━━━━━━━━━━━━╸━━━━━━━  25% 10/40 • loss=1.5 • 0:00:01 < 0:00:09 => 40 loss=2.5
=> 50 loss=1.5`,
	"rich.progress with numbers in front": `
Epoch 0 loss: 1.25 ━━━━━━━━━━━━━━━━╸━━━━━━━  50% 20/40 0:00:09
Epoch 1 loss: 1.125 ━━━━━━━━━━━━━━━━╸━━━━━━━  52% 21/40 0:00:09 => 20 loss=1.25
=> 61 loss=1.125`,
	"Detectron2": `
[05/01 10:00:00 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 2.5  loss_cls: 1.25    time: 0.5  last_time: 0.5  lr: 0.001  max_mem: 1000M => 19 total_loss=2.5 loss_cls=1.25 last_time=0.5 lr=0.001`,
	"ESPnet": `
[host] 2026-11-23 10:00:00,123 (trainer:763) INFO: 1epoch:train:1-50batch: iter_time=0.1, forward_time=0.2, loss_ctc=15.5, loss=12.25, optim0_lr0=1.0e-05 => 50 loss_ctc=15.5 loss=12.25 optim0_lr0=1e-05
[host] 2026-11-23 10:00:00,123 (trainer:763) INFO: 2epoch:train:1-50batch: iter_time=0.1, loss=11.25 => 100 loss=11.25
[host] 2026-11-23 10:00:00,123 (trainer:338) INFO: 2epoch results: [train] iter_time=0.1, loss=11.5, time=5 minutes and 3.2 seconds, total_count=500, [valid] loss_ctc=11.5, cer_ctc=0.25, loss=10.5, time=3.2 seconds, total_count=5, gpu_max_cached_mem_GB=3.2, [att_plot] time=1.5 seconds => 100 val/loss_ctc=11.5 val/cer_ctc=0.25 val/loss=10.5`,
	"icefall": `
2026-05-01 10:00:00,123 INFO [train.py:895] (0/4) Epoch 1, batch 50, loss[loss=7.5, simple_loss=6.75, over 26000.00 frames. ], tot_loss[loss=7.25, simple_loss=6.5, over 1e6 frames. ], batch size: 100, lr: 2.25e-02, grad_scale: 1.0 => 50 lr=0.0225 loss=7.5 simple_loss=6.75
2026-05-01 10:00:00,123 INFO [train.py:895] (0/4) Epoch 2, batch 0, loss[loss=6.5, over 26000.00 frames. ], tot_loss[loss=7.25, over 1e6 frames. ], batch size: 100 => 50 loss=6.5
2026-05-01 10:00:00,123 INFO [train.py:923] (0/4) Epoch 2, validation: loss=6.25, simple_loss=6.125, over 944034.00 frames.  => 50 val/loss=6.25 val/simple_loss=6.125`,
	"DeepSpeed-Chat": `
Epoch: 0, Step: 100, Rank: 0, loss = 2.125 => 100 loss=2.125
Epoch: 0 | Step: 110 | PPO Epoch: 1 | Actor Loss: 0.125 | Critic Loss: 0.25 | Unsupervised Loss: 0.0 => 110 actor_loss=0.125 critic_loss=0.25 unsupervised_loss=0`,
	"Levanter": `
2026-05-01T04:09:05 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:129 - INFO :: Progress on:train 19.0it/10.0kit rate:1.2s/it remaining:1:05:15 elapsed:31:40 postfix:loss=10.5
2026-05-01T04:09:05 - 0 - tqdm_loggable.tqdm_logging - tqdm_logging.py:129 - INFO :: Progress on:train 1.23kit/10.0kit rate:1.2s/it remaining:1:05:15 elapsed:31:40 postfix:loss=5.25 => 19 loss=10.5
2026-05-01T04:09:05 - 0 - levanter.eval - eval.py:320 - INFO :: eval loss: 5.500 => 1230 eval/loss=5.5
=> 1230 loss=5.25`,
	"EasyLM": `

{'accuracy': 0.25,
 'gradient_norm': 1.125,
 'learning_rate': array(0.0001, dtype=float32),
 'loss': 7.5,
 'step': 50} => 50 accuracy=0.25 gradient_norm=1.125 learning_rate=0.0001 loss=7.5
`,
	"GPT-NeoX": `
 samples/sec: 12.250 | iteration      100/  320000 | elapsed time per iteration (ms): 123.5 | learning rate: 1.500E-04 | approx flops per GPU: 12.5TFLOPS | lm_loss: 6.5E+00 | number of skipped iterations:   0 | number of nan iterations:   0 | => 100 elapsed_time_per_iteration=123.5 learning_rate=0.00015 lm_loss=6.5 number_of_skipped_iterations=0 number_of_nan_iterations=0
 validation loss at iteration 1000 | lm loss value: 5.125E+00 | lm loss PPL: 1.5E+02 | => 1000 val/lm_loss=5.125 val/lm_loss_PPL=150`,
	"rl_games": `
fps step: 12345 fps step and policy inference: 1234 fps total: 1000 epoch: 10/500 frames: 163840 => 10 fps=1000`,
	"nerfstudio": `
Step (% Done)       Train Iter (time)    Train Rays / Sec     Curr Test PSNR       ETA (time)
---------------------------------------------------------------------------------------------
100 (0.33%)         26.125 ms            158.50 K             15.2500              13 m, 0 s            => 100 train/Iter_(time)=26.125 train/Rays_/_Sec=158500 Curr_Test_PSNR=15.25`,
	"Diffusers": `
Steps:  10%|█         | 100/1000 [01:00<09:00,  1.66it/s, lr=1e-5, step_loss=0.0125]
=> 100 lr=1e-05 step_loss=0.0125`,
	"kohya": `
epoch 1/10
steps:  10%|█         | 100/1000 [01:00<09:00,  1.66it/s, avr_loss=0.125]
=> 100 avr_loss=0.125`,
	"LitGPT": `
Epoch 1 | iter 100 step 25 | loss train: 2.375, val: n/a | iter time: 123.45 ms (step) remaining time: 1:00:00 => 25 train/loss=2.375
Epoch 1 | iter 104 step 26 | loss train: 2.250, val: 2.5 | iter time: 123.45 ms (step) => 26 train/loss=2.25 val/loss=2.5`,
	"3D Gaussian Splatting": `
Training progress:  23%|██▎       | 7000/30000 [01:17<00:34, 58.42it/s, Loss=0.015625]
[ITER 7000] Evaluating test: L1 0.0625 PSNR 24.25 [20/05 20:16:20] => 7000 test/l1=0.0625 test/psnr=24.25
[ITER 7000] Evaluating train: L1 0.03125 PSNR 30.5 [20/05 20:16:27] => 7000 l1=0.03125 psnr=30.5
=> 7000 Loss=0.015625`,
	"DINOv2": `
I20260501 10:00:00 1234 dinov2 helpers.py:102] Training  [    10/125000]  eta: 1 day, 2:03:04  lr: 0.0001 (0.0001)  total_loss: 13.25 (13.50)  time: 0.75  data: 0.01  max mem: 1234 => 10 lr=0.0001 total_loss=13.25`,
	"PyTorch's MNIST": `
Train Epoch: 1 [59520/60000 (99%)]	Loss: 0.125 => 59520 loss=0.125

Test set: Average loss: 0.0625, Accuracy: 9830/10000 (98%) => 59520 test/loss=0.0625 test/accuracy=98
`,
	"PyTorch's quickstart": `
Epoch 1
-------------------------------
loss: 2.25  [   64/60000] => 64 loss=2.25
loss: 2.00  [51264/60000] => 51264 loss=2
Test Error: 
 Accuracy: 44.5%, Avg loss: 1.5  => 51264 test/accuracy=44.5 test/loss=1.5

Epoch 2
-------------------------------
loss: 1.50  [   64/60000] => 60064 loss=1.5`,
	"PyTorch's introduction": `
EPOCH 1:
  batch 1000 loss: 1.75 => 1000 loss=1.75
  batch 2000 loss: 0.75 => 2000 loss=0.75
LOSS train 0.5 valid 0.25 => 2000 loss/train=0.5 loss/valid=0.25
EPOCH 2:
  batch 1000 loss: 0.5 => 3000 loss=0.5`,
	"PyTorch's transfer learning": `
Epoch 0/24
----------
train Loss: 0.75 Acc: 0.5 => 0 loss=0.75 acc=0.5
val Loss: 0.5 Acc: 0.75 => 0 val/loss=0.5 val/acc=0.75

Epoch 1/24
----------
train Loss: 0.5 Acc: 0.75 => 1 loss=0.5 acc=0.75`,
	"lines of batches below epochs": `
Epoch 1/2
loss: 4 => 1 loss=4
loss: 3 => 2 loss=3
Epoch 2/2
loss: 2 => 3 loss=2`,
	"TensorFlow's guide to checkpoints": `
Initializing from scratch.
Saved checkpoint for step 10: ./tf_ckpts/ckpt-1
loss 30.5 => 10 loss=30.5
Saved checkpoint for step 20: ./tf_ckpts/ckpt-2
loss 23.5 => 20 loss=23.5`,
	"bars without a length": `
50it [00:10,  5.00it/s, loss=4]
80it [00:16,  5.00it/s, loss=3] => 50 loss=4
20it [00:04,  5.00it/s, loss=2] => 80 loss=3
=> 100 loss=2`,
	"Lightning without a length": `
Epoch 0: |          | 10/? [00:01<00:00,  9.87it/s, v_num=3, train_loss=4]
Epoch 1: |          | 5/? [00:01<00:00,  9.87it/s, v_num=3, train_loss=3] => 10 train_loss=4
=> 15 train_loss=3`,
	"bars of an evaluation": `
Epoch 1 [train]: 100%|██| 20/20 [00:04<00:00,  5.00it/s, loss=4]
Epoch 1 [val]:  50%|█ | 2/4 [00:01<00:00,  5.00it/s, loss=3]
Epoch 1 [val]: 100%|██| 4/4 [00:01<00:00,  5.00it/s, loss=3.5] => 20 val/loss=3.5
Epoch 2 [train]:   5%|  | 1/20 [00:04<00:00,  5.00it/s, loss=2] => 20 loss=4
=> 21 loss=2`,
	"epochs from 0": `
Epoch 0/5 Batch 20/20 loss: 4 => 20 loss=4
Epoch 1/5 Batch 10/20 loss: 3 => 30 loss=3`,
	"a config, and progress, over several lines": `
{
  "model": {"loss": "mse", "accuracy": 0.5},
  "epoch": "10 of them",
  "batch": 32
}
{
  "epoch": 3,
  "train_loss": 0.25
} => 3 epoch=3 train_loss=0.25
{ an open brace
step 5 loss 0.5 => 5 loss=0.5`,
}

func TestFrameworks(t *testing.T) {
	for name, text := range frameworks {
		t.Run(name, func(t *testing.T) { readScript(t, text) })
	}
}

// readScript reads lines, each with what is known by it after "=> ", and what is left at the
// end in a line that begins so.
func readScript(t *testing.T, text string) {
	t.Helper()
	r := load1(t, Auto).NewReader(0)
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\n"), "\n") {
		line, want, said := strings.Cut(line, "=> ")
		if !said {
			want = "-"
		}
		got := show(r.Read(line))
		if line == "" && said {
			got = show(r.Flush())
		}
		if got != want {
			t.Errorf("%q\n got %s\nwant %s", line, got, want)
		}
	}
	if got := show(r.Flush()); got != "-" {
		t.Errorf("the end gives %s", got)
	}
}

// TestResumedEpochs has the first line of a start that resumes from step 40 say whether the
// first of the epochs, of 20 steps each, is 0 or 1.
func TestResumedEpochs(t *testing.T) {
	for line, want := range map[string]string{
		"Epoch 3/5 Batch 1/20 loss: 0.5":            "41 loss=0.5",
		"Epoch 2/5 Batch 1/20 loss: 0.5":            "41 loss=0.5",
		"Epoch 0/5 Batch 1/20 loss: 0.5":            "1 loss=0.5",
		"epoch 7 batch 60 loss 0.5":                 "60 loss=0.5",
		"Epoch 9: 5it [00:01,  5.00it/s, loss=0.5]": "45 loss=0.5",
	} {
		r := load1(t, Auto).NewReader(40)
		p := r.Read(line)
		if p == nil {
			p = r.Flush()
		}
		if got := show(p); got != want {
			t.Errorf("%q\n got %s\nwant %s", line, got, want)
		}
	}
}

// TestLearnedCounts has a later start of a program whose lines have no length of an epoch:
// that they begin again was seen before.
func TestLearnedCounts(t *testing.T) {
	auto := load1(t, Auto)
	first := auto.NewReader(0)
	for _, line := range []string{"epoch 0 step 100 loss 0.5", "epoch 0 step 200 loss 0.5", "epoch 1 step 100 loss 0.5"} {
		first.Read(line)
	}
	if got := show(auto.NewReader(400).Read("epoch 2 step 100 loss 0.5")); got != "500 loss=0.5" {
		t.Errorf("a start from step 400 begins at %s", got)
	}
}

// TestContinuedRounds has XGBoost go on from a model: it counts its rounds from 0 again, and
// only the numbers show that it has not begun from scratch.
func TestContinuedRounds(t *testing.T) {
	auto := load1(t, Auto)
	auto.NewReader(0).Read("[0]\ttrain-rmse:0.5")
	for line, want := range map[string]string{
		"[0]\ttrain-rmse:0.25": "41 train-rmse=0.25",
		"[0]\ttrain-rmse:0.5":  "0 train-rmse=0.5",
		"[44]\ttrain-rmse:0.2": "44 train-rmse=0.2",
	} {
		if got := show(auto.NewReader(40).Read(line)); got != want {
			t.Errorf("%q after step 40: %s, want %s", line, got, want)
		}
	}
	if r := auto.NewReader(0); show(r.Read("[0]\ttrain-rmse:0.25")) != "0 train-rmse=0.25" || r.Absolute() {
		t.Error("the lines of a start that continues give its place")
	}
}
