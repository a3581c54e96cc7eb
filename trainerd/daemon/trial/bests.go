package trial

import (
	"path/filepath"
	"strings"
)

var (
	// last are words in the names of files that have the newest state, at each save.
	last = wordsOf("last latest")
	// best is a word in the name of one that has the best so far.
	best = wordsOf("best")
	// metric are words before the value of a metric in a name.
	metric = wordsOf("loss acc accuracy auc f1 score ppl perplexity bleu rouge wer cer map iou mse mae rmse psnr reward return")
	// paced are words before a number by which a program saves, whatever its metrics are.
	paced = wordsOf("steps? iters? iterations?")
)

// areBests reports whether the numbered names of a pattern may be only those of the best, while
// another one next to them has the newest state: timm's checkpoint-12.pth.tar next to
// last.pth.tar and model_best.pth.tar, or Lightning's epoch=3-val_loss=0.41.ckpt next to
// last.ckpt. A kill would cost all since the last of the best.
func areBests(pattern string, patterns map[string]map[string]bool) bool {
	base := filepath.Base(pattern)
	if !strings.Contains(base, "*") || hasWord(paced, base) {
		return false
	}
	hasLast, hasBest := false, hasWord(metric, base)
	for other := range patterns {
		name := filepath.Base(other)
		if filepath.Dir(other) != filepath.Dir(pattern) || filepath.Ext(name) != filepath.Ext(base) || strings.Contains(name, "*") {
			continue
		}
		hasLast, hasBest = hasLast || hasWord(last, name), hasBest || hasWord(best, name)
	}
	return hasLast && hasBest
}
