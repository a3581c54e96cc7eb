package integrity_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	hdf5file "github.com/trainerd/trainerd/ckptfmt/hdf5"
)

// objects returns an HDF5 file with a number of 8 bytes and one of 4 after it; the same with a first one of times,
// which no tensor has; and both with a second one that has fewer bytes than its type.
func objects(t *testing.T) (whole, odd, damaged, oddAndDamaged string) {
	t.Helper()
	var b bytes.Buffer
	parts := []ckptfmt.Part{ckptfmt.Scalar(float64(1)).Part("a"), ckptfmt.Scalar(int32(1)).Part("b")}
	if err := hdf5file.Write(t.Context(), &b, parts, nil); err != nil {
		t.Fatal(err)
	}
	change := func(text, form string, at int, to byte) string {
		found := regexp.MustCompile(form).FindAllStringIndex(text, -1)
		if len(found) != 1 {
			t.Fatalf("%q is %d times in the file", form, len(found))
		}
		at += found[0][0]
		return text[:at] + string([]byte{to}) + text[at+1:]
	}
	float := func(text string) string { return change(text, `\x11\x20\x3f\x00\x08\x00{3}`, 0, 0x12) }
	layout := func(text string) string { return change(text, `(?s)\x03\x01.{8}\x04\x00{7}`, 10, 3) }
	whole = b.String()
	return whole, float(whole), layout(whole), layout(float(whole))
}

// All objects of an HDF5 file are looked at, also after one of a type that no tensor has, which is not damage.
func TestObjects(t *testing.T) {
	whole, odd, damaged, both := objects(t)
	for name, tt := range map[string]struct{ content, want string }{
		"as it was written": {whole, ""}, "of times": {odd, ""}, "damaged": {damaged, "dataset /b"}, "damaged, of times": {both, "dataset /b"},
	} {
		t.Run(name, func(t *testing.T) { check(t, map[string]string{"a.h5": tt.content}, []string{"a.h5"}, tt.want) })
	}
}
