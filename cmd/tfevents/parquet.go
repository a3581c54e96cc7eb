package main

import (
	"io"
	"iter"
	"runtime"

	"github.com/parquet-go/parquet-go"

	"github.com/trainerd/trainerd/cmd/internal/version"
)

// parquetPoint is a row of a Parquet file. Runs and tags are kept once, in a
// dictionary.
type parquetPoint struct {
	Run      string  `parquet:"run,dict"`
	Tag      string  `parquet:"tag,dict"`
	Step     int64   `parquet:"step"`
	WallTime float64 `parquet:"wall_time"` // seconds since 1970
	Value    float64 `parquet:"value"`
}

// parquetBatch is how many rows are handed over at once.
const parquetBatch = 1024

func exportParquet(w io.Writer, points iter.Seq[scalarPoint]) error {
	out := parquet.NewGenericWriter[parquetPoint](w, parquet.Compression(&parquet.Snappy), parquet.CreatedBy("tfevents", version.Short(), runtime.Version()))
	rows := make([]parquetPoint, 0, parquetBatch)
	for p := range points {
		rows = append(rows, parquetPoint{p.Run, p.Tag, p.Step, float64(p.WallTime), float64(p.Value)})
		if len(rows) < parquetBatch {
			continue
		}
		if _, err := out.Write(rows); err != nil {
			return err
		}
		rows = rows[:0]
	}
	if _, err := out.Write(rows); err != nil {
		return err
	}
	return out.Close()
}
