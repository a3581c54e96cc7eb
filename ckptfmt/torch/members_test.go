package torch_test

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"
)

// member is one of an archive.
type member struct {
	name, text string
	method     uint16
}

func archiveOf(t *testing.T, list []member) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range list {
		w, err := z.CreateHeader(&zip.FileHeader{Name: m.name, Method: m.method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestMembers opens archives whose members are in any order, and refuses those that have one
// twice, or not as torch has it.
func TestMembers(t *testing.T) {
	pickle := member{"x/data.pkl", one("\x01", "\x00", "K\x01\x85", "K\x01\x85"), zip.Store}
	storage := member{"x/data/0", "\x00\x00\x80\x3f", zip.Store}
	other, packed, large := storage, storage, storage
	other.name, packed.method, large.name = "x/data/7", zip.Deflate, "x/data/999999999"
	for name, c := range map[string]struct {
		list []member
		want string // in the error
	}{
		"as torch has them":        {[]member{pickle, storage}, ""},
		"the storage first":        {[]member{storage, pickle}, ""},
		"numbers out of order":     {[]member{pickle, other, large, storage}, ""},
		"files of other folders":   {[]member{{"y/data/0", "", zip.Store}, pickle, storage, {"x", "", zip.Store}}, ""},
		"no members":               {nil, "data.pkl\": there is none"},
		"no pickle":                {[]member{storage}, "data.pkl\": there is none"},
		"no storage":               {[]member{pickle, other}, "data/0\": there is none"},
		"a pickle elsewhere":       {[]member{pickle, storage, {"y/data.pkl", "", zip.Store}}, "y/data.pkl\": it is the second pickle"},
		"a pickle further down":    {[]member{pickle, storage, {"x/a/data.pkl", "", zip.Store}}, "x/a/data.pkl\": it is the second pickle"},
		"the pickle twice":         {[]member{pickle, storage, pickle}, "x/data.pkl\": there are two"},
		"the storage twice":        {[]member{pickle, storage, storage}, "x/data/0\": there are two"},
		"also a compressed one":    {[]member{pickle, storage, packed}, "x/data/0\": there are two"},
		"first a compressed one":   {[]member{pickle, packed, storage}, "x/data/0\": there are two"},
		"only a compressed one":    {[]member{pickle, packed}, "data/0\": it is compressed"},
		"a storage of other bytes": {[]member{pickle, {"x/data/0", "abc", zip.Store}}, "it has 3 bytes"},
	} {
		r, err := open(archiveOf(t, c.list))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: the error is %v, want %s", name, err, c.want)
		case c.want == "":
			if x, err := r.Parts()[0].Load(); err != nil {
				t.Errorf("%s: got %v, %v", name, x, err)
			}
		}
	}
}

// TestDamagedDirectory has damage in the first entry of the directory, or a later one.
func TestDamagedDirectory(t *testing.T) {
	whole := archive(t, zip.Store, one("\x01", "\x00", "K\x01\x85", "K\x01\x85"))
	sign := []byte("PK\x01\x02")
	for _, at := range []int{bytes.Index(whole, sign), bytes.LastIndex(whole, sign)} {
		b := bytes.Clone(whole)
		b[at] ^= 1
		if _, err := open(b); err == nil || !strings.Contains(err.Error(), "its directory has") {
			t.Errorf("entry at %d: %v", at, err)
		}
	}
}
