// Package data has the kernels of the ops that read the input of a graph: data
// sets, iterators, and the readers of TensorFlow 1.
//
// A data set is a value that describes elements, tuples of tensors; an iterator walks through one,
// and belongs to the session. The elements, and their order, are those of TensorFlow's pipelines
// when they are set to be deterministic. The elements of one batch may be made concurrently, in the
// order of the calls, and the next element during a step if that changes nothing but the timing
// (ahead.go). One call moves an iterator or reader at a time.
package data

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		chooseOps,
		mapOps,
		shuffleOps,
		sourceOps,
		csvOps,
		transformOps,
		iteratorOps,
		readerOps,
		readerOps.FirstForms("V2"),
		fixedReaderOps,
		experimentalOps(csvOps, mapOps, sourceOps, transformOps),
	}
}

// experimentalOps are the ops whose names began with Experimental at first, out
// of tables of those that they are now. One that is in none of these has no
// kernel.
func experimentalOps(tables ...exec.OpTable) exec.OpTable {
	t := exec.OpTable{}
	for _, name := range []string{
		"AssertNextDataset", "CSVDataset", "DatasetCardinality", "DenseToSparseBatchDataset", "GroupByReducerDataset", "GroupByWindowDataset", "MapAndBatchDataset", "MatchingFilesDataset", "MaxIntraOpParallelismDataset", "NonSerializableDataset",
		"ParallelInterleaveDataset", "ParseExampleDataset", "PrivateThreadPoolDataset", "RandomDataset", "RebatchDataset", "ScanDataset", "TakeWhileDataset", "UnbatchDataset",
	} {
		spec := exec.OpSpec{}
		for _, of := range tables {
			if s, ok := of[name]; ok {
				spec = s
			}
		}
		t["Experimental"+name] = spec
	}
	return t
}
