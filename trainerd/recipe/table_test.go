package recipe

import "testing"

// tables are what programs print, each line with what is known by it after "=>".
var tables = map[string]string{
	"ultralytics": `
      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
        1/3         0G      1.176      2.785      1.233        215        640:  50%|█████     | 2/4 [00:03<00:00,  1.23it/s]
        1/3         0G      1.125      2.75      1.25        215        640: 100%|██████████| 4/4 [00:03<00:00,  1.23it/s]
                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 1/1 [00:00<00:00,  1.23it/s]
                   all          4         17      0.668       0.59      0.641      0.418 => 1 metrics/precision=0.668 metrics/recall=0.59 metrics/mAP50=0.641 metrics/mAP50_95=0.418

      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
        2/3         0G        1.0        2.5      1.125        200        640: 100% ━━━━━━━━━━━━ 4/4 1.2it/s 3.2s => 1 box_loss=1.125 cls_loss=2.75 dfl_loss=1.25
        3/3         0G        0.5        2.0        1.0        200        640: 100% ━━━━━━━━━━━━ 4/4 1.2it/s 3.2s => 2 box_loss=1 cls_loss=2.5 dfl_loss=1.125
=> 3 box_loss=0.5 cls_loss=2 dfl_loss=1`,
	"fastai": `
epoch     train_loss  valid_loss  accuracy  time
Epoch 1/2 : |████████------------| 40.00% [2/5 00:00<00:00 1.25]
0         1.234567    0.345678    0.900000  00:10 => 0 train_loss=1.234567 valid_loss=0.345678 accuracy=0.9
1         nan         #na#        0.900000  00:10
2         nan         0.5         0.900000  00:10 => 2 train_loss=NaN valid_loss=0.5 accuracy=0.9`,
	"spaCy": `
E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE
---  ------  ------------  --------  ------  ------  ------  ------
  0       0         46.00     45.00    0.00    0.00    0.00    0.00 => 0 LOSS_TOK2VEC=46 LOSS_NER=45 ENTS_F=0 ENTS_P=0 ENTS_R=0 SCORE=0
  2     200       2012.50   3400.00    1.00    2.00    3.00    0.25 => 200 LOSS_TOK2VEC=2012.5 LOSS_NER=3400 ENTS_F=1 ENTS_P=2 ENTS_R=3 SCORE=0.25`,
	"scikit-learn": `
      Iter       Train Loss   Remaining Time
         1           1.2613            0.35s => 1 train/Loss=1.2613
        20           0.5            0.10s => 20 train/Loss=0.5`,
	"skorch": `
  epoch    train_loss    valid_acc    valid_loss     dur
-------  ------------  -----------  ------------  ------
      1        ` + "\x1b[36m0.7111\x1b[0m       \x1b[32m0.5100\x1b[0m        \x1b[35m0.6894\x1b[0m" + `  0.1345 => 1 train_loss=0.7111 valid_acc=0.51 valid_loss=0.6894`,
	"CSV": `
"step","loss","lr"
10,0.5,1e-3 => 10 loss=0.5 lr=0.001
20, 0.25, 0.001 => 20 loss=0.25 lr=0.001
done, in 30 s
30,,0.001 => 30 lr=0.001`,
	"Markdown": `
| step | train loss | accuracy |
|------|-----------:|:--------:|
| 100  | 0.5        | 81.5%    | => 100 train/loss=0.5 accuracy=81.5`,
	"tabs": `
iteration	elapsed	avg_reward
1	0:00:01	20.5 => 1 avg_reward=20.5`,
	"Stable-Baselines3": `
Using cpu device
---------------------------------
| rollout/           |          |
|    ep_rew_mean     | 21.5     |
| time/              |          |
|    fps             | 1000     |
|    iterations      | 1        |
|    total_timesteps | 2048     |
--------------------------------- => 2048 rollout/ep_rew_mean=21.5 time/fps=1000
-----------------------------------------
| rollout/                |             |
|    ep_rew_mean          | 26          |
| time/                   |             |
|    iterations           | 2           |
|    time_elapsed         | 4           |
|    total_timesteps      | 4096        |
| train/                  |             |
|    approx_kl            | 0.0078125   |
|    explained_variance   | -0.25       |
|    loss                 | 8           |
|    n_updates            | 10          |
----------------------------------------- => 4096 rollout/ep_rew_mean=26 train/approx_kl=0.0078125 train/explained_variance=-0.25 train/loss=8 train/n_updates=10`,
	"Spinning Up": `
---------------------------------------
|             Epoch |               3 |
|      AverageEpRet |            21.5 |
| TotalEnvInteracts |           1.6e4 |
|              Time |            12.5 |
--------------------------------------- => 3 AverageEpRet=21.5 Time=12.5`,
	"no tables of a training": `
| Name  | Type   | Params |
--------------------------
| model | Linear | 1.2 K  |
| 0     | 1.5    | 2      |
epoch, loss and accuracy
  1  2  3
loss  accuracy
0.5  0.25
the step by which the loss falls
1 2 3 4 5 6 seven
+-------+------+
| GPU   | 1.5  |
+-------+------+`,
}

func TestTables(t *testing.T) {
	for name, text := range tables {
		t.Run(name, func(t *testing.T) { readScript(t, text) })
	}
}
