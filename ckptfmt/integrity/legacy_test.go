package integrity

import (
	"bytes"
	"os"
	"testing"
)

// TestLegacyTorch has a file of the kind that PyTorch wrote before version 1.6 under each name that
// programs give it, whole and cut off anywhere.
func TestLegacyTorch(t *testing.T) {
	b, err := os.ReadFile("../../fixtures/torch/legacy.pt")
	if err != nil {
		t.Fatal(err)
	}
	for _, ext := range []string{".pt", ".pth", ".bin", ".pkl", ".pickle", ".joblib", ".model", ""} {
		if err := checkContent(bytes.NewReader(b), int64(len(b)), ext); err != nil {
			t.Errorf("%q: %v", ext, err)
		}
		for n := 32; n < len(b); n++ {
			if err := checkContent(bytes.NewReader(b[:n]), int64(n), ext); err != errCut {
				t.Fatalf("%q, cut at %d of %d: %v", ext, n, len(b), err)
			}
		}
	}
}
