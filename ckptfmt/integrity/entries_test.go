package integrity_test

import (
	"archive/zip"
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
)

// archiveOf returns an archive of one entry, as torch.save writes it.
func archiveOf(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	e, err := w.CreateHeader(&zip.FileHeader{Name: "archive/data/0", Method: zip.Store})
	if err == nil {
		_, err = e.Write([]byte(text))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func isBelow(name string) bool { return strings.Contains(name, "/") }

// TestOwnSums has files with checksums of their own for all that matters, and others: in a row of archives, as
// torch.distributed.checkpoint writes it, the last says nothing about those before.
func TestOwnSums(t *testing.T) {
	one, row := archiveOf(t, "weights"), archiveOf(t, "first")+archiveOf(t, "last")
	files := map[string]string{
		"a.pt": one, "row.distcp": row, "folder.pt/text": one, "text": "text text text text", "small.pt": archiveOf(t, ""),
		"m.index": "the checksums", "m.data-00000-of-00001": "bytes that the index has the checksums of", "n.data-00000-of-00001": "bytes without an index, as after a kill",
		"two.index": "the checksums", "two.data-00000-of-00002": "bytes of one", "two.data-00001-of-00002": "bytes of two",
		"less.index": "the checksums", "less.data-00000-of-00001": "few", "folder.index": "the checksums", "folder.data-00000-of-00001/text": "no data of a bundle",
	}
	names := append(slices.DeleteFunc(slices.Collect(maps.Keys(files)), isBelow), "folder.pt", "gone.pt", "folder.data-00000-of-00001", "less.data-00001-of-00002")
	sums := integrity.OwnSums(rootOf(t, files), names, 10)
	if got := slices.Sorted(maps.Keys(sums)); !slices.Equal(got, []string{"a.pt", "m.data-00000-of-00001", "small.pt", "two.data-00000-of-00002", "two.data-00001-of-00002"}) {
		t.Errorf("sums of %q", got)
	}
	if sums["two.data-00000-of-00002"] == sums["two.data-00001-of-00002"] {
		t.Error("two files of a bundle have the same sum")
	}
	if just := integrity.OwnSums(rootOf(t, files), names, int64(len(files["two.data-00000-of-00002"]))); just["two.data-00000-of-00002"] == "" {
		t.Error("a file of the least size has no sum")
	}
	if few := integrity.OwnSums(rootOf(t, files), names, int64(len(one))); few["small.pt"] != "" || few["a.pt"] != sums["a.pt"] {
		t.Errorf("of the larger ones: %v", few)
	}
	files["m.index"] = "other checksums"
	files["a.pt"] = archiveOf(t, "Weights")
	other := integrity.OwnSums(rootOf(t, files), names, 10)
	for name, sum := range sums {
		if same := name == "small.pt" || strings.HasPrefix(name, "two."); (other[name] == sum) != same {
			t.Errorf("%s: %s, then %s", name, sum, other[name])
		}
	}
}
