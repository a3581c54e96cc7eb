package integrity_test

import (
	"archive/zip"
	"bytes"
	"maps"
	"slices"
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

// TestOwnSums has files of which all that matters has checksums of its own, and others: of a row of archives, as
// torch.distributed.checkpoint writes it, the last says nothing about those before.
func TestOwnSums(t *testing.T) {
	one, row := archiveOf(t, "weights"), archiveOf(t, "first")+archiveOf(t, "last")
	files := map[string]string{
		"a.pt": one, "row.distcp": row, "text": "text text text text", "small.pt": archiveOf(t, ""),
		"m.index": "the checksums", "m.data-00000-of-00001": "bytes that the index has the checksums of", "n.data-00000-of-00001": "bytes without an index, as after a kill",
	}
	names := slices.Collect(maps.Keys(files))
	sums := integrity.OwnSums(rootOf(t, files), names, 10)
	if got := slices.Sorted(maps.Keys(sums)); !slices.Equal(got, []string{"a.pt", "m.data-00000-of-00001", "small.pt"}) {
		t.Errorf("sums of %q", got)
	}
	if few := integrity.OwnSums(rootOf(t, files), names, int64(len(one))); few["small.pt"] != "" || few["a.pt"] != sums["a.pt"] {
		t.Errorf("of the larger ones: %v", few)
	}
	files["m.index"] = "other checksums"
	files["a.pt"] = archiveOf(t, "Weights")
	other := integrity.OwnSums(rootOf(t, files), names, 10)
	for name, sum := range sums {
		if same := name == "small.pt"; (other[name] == sum) != same {
			t.Errorf("%s: %s, then %s", name, sum, other[name])
		}
	}
}
