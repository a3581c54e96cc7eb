package torch_test

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	"github.com/trainerd/trainerd/internal/membound"
)

// many is a list that has a value as often as an attacker likes: the memo has what each item is
// made of, in a few bytes.
func many(shared, item string, n int) string {
	return shared + "q\x010](" + strings.Repeat(item, n) + "e"
}

// bytesOfMany are more bytes than one byte can count.
func bytesOfMany(n int) string {
	return "B" + string(binary.LittleEndian.AppendUint32(nil, uint32(n))) + strings.Repeat("a", n)
}

// TestSharedValues has small files whose every few bytes use something large once more. No use
// takes memory of its own, or the file is refused.
func TestSharedValues(t *testing.T) {
	const large, uses = 256 << 10, 4096
	long := text(strings.Repeat("a", large))
	ones := tuple(strings.Repeat("K\x01", large/2))
	array := func(shape, typ, order, elements string) string {
		return call("numpy.core.multiarray._reconstruct", "N") +
			tuple("K\x01", shape, call("numpy.dtype", text(typ))+tuple("K\x03", text("<"))+"b", order, elements) + "b"
	}
	word := func(elements string) string {
		return call("numpy.core.multiarray.scalar", call("numpy.dtype", text("U9"))+tuple("K\x03", text("<"))+"b", elements)
	}
	pairs := list(strings.Repeat(tuple(text("k"), "K\x01"), 2000)) + "\x85"
	for name, c := range map[string]struct {
		pickle string
		isRead bool
	}{
		"a text":               {many(long, "h\x01", uses), true},
		"an array":             {many(array(tuple("M\x00\x80"), "f8", "\x89", bytesOfMany(large)), "h\x01", uses), true},
		"an array of Fortran":  {many(array(tuple("M\x00\x80", "K\x01"), "f8", "\x88", bytesOfMany(large)), "h\x01", uses), true},
		"elements of an array": {many(bytesOfMany(large), array(tuple("M\x00\x80"), "f8", "\x89", "h\x01"), uses/8), true},
		"a shape of an array":  {many(ones, array("h\x01", "u1", "\x89", bytesOf("a")), uses), true},
		"a word":               {many(word(bytesOfMany(large)), "h\x01", uses), true},
		"letters of a word":    {many(bytesOfMany(large), word("h\x01"), uses), false},
		"a whole number":       {many("\x8b\x00\x10\x00\x00"+strings.Repeat("\x7f", 4096), "h\x01", 32*uses), true},
		"bytes of a text":      {many(tuple(long, text("latin1")), global("_codecs.encode")+"h\x01R", uses), false},
		"a path":               {many(tuple(long), global("pathlib.PosixPath")+"h\x01R", uses), false},
		"parts of a path":      {many(text("a"), "", 0) + "0" + global("pathlib.PosixPath") + tuple(strings.Repeat("h\x01", large/2)) + "R", true},
		"pairs":                {many(pairs, global("collections.OrderedDict")+"h\x01R", uses), false},
		"a shape":              {many(ones, call(v2, stored, "K\x00", "h\x01", "h\x01", "\x89", ordered), uses/8), false},
		"arguments of many":    {many(tuple(long, text("latin1")), call("torch._tensor._rebuild_from_type_v2", global("_codecs.encode"), "N", "h\x01", "N"), uses), false},
	} {
		t.Run(name, func(t *testing.T) {
			file := archive(t, zip.Store, "\x80\x03"+c.pickle+".")
			defer membound.Check(t, len(file), 128)()
			r, err := open(file)
			if refused, corrupt := new(torch.RefusedError), new(ckptfmt.CorruptError); err != nil && !errors.As(err, &refused) && !errors.As(err, &corrupt) {
				t.Errorf("%v is not located", err)
			}
			if c.isRead != (err == nil) {
				t.Errorf("reading it: %v", err)
			}
			if err == nil && r.Len() > 0 {
				p := r.Part(0)
				_, _ = p.Size()
			}
		})
	}
}
