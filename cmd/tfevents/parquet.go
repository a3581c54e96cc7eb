package main

import (
	"io"

	"github.com/parquet-go/parquet-go"
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

func exportParquet(w io.Writer, points []scalarPoint) error {
	out := parquet.NewGenericWriter[parquetPoint](w, parquet.Compression(&parquet.Snappy), parquet.CreatedBy("tfevents", "", ""))
	rows := make([]parquetPoint, 0, parquetBatch)
	for len(points) > 0 {
		n := min(len(points), parquetBatch)
		rows = rows[:0]
		for _, p := range points[:n] {
			rows = append(rows, parquetPoint{p.Run, p.Tag, p.Step, float64(p.WallTime), float64(p.Value)})
		}
		if _, err := out.Write(rows); err != nil {
			return err
		}
		points = points[n:]
	}
	return out.Close()
}
