package data

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Data sets that pick, order and batch the elements of others.
var transformOps = exec.OpTable{
	"RepeatDataset":             transform(buildRepeat),
	"TakeDataset":               transform(buildTake),
	"SkipDataset":               transform(buildSkip),
	"ShardDataset":              transform(buildShard),
	"ZipDataset":                datasetOp(buildZip),
	"ConcatenateDataset":        transform(buildConcatenate),
	"CacheDataset":              transform(buildCache),
	"CacheDatasetV2":            transform(buildCache),
	"UnbatchDataset":            transform(buildUnbatch),
	"WindowDataset":             transform(buildWindow),
	"BatchDataset":              transform(buildBatch(-1)),
	"BatchDatasetV2":            transform(buildBatch(2)),
	"ParallelBatchDataset":      transform(buildBatch(3)),
	"PaddedBatchDataset":        transform(buildPaddedBatch(false)),
	"PaddedBatchDatasetV2":      transform(buildPaddedBatch(true)),
	"AssertCardinalityDataset":  transform(buildAssertCardinality),
	"DenseToSparseBatchDataset": transform(buildSparseBatch),
	"DatasetCardinality":        {Build: exec.WithoutAttrs(cardinality)},
	"RebatchDataset":            transform(buildRebatch),
	"RebatchDatasetV2":          transform(buildRebatchV2),
	"ParseExampleDataset":       transform(buildParseExample),
	"ParseExampleDatasetV2":     transform(buildParseExample),

	// What changes how fast elements come, but not which.
	"PrefetchDataset":                 transform(sameElements),
	"OptionsDataset":                  transform(sameElements),
	"ModelDataset":                    transform(sameElements),
	"RewriteDataset":                  transform(sameElements),
	"OptimizeDataset":                 transform(sameElements),
	"OptimizeDatasetV2":               transform(sameElements),
	"FinalizeDataset":                 transform(sameElements),
	"AssertNextDataset":               transform(sameElements),
	"MaxIntraOpParallelismDataset":    transform(sameElements),
	"PrivateThreadPoolDataset":        transform(sameElements),
	"NonSerializableDataset":          transform(sameElements),
	"ExperimentalIgnoreErrorsDataset": transform(buildIgnoreErrors),
	"IgnoreErrorsDataset":             transform(buildIgnoreErrors),
}

func sameElements(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(_ *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) { return of, nil }
}
