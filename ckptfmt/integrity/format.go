package integrity

import (
	"path"
	"slices"
	"strings"
)

// marks are names that tell the format of a checkpoint, the more certain first.
var marks = []struct {
	format string
	is     func(base string) bool
}{
	{"deepspeed", func(base string) bool { return strings.HasSuffix(base, "_model_states.pt") }},
	{"dcp", func(base string) bool { return base == ".metadata" || path.Ext(base) == ".distcp" }},
	{"orbax", func(base string) bool {
		return slices.Contains([]string{"_CHECKPOINT_METADATA", "manifest.ocdbt", "_METADATA"}, base)
	}},
	{"transformers", func(base string) bool { return base == "trainer_state.json" }},
	{"bundle", func(base string) bool { return strings.HasSuffix(base, ".index") }},
	{"safetensors", hasExt(".safetensors")},
	{"keras", hasExt(".keras")},
	{"hdf5", hasExt(".h5", ".hdf5")},
	{"torch", hasExt(".pt", ".pth", ".ckpt", ".bin")},
	{"npz", hasExt(".npz")},
	{"npy", hasExt(".npy")},
	{"pickle", hasExt(".pkl", ".pickle", ".joblib")},
	{"json", hasExt(".json")},
}

func hasExt(all ...string) func(base string) bool {
	return func(base string) bool { return slices.Contains(all, strings.ToLower(path.Ext(base))) }
}

// Format returns the format of a checkpoint, judging by the names of its files, or
// "other".
func Format(files []string) string {
	for _, m := range marks {
		if slices.ContainsFunc(files, func(name string) bool { return m.is(path.Base(name)) }) {
			return m.format
		}
	}
	return "other"
}
