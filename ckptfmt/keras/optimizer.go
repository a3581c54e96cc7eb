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
//	adam/d1_kernel_momentum                         optimizer/d1/kernel/momentum         optimizer/2
//	loss_scale_optimizer/adam/d1_kernel_momentum    optimizer/adam/d1/kernel/momentum    optimizer/6
//	adam/iteration                                  optimizer/adam/iteration             optimizer/4
//
// The first is made from the model variable that it belongs to; the number is the one
// in files with the layout of Keras 3, which have no other name. The lower two are of an
// optimizer in another one. Keras 2 itself uses another order, so its files have no such
// names.
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
	outer, _, _ := strings.Cut(slots[0], "/")
	for i, key := range slots {
		name := optimizer + "/" + slotName(strings.TrimPrefix(key, outer+"/"), trained)
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

// optimizerParts returns the names of the optimizer's variables, in the order of its list, and the
// names of the model's variables by the form that they have in a slot's name: the form of the path
// in the file, which begins with more scopes than the name, and that of the name.
func (r *Reader) optimizerParts() (slots []string, trained map[string]string) {
	trained = make(map[string]string)
	for i := range r.Parts() {
		p := &r.Parts()[i]
		if IsOptimizer(p) {
			slots = append(slots, p.Name)
			continue
		}
		noteEnds(trained, pathOf(p), p.Name)
		noteEnds(trained, p.Name, p.Name)
	}
	return slots, trained
}

// noteEnds enters a variable under the forms that the ends of a path have in a slot's name, which
// does not include wrappers of layers, or groups of the file.
func noteEnds(trained map[string]string, path, variable string) {
	const groups = 2
	for range groups + mostSegments {
		if path == "" || len(path) > longestName {
			return
		}
		mangled := strings.ReplaceAll(path, "/", "_")
		if other, taken := trained[mangled]; taken && other != variable {
			trained[mangled] = "" // a_b/c and a/b_c
		} else {
			trained[mangled] = variable
		}
		_, path, _ = strings.Cut(path, "/")
	}
}

// isOfKeras3 reports whether the variables of an optimizer begin as those of Keras 3 do.
func isOfKeras3(slots []string) bool {
	if len(slots) < 2 {
		return false
	}
	class, first, _ := strings.Cut(slots[0], "/")
	return first == optimizerVariable(0) && slots[1] == class+"/"+optimizerVariable(1)
}

// slotName turns d1_kernel_momentum into d1/kernel/momentum, also below the name of an
// optimizer. The longest variable that the name can begin with is meant.
func slotName(key string, trained map[string]string) string {
	if len(key) > longestName {
		return key
	}
	below, own := key[:strings.LastIndexByte(key, '/')+1], key[strings.LastIndexByte(key, '/')+1:]
	for at := strings.LastIndexByte(own, '_'); at > 0; at = strings.LastIndexByte(own[:at], '_') {
		if variable := trained[own[:at]]; variable != "" {
			return below + variable + "/" + own[at+1:]
		}
	}
	return key
}
