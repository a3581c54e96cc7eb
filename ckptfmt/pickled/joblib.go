package pickled

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

// A file of joblib is a pickle with the elements of each array after the object for it:
//
//	NumpyArrayWrapper with its state | padding (1) | 0xff ... | elements
//
// The padding, whose first byte is its length, is there only if the state says how the
// elements are aligned. The elements of an array of objects are another pickle, of the
// array.

const wrapper = "joblib.numpy_pickle.NumpyArrayWrapper"

var errArray = errors.New("an array of joblib is not as expected")

// readJoblib makes an array of a wrapper, as if the array had been pickled, and returns how
// long its elements are.
func readJoblib(o *pickle.Object, rest string, depth int) (n int, err error) {
	if o.Class != wrapper {
		return 0, nil
	}
	state, _ := o.State.(*pickle.Dict)
	if state == nil {
		return 0, errArray
	}
	if typ, _ := state.Get("dtype").(*pickle.Object); typ == nil || hasObjects(typ) {
		return readObjects(o, rest, depth)
	}
	padding := 0
	if state.Get("numpy_array_alignment_bytes") != nil {
		if rest == "" {
			return 0, pickle.ErrShort
		}
		padding = 1 + int(rest[0])
	}
	size, err := sizeOf(state)
	switch {
	case err != nil:
		return 0, err
	case uint64(padding)+size > uint64(len(rest)):
		return 0, pickle.ErrShort
	}
	n = padding + int(size)
	inFortran := state.Get("order") == any("F")
	o.Class = "numpy.core.multiarray._reconstruct"
	o.State = pickle.Tuple{int64(1), state.Get("shape"), state.Get("dtype"), inFortran, pickle.Bytes(rest[padding:n])}
	return n, nil
}

// readObjects reads an array of objects.
func readObjects(o *pickle.Object, rest string, depth int) (n int, err error) {
	if depth > maxDepth {
		return 0, errTooMuch
	}
	o.State, n, err = load(rest, depth+1)
	return n, err
}

// hasObjects reports whether a type is object.
func hasObjects(typ *pickle.Object) bool {
	return strings.Contains(typeOf(typ), "O")
}

// sizeOf returns how many bytes the elements of an array have.
func sizeOf(state *pickle.Dict) (uint64, error) {
	typ := strings.TrimLeft(typeOf(state.Get("dtype")), "<>|=")
	if typ == "" {
		return 0, errArray
	}
	size, err := strconv.ParseUint(typ[1:], 10, 32)
	shape, ok := state.Get("shape").(pickle.Tuple)
	if err != nil || !ok {
		return 0, errArray
	}
	if typ[0] == 'U' {
		size *= 4 // of UCS-4
	}
	for _, n := range shape {
		length, ok := n.(int64)
		high, low := bits.Mul64(size, uint64(length))
		if !ok || length < 0 || high != 0 || low > 1<<62 {
			return 0, fmt.Errorf("%w: its shape is %s", errArray, printed(shape))
		}
		size = low
	}
	return size, nil
}
