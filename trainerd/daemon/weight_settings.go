package daemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
)

// settingsKey is the collection with what [config.Config.WeightSettings] returns, in JSON.
const settingsKey = "trainerd_settings"

// SettingChangedError says that a job cannot resume because a key of its config that says
// what the weights mean has another value.
type SettingChangedError struct {
	Checkpoint string
	Key        string
	Was, Is    string // as the config has them
}

func (e *SettingChangedError) Error() string {
	return fmt.Sprintf("%s: was %s when %s was trained, and is %s, with which its weights would mean something else; set it as it was, or use another logdir",
		e.Key, e.Was, filepath.Base(e.Checkpoint), e.Is)
}

// fixSettings writes the settings into the MetaGraph of checkpoints to come, after a
// comparison with those that the newest checkpoint was trained with.
func fixSettings(c *config.Config, p *program.Program, image []int) error {
	is := c.WeightSettings(image)
	if err := compareSettings(c, is); err != nil {
		return err
	}
	text, err := json.Marshal(is)
	if err != nil {
		return err
	}
	if p.Meta.CollectionDef == nil {
		p.Meta.CollectionDef = make(map[string]*tfpb.CollectionDef)
	}
	p.Meta.CollectionDef[settingsKey] = &tfpb.CollectionDef{
		Kind: &tfpb.CollectionDef_BytesList_{BytesList: &tfpb.CollectionDef_BytesList{Value: [][]byte{text}}},
	}
	return nil
}

// compareSettings returns an error for a setting that the newest checkpoint was trained with
// another value of. What one side does not have, such as all of an older version, is not
// compared.
func compareSettings(c *config.Config, is map[string]json.RawMessage) error {
	found, err := checkpoint.Find(c.Logdir, checkpoint.DefaultLatestFilename, c.Supervisor.CheckpointBasename)
	if err != nil || len(found.Prefixes) == 0 {
		return nil // the run reports what is wrong with the logdir
	}
	was := savedSettings(found.Prefixes[0])
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if now, ok := is[key]; ok && string(now) != string(was[key]) {
			return &SettingChangedError{found.Prefixes[0], key, string(was[key]), string(now)}
		}
	}
	return nil
}

// savedSettings returns the settings that a checkpoint was trained with, nil if it does not say.
func savedSettings(prefix string) map[string]json.RawMessage {
	meta := savedMeta(prefix)
	all := meta.GetCollectionDef()[settingsKey].GetBytesList().GetValue()
	var settings map[string]json.RawMessage
	if len(all) == 0 || json.Unmarshal(all[0], &settings) != nil {
		return nil
	}
	return settings
}
