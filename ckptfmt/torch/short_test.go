package torch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

// loadBoth reads a pickle with the short way and without it, and returns what the
// tensors in each are.
func loadBoth(text string) (short, long string, taken bool) {
	with := rules()
	inner := with.Short
	with.Short = func(g pickle.Global, c *pickle.Cursor) any {
		v := inner(g, c)
		taken = taken || v != nil
		return v
	}
	without := rules()
	without.Short = nil
	return loaded(text, with), loaded(text, without), taken
}

func loaded(text string, by pickle.Rules) string {
	v, end, err := pickle.Load(text, by)
	if err != nil {
		return fmt.Sprint(end, err)
	}
	r := &Reader{metadata: map[string]string{}}
	var b strings.Builder
	fmt.Fprintln(&b, end)
	describe(&b, v, 0)
	return b.String() + fmt.Sprint(r.metadata)
}

func describe(b *strings.Builder, v any, depth int) {
	if b.Len() > 1<<16 || depth > 10 { // it may hold itself
		return
	}
	switch v := v.(type) {
	case *pickle.Dict:
		for i, key := range v.Keys {
			fmt.Fprintf(b, "%T %v:", key, keyName(key))
			describe(b, v.Values[i], depth+1)
		}
	case *pickle.List:
		for _, x := range v.Items {
			describe(b, x, depth+1)
		}
	case pickle.Tuple:
		for _, x := range v {
			describe(b, x, depth+1)
		}
	case *tensor:
		fmt.Fprintln(b, v.key, *v.storage.of, v.storage.numel, *v.of, v.offset, v.shape, v.stride)
	default:
		fmt.Fprintf(b, "%T\n", v)
	}
}

// tensorCalls are two tensors as torch writes them, the second by the memo.
const (
	firstCall = "X\x01\x00\x00\x00aq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00storageq\x03ctorch\nFloatStorage\nq\x04" +
		"X\x01\x00\x00\x000q\x05X\x03\x00\x00\x00cpuq\x06K\x02tq\x07QK\x00K\x02\x85q\x08K\x01\x85q\x09\x89ccollections\nOrderedDict\nq\x0a)Rq\x0btq\x0cRq\x0d"
	secondCall = "X\x01\x00\x00\x00bq\x0eh\x02((h\x03h\x04X\x01\x00\x00\x001q\x0fh\x06M\x04\x01tq\x10QJ\x01\x00\x00\x00(K\x02K\x03K\x01K\x01tq\x11(K\x01\x8a\x01\x02K\x01K\x01tq\x12\x88h\x0a)Rq\x13tq\x14Rq\x15"
)

func TestShortWay(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		taken bool
	}{
		"as torch writes it":   {"\x80\x02}q\x00(" + firstCall + secondCall + "u.", true},
		"in another frame":     {"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00}\x94(" + firstCall + secondCall + "u.", true},
		"a tensor twice":       {"\x80\x02}q\x00(" + firstCall + secondCall + "X\x01\x00\x00\x00ch\x15u.", true},
		"a shape fetched":      {"\x80\x02}q\x00(" + firstCall + secondCall + "X\x01\x00\x00\x00ch\x11u.", true}, // at first
		"two places at once":   {"\x80\x02}q\x00(" + firstCall + strings.Replace(secondCall, "q\x0f", "q\x0fq\x10", 1) + "u.", false},
		"out of the storage":   {"\x80\x02}q\x00(" + firstCall + strings.Replace(secondCall, "M\x04\x01", "K\x04", 1) + "u.", false},
		"another word":         {"\x80\x02}q\x00(" + strings.Replace(firstCall, "storageq", "storagfq", 1) + secondCall + "u.", false},
		"another dict":         {"\x80\x02}q\x00(" + strings.Replace(firstCall, "OrderedDict", "Counter", 1) + secondCall + "u.", false},
		"another place":        {"\x80\x02}q\x00(" + firstCall + strings.Replace(secondCall, "q\x10", "q\x70", 1) + "u.", false},
		"a storage of nothing": {"\x80\x02}q\x00(" + firstCall + strings.Replace(secondCall, "h\x04", "h\x0a", 1) + "u.", false},
	} {
		short, long, taken := loadBoth(c.text)
		if short != long || taken != c.taken {
			t.Errorf("%s: it was taken: %t; got %s, want %s", name, taken, short, long)
		}
	}
}

// FuzzShort compares the short way with the stack machine.
func FuzzShort(f *testing.F) {
	f.Add("\x80\x02}q\x00(" + firstCall + secondCall + "u.")
	f.Add("\x80\x02}q\x00(" + firstCall + secondCall + "X\x01\x00\x00\x00ch\x15u.")
	f.Add("\x80\x04}\x94(" + strings.ReplaceAll(secondCall, "h\x04", "ctorch\nIntStorage\n") + "u.")
	f.Add(likes(9, func(_ int, call string) string { return call }))
	f.Add(likes(9, func(i int, call string) string { return unnoted(i, call, 0, 5) }))
	f.Fuzz(func(t *testing.T, text string) {
		if short, long, _ := loadBoth(text); short != long {
			t.Errorf("%q: got %s, want %s", text, short, long)
		}
	})
}

// TestForeignNames are none of TensorFlow's: a hash has the name.
func TestForeignNames(t *testing.T) {
	for name, of := range dtypes {
		if _, ok := dtype.Parse(of.foreign); ok {
			t.Errorf("%s is %q", name, of.foreign)
		}
	}
}
