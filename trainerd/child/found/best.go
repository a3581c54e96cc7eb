package found

import (
	"encoding/json"
	"path"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt/retention"
)

// programsBest is a policy that keeps the checkpoint which the program has noted as its
// best, by its base name: transformers loads it at the end.
type programsBest string

// Keep implements [retention.Policy].
func (b programsBest) Keep(all []retention.Checkpoint) []string {
	why := make([]string, len(all))
	for i, c := range all {
		if b != "" && filepath.Base(c.Prefix) == string(b) {
			why[i] = "the program has noted it as its best"
		}
	}
	return why
}

// notedBest returns what the newest checkpoint says is the best, by its base name, "" for
// nothing.
func (s *Store) notedBest() programsBest {
	if len(s.known) == 0 {
		return ""
	}
	f, err := s.root.Open(path.Join(s.known[len(s.known)-1].files[0], "trainer_state.json"))
	if err != nil {
		return ""
	}
	defer f.Close()
	var state struct {
		Best string `json:"best_model_checkpoint"`
	}
	json.NewDecoder(f).Decode(&state) // what cannot be read notes nothing
	return programsBest(path.Base(filepath.ToSlash(state.Best)))
}
