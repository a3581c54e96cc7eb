package data

import (
	"strings"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// How many elements a data set has is known from the op that makes it, as TensorFlow knows it
// without walking through: a filter's data set has an unknown number even where its input has
// none.

// Counts that are no numbers of elements.
const (
	infinite = -1
	unknown  = -2
)

// countOf returns how many elements d has.
func countOf(d variant.Dataset) int {
	switch d := d.(type) {
	case *variant.Described:
		return d.Count
	case *variant.TupleList:
		return d.Len()
	}
	return unknown
}

// counts are the rules by op, for a data set that c makes of inputs with counts. Ops that are
// not here have an unknown number.
var counts = map[string]func(c *exec.KernelContext, n int) int{
	"AssertCardinalityDataset":  func(c *exec.KernelContext, _ int) int { return c.MustInt(1, "the number of elements") },
	"ConcatenateDataset":        countBoth,
	"DirectedInterleaveDataset": countDirected,
	"RandomDataset":             countForever,
	"RandomDatasetV2":           countForever,
	"RangeDataset":              countRange,
	"RepeatDataset":             func(c *exec.KernelContext, n int) int { return repeated(n, c.MustInt(1, "the count")) },
	"ShardDataset":              countShard,
	"ShuffleAndRepeatDataset":   func(c *exec.KernelContext, n int) int { return repeated(n, c.MustInt(4, "the count")) },
	"ShuffleAndRepeatDatasetV2": func(c *exec.KernelContext, n int) int { return repeated(n, c.MustInt(4, "the count")) },
	"SkipDataset":               countSkip,
	"TakeDataset":               countTake,
	"WindowDataset":             countWindow,
	"ZipDataset":                countShortest,

	"BatchDataset":              func(c *exec.KernelContext, n int) int { return batches(c, n, 1, -1) },
	"BatchDatasetV2":            func(c *exec.KernelContext, n int) int { return batches(c, n, 1, 2) },
	"DenseToSparseBatchDataset": func(c *exec.KernelContext, n int) int { return batches(c, n, 1, -1) },
	"MapAndBatchDataset": func(c *exec.KernelContext, n int) int {
		return batches(c, n, c.NumInputs()-3, c.NumInputs()-1)
	},
	"PaddedBatchDataset":   func(c *exec.KernelContext, n int) int { return batches(c, n, 1, -1) },
	"PaddedBatchDatasetV2": func(c *exec.KernelContext, n int) int { return batches(c, n, 1, c.NumInputs()-1) },
	"ParallelBatchDataset": func(c *exec.KernelContext, n int) int { return batches(c, n, 1, 3) },

	"GroupByWindowDataset":        onlyForever,
	"ParallelInterleaveDatasetV2": onlyForever,
	"ParallelInterleaveDatasetV3": onlyForever,
	"ParallelInterleaveDatasetV4": onlyForever,
	"UnbatchDataset":              onlyForever,

	"AssertNextDataset":            sameCount,
	"CacheDataset":                 sameCount,
	"CacheDatasetV2":               sameCount,
	"FinalizeDataset":              sameCount,
	"MapDataset":                   sameCount,
	"MaxIntraOpParallelismDataset": sameCount,
	"ModelDataset":                 sameCount,
	"NonSerializableDataset":       sameCount,
	"OptimizeDataset":              sameCount,
	"OptimizeDatasetV2":            sameCount,
	"OptionsDataset":               sameCount,
	"ParallelMapDataset":           sameCount,
	"ParallelMapDatasetV2":         sameCount,
	"ParseExampleDataset":          sameCount,
	"ParseExampleDatasetV2":        sameCount,
	"PrefetchDataset":              sameCount,
	"PrivateThreadPoolDataset":     sameCount,
	"RewriteDataset":               sameCount,
	"ScanDataset":                  sameCount,
	"ShuffleDataset":               sameCount,
	"ShuffleDatasetV2":             sameCount,
	"ShuffleDatasetV3":             sameCount,
}

// countMade returns how many elements d has, which c has made.
func countMade(c *exec.KernelContext, d variant.Dataset) int {
	n := unknown
	if c.NumInputs() > 0 {
		if of, ok := c.In(0).Value.(variant.Dataset); ok {
			n = countOf(of)
		}
	}
	op := strings.TrimPrefix(c.Op(), "Experimental")
	if rule := counts[op]; rule != nil {
		return rule(c, n)
	}
	if op == "MatchingFilesDataset" {
		return unknown // to TensorFlow, though it is a list here
	}
	return countOf(d)
}

func sameCount(_ *exec.KernelContext, n int) int { return n }

func countForever(*exec.KernelContext, int) int { return infinite }

func onlyForever(_ *exec.KernelContext, n int) int {
	if n != infinite {
		return unknown
	}
	return n
}

func countRange(c *exec.KernelContext, _ int) int {
	start, stop, step := c.MustInt(0, "the start"), c.MustInt(1, "the end"), c.MustInt(2, "the step")
	if step < 0 {
		start, stop, step = stop, start, -step
	}
	return max(0, (stop-start+step-1)/step)
}

func repeated(n, times int) int {
	switch {
	case n == 0 || times == 0:
		return 0
	case times < 0:
		return infinite
	case n < 0:
		return n
	}
	return n * times
}

func countTake(c *exec.KernelContext, n int) int {
	most := c.MustInt(1, "the count")
	switch {
	case most < 0 || n == unknown:
		return n
	case n == infinite:
		return most
	}
	return min(n, most)
}

func countSkip(c *exec.KernelContext, n int) int {
	skip := c.MustInt(1, "the count")
	switch {
	case n < 0:
		return n
	case skip < 0:
		return 0
	}
	return max(0, n-skip)
}

func countShard(c *exec.KernelContext, n int) int {
	shards, index := c.MustInt(1, "the number of shards"), c.MustInt(2, "the shard")
	if n < 0 {
		return n
	}
	return max(0, (n-index+shards-1)/shards)
}

// batches counts batches of the size in an input; the one at drop, where there is one, says
// whether a last smaller one is left out.
func batches(c *exec.KernelContext, n, size, drop int) int {
	by := c.MustInt(size, "the size")
	if n < 0 {
		return n
	}
	if drop < 0 || !c.MustBool(drop, "whether the rest is dropped") {
		n += by - 1
	}
	return n / by
}

func countWindow(c *exec.KernelContext, n int) int {
	size, shift, stride := c.MustInt(1, "the size"), c.MustInt(2, "the shift"), c.MustInt(3, "the stride")
	switch {
	case n < 0:
		return n
	case !c.MustBool(4, "whether the rest is dropped"):
		return (n + shift - 1) / shift
	}
	if n -= (size-1)*stride + 1; n < 0 {
		return 0
	}
	return n/shift + 1
}

// eachInput calls f with the counts of the data sets from one input on.
func eachInput(c *exec.KernelContext, from int, f func(n int)) {
	for i := from; i < c.NumInputs(); i++ {
		if d, ok := c.In(i).Value.(variant.Dataset); ok {
			f(countOf(d))
		}
	}
}

func countBoth(c *exec.KernelContext, _ int) int {
	sum := 0
	eachInput(c, 0, func(n int) {
		switch {
		case sum == infinite || n == infinite:
			sum = infinite
		case sum == unknown || n == unknown:
			sum = unknown
		default:
			sum += n
		}
	})
	return sum
}

func countShortest(c *exec.KernelContext, _ int) int {
	least := infinite
	eachInput(c, 0, func(n int) {
		if n == unknown || least == infinite || least != unknown && n != infinite && n < least {
			least = n
		}
	})
	return least
}

func countDirected(c *exec.KernelContext, _ int) int {
	all := unknown
	eachInput(c, 1, func(n int) {
		if n == infinite {
			all = infinite
		}
	})
	return all
}
