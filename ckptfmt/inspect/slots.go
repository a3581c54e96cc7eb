package inspect

import (
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// slotSuffix is what TensorFlow's optimizers add to the name of a variable for
// the values that they keep for it; with numbers from _1 on, for there may be
// several of them. BERT's AdamWeightDecayOptimizer has adam_m and adam_v, LAMB has
// lamb_m and lamb_v, and T5's Adafactor has kernel_slot_vr next to kernel.
var slotSuffix = lazyregexp.New(`(?:/(?:Momentum|Adam|AdamW|LazyAdam|RAdam|Nadam|AMSGrad|AdaMax|Adagrad|AdagradDA|ProximalAdagrad|` +
	`Adadelta|RMSProp|Ftrl|AddSign|PowerSign|LARS|LARSOptimizer|LAMB|` +
	`gradient_accumulator|gradient_squared_accumulator|adam_m|adam_v|lamb_m|lamb_v)(?:_[0-9]+)?|_slot_(?:m|v|vr|vc))$`)

// kerasSuffixes are those of Keras' optimizers in a name-based checkpoint,
// where the optimizer's name comes before the variable's:
// "training/Adam/dense/kernel/m".
var kerasSuffixes = []string{
	"/m", "/v", "/vhat", "/momentum", "/rms", "/mg", "/accumulator", "/linear", "/accum_grad", "/accum_var",
}

// slotMark is in the name of every slot in an object-based checkpoint.
const slotMark = "/.OPTIMIZER_SLOT/"

// SlotsAmong returns a function that reports whether a tensor of a checkpoint is an
// optimizer slot, by its name: a variable's name with a slot's suffix, if the variable
// itself is in the checkpoint.
func SlotsAmong(names []string) (isSlot func(name string) bool) {
	known := make(map[string]bool, len(names))
	for _, name := range names {
		known[name] = true
	}
	return func(name string) bool {
		if strings.Contains(name, slotMark) {
			return true
		}
		if at := slotSuffix().FindStringIndex(name); at != nil && known[name[:at[0]]] {
			return true
		}
		return slices.ContainsFunc(kerasSuffixes, func(s string) bool {
			variable, ok := strings.CutSuffix(name, s)
			for ok {
				if _, variable, ok = strings.Cut(variable, "/"); known[variable] {
					return ok
				}
			}
			return false
		})
	}
}
