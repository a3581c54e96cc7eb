package prove

import (
	"archive/zip"
	"bytes"
	"io"
	"maps"
	"path"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/pickled"
)

// bookkeeping begins the names of numbers that say how a run went: Lightning counts
// its starts there.
const bookkeeping = "loops/"

// diffNumbers compares what archives of PyTorch have besides tensors: a schedule, the
// place in the data, the best loss. Texts are left out, for they name folders.
func diffNumbers(a, b []byte) []Tensor {
	return diffLeaves(numbersIn(a), numbersIn(b))
}

// numbersIn returns the numbers in an archive of PyTorch that are not tensors, by their
// names; nil for any other file.
func numbersIn(b []byte) map[string]any {
	archive, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil
	}
	for _, f := range archive.File {
		if path.Base(f.Name) == "data.pkl" && strings.Count(f.Name, "/") == 1 {
			return numbersOf(f)
		}
	}
	return nil
}

func numbersOf(f *zip.File) map[string]any {
	r, err := f.Open()
	if err != nil {
		return nil
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	leaves, err := pickled.Leaves(text)
	if err != nil {
		return nil // what cannot be read is not compared
	}
	within := map[string]any{} // texts of JSON
	for name, v := range leaves {
		if text, isText := v.(string); isText && strings.HasPrefix(text, "{") {
			for key, v := range leavesOfJSON([]byte(text)) {
				within[path.Join(name, key)] = v
			}
		}
	}
	maps.Copy(leaves, within)
	maps.DeleteFunc(leaves, func(name string, v any) bool { return !isNumber(v) || strings.HasPrefix(name, bookkeeping) })
	return leaves
}

func isNumber(v any) bool {
	switch v.(type) {
	case float64, int64, bool, pickled.Whole, pickled.Array:
		return true
	}
	return false
}
