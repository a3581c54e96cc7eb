package ckptfmt

import "strings"

// slotSuffixes are what TensorFlow's optimizers add to the name of a variable
// for the values that they keep beside it.
var slotSuffixes = []string{
	"/Momentum", "/Adam", "/Adam_1", "/Adagrad", "/Adadelta", "/Adadelta_1",
	"/RMSProp", "/RMSProp_1", "/RMSProp_2", "/Ftrl", "/Ftrl_1",
	"/gradient_accumulator", "/gradient_squared_accumulator",
}

// slotMark is in the name of every slot in an object-based checkpoint.
const slotMark = "/.OPTIMIZER_SLOT/"

// FindSlots returns what tells which tensors of the checkpoint under prefix
// are optimizer slots: a variable's name with a slot's suffix is one where the
// variable itself is in the checkpoint.
func FindSlots(prefix string) (isSlot func(name string) bool, err error) {
	r, err := Open(prefix)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	infos, err := allTensors(r)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool, len(infos))
	for _, t := range infos {
		names[t.Name] = true
	}
	return func(name string) bool {
		if strings.Contains(name, slotMark) {
			return true
		}
		for _, s := range slotSuffixes {
			if variable, ok := strings.CutSuffix(name, s); ok && names[variable] {
				return true
			}
		}
		return false
	}, nil
}
