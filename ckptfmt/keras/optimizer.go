package keras

import (
	"strconv"
	"strings"
)

// longestName bounds the names that are taken apart: those of hostile files may have
// as many parts as bytes.
const longestName = 1 << 10

// OptimizerNames returns other names of the optimizer's variables in a file that Keras
// 3 has written in the layout of Keras 2, by their names in [Reader.Parts]:
//
//	adam/d1_kernel_momentum    optimizer/d1/kernel/momentum    optimizer/2
//
// The first is made from the model variable that it belongs to; the number is the one
// in files with the layout of Keras 3, which have no other name. Keras 2 itself uses
// another order, so its files have no such names.
func (r *Reader) OptimizerNames() (byVariable, byNumber map[string]string) {
	if r.layout != Legacy {
		return nil, nil
	}
	slots, trained := r.optimizerParts()
	if !isOfKeras3(slots) {
		return nil, nil
	}
	byVariable, byNumber = make(map[string]string), make(map[string]string)
	taken := make(map[string]bool)
	for i, key := range slots {
		_, own, _ := strings.Cut(key, "/")
		name := optimizer + "/" + slotName(own, trained)
		if !taken[name] {
			taken[name] = true
			byVariable[key] = name
		}
		if number := optimizerVariable(i); number == strconv.Itoa(i) {
			byNumber[key] = optimizer + "/" + number
		}
	}
	return byVariable, byNumber
}

// optimizerParts returns the names of the variables of the optimizer, in the order of
// its list, and those of the model by what Keras makes of them in a slot's name.
func (r *Reader) optimizerParts() (slots []string, trained map[string]string) {
	trained = make(map[string]string)
	for i := range r.parts {
		p := &r.parts[i]
		if IsOptimizer(p) {
			slots = append(slots, p.Name)
			continue
		}
		name := p.Name
		for range mostSegments { // wrappers of layers are not in a slot's name
			if name == "" || len(name) > longestName {
				break
			}
			mangled := strings.ReplaceAll(name, "/", "_")
			_, twice := trained[mangled]
			if trained[mangled] = p.Name; twice {
				trained[mangled] = "" // a_b/c and a/b_c
			}
			_, name, _ = strings.Cut(name, "/")
		}
	}
	return slots, trained
}

// isOfKeras3 reports whether the variables of an optimizer begin as those of Keras 3 do.
func isOfKeras3(slots []string) bool {
	if len(slots) < 2 {
		return false
	}
	class, first, _ := strings.Cut(slots[0], "/")
	return first == optimizerVariable(0) && slots[1] == class+"/"+optimizerVariable(1)
}

// slotName turns d1_kernel_momentum into d1/kernel/momentum. The longest variable that
// the name can begin with is meant.
func slotName(own string, trained map[string]string) string {
	if len(own) > longestName {
		return own
	}
	for at := strings.LastIndexByte(own, '_'); at > 0; at = strings.LastIndexByte(own[:at], '_') {
		if variable := trained[own[:at]]; variable != "" {
			return variable + "/" + own[at+1:]
		}
	}
	return own
}
