package daemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
)

// weightKeysCollection is the collection of a MetaGraph with what [config.Config.WeightKeys]
// returns, in JSON.
const weightKeysCollection = "trainerd_weight_keys"

// KeyChangedError says that a job cannot resume because a key of its config that defines what the
// weights mean has another value.
type KeyChangedError struct {
	Checkpoint string
	Key        string
	Was, Is    string // as the config has them
}

func (e *KeyChangedError) Error() string {
	return fmt.Sprintf("%s: was %s when %s was trained, and is %s, with which its weights would mean something else; set it as it was, or use another logdir",
		e.Key, e.Was, filepath.Base(e.Checkpoint), e.Is)
}

// fixWeightKeys writes the keys that define what the weights mean into the MetaGraph of future
// checkpoints, after comparing them with those of the newest checkpoint.
func fixWeightKeys(c *config.Config, p *program.Program, image []int) error {
	is := c.WeightKeys(image)
	if len(is) == 0 {
		return nil // a graph that reads its own input
	}
	if err := compareWeightKeys(c, is); err != nil {
		return err
	}
	text, err := json.Marshal(is)
	if err != nil {
		return err
	}
	if p.Meta.CollectionDef == nil {
		p.Meta.CollectionDef = make(map[string]*tfpb.CollectionDef)
	}
	p.Meta.CollectionDef[weightKeysCollection] = &tfpb.CollectionDef{
		Kind: &tfpb.CollectionDef_BytesList_{BytesList: &tfpb.CollectionDef_BytesList{Value: [][]byte{text}}},
	}
	return nil
}

// compareWeightKeys returns an error for a key that the newest checkpoint was trained with
// another value of. What one side does not have, such as all of an older version, is not
// compared.
func compareWeightKeys(c *config.Config, is map[string]json.RawMessage) error {
	saved := newestSaved(c, nil)
	if saved == nil {
		return nil // the run reports what is wrong with the logdir
	}
	was := weightKeysIn(saved.meta)
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if now, ok := is[key]; ok && string(now) != string(was[key]) {
			return &KeyChangedError{saved.prefix, key, string(was[key]), string(now)}
		}
	}
	return nil
}

// weightKeysIn returns the values that a checkpoint with a MetaGraph was trained with, nil if
// it does not say.
func weightKeysIn(meta *tfpb.MetaGraphDef) map[string]json.RawMessage {
	all := meta.GetCollectionDef()[weightKeysCollection].GetBytesList().GetValue()
	var values map[string]json.RawMessage
	if len(all) == 0 || json.Unmarshal(all[0], &values) != nil {
		return nil
	}
	return values
}
