package torch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

// maxKey is how much of a key that is not a text is in a name.
const maxKey = 1024

// keyName is a key of a dict as Python prints it.
func keyName(key any) string {
	if text, ok := key.(string); ok {
		return text
	}
	return string(appendKey(nil, key))
}

// appendKey appends a key, or an element of one. Several keys may share an element, and so be very
// long.
func appendKey(b []byte, key any) []byte {
	if len(b) > maxKey {
		return append(b[:maxKey], "..."...)
	}
	switch key := key.(type) {
	case nil:
		return append(b, "None"...)
	case bool:
		return append(b, strings.ToTitle(strconv.FormatBool(key)[:1])+strconv.FormatBool(key)[1:]...)
	case *pickle.Object:
		return appendObject(b, key)
	case pickle.Tuple:
		return appendKeys(b, key)
	case *pickle.List, *pickle.Dict:
		return append(b, "..."...)
	}
	return fmt.Append(b, key)
}

func appendKeys(b []byte, t pickle.Tuple) []byte {
	b = append(b, '(')
	for i, v := range t {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendKey(b, v)
	}
	return append(b, ')')
}

// appendObject appends a NumPy word or integer, or the class of any other object and the arguments
// that it was made from, such as the value of an enumeration.
func appendObject(b []byte, o *pickle.Object) []byte {
	if text := word(o); text != nil {
		return append(b, text()...)
	}
	if a, ok, err := arrayOf(o); ok && err == nil && len(a.shape) == 0 {
		if n := a.whole(); n != nil {
			return fmt.Append(b, n)
		}
	}
	b = append(b, o.Class...)
	args := madeOf(o)
	if len(args) == 0 || isKnown(string(o.Class)) {
		return b
	}
	return appendKeys(b, args)
}
