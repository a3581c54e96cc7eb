package found

import (
	"encoding/json"
	"path"
	"path/filepath"
)

// notedBest returns the base name of the checkpoint that the newest one calls the best, or "" if
// none.
func (s *Store) notedBest() string {
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
	return path.Base(filepath.ToSlash(state.Best))
}
