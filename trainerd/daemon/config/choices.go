package config

import (
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// formats are those of data files.
var formats = []dataset.Format{dataset.FormatCSV, dataset.FormatJSON, dataset.FormatParquet, dataset.FormatTFRecord, dataset.FormatIDX, dataset.FormatNumPy, dataset.FormatImages}

// choices returns the values of keys that have few.
func choices() map[string][]string {
	modes := []string{"max", "min"}
	return map[string][]string{
		"data.format": texts(formats), "data.missing": {missingError, missingFill},
		"data.normalize": texts([]dataset.Normalize{dataset.NormalizeStandard, dataset.NormalizeMinMax}),
		"model.family":   model.Families, "model.activation": model.Activations, "model.initializer": model.Initializers,
		"model.combiner": model.Combiners, "model.loss": model.Losses, "model.optimizer": model.Optimizers, "model.schedule": model.Schedules,
		"eval.mode": modes, "child.mode": modes, "child.recipe": recipe.Names(),
		"warm_start.missing": {unmatchedError, unmatchedInit}, "supervisor.write_version": {writeV2, writeV1},
		"cluster.checkpoint_via": {viaServer, viaClient}, "cluster.listen_files": {filesLogdir, filesAll}, "master": {masterLocal},
	}
}

func texts[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}
