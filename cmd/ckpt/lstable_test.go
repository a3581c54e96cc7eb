package main

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	tfpb "github.com/trainerd/trainerd/proto"
)

// lister is a reader of so many tensors, every hundredth of them damaged.
type lister struct {
	ckptfmt.Reader
	n   int
	end error
}

func (l lister) Tensors() iter.Seq2[ckptfmt.TensorInfo, error] {
	return func(yield func(ckptfmt.TensorInfo, error) bool) {
		for i := range l.n {
			info := ckptfmt.TensorInfo{Name: fmt.Sprint("t", i), DType: tfpb.DataType_DT_UINT8, Shape: []int64{int64(i)}, Bytes: int64(i)}
			var err error
			if i%100 == 99 {
				err = errors.New("bad luck")
			}
			if !yield(info, err) {
				return
			}
		}
		if l.end != nil {
			yield(ckptfmt.TensorInfo{}, l.end)
		}
	}
}

// TestRowsOfManyTensors makes rows by several goroutines, in the order of the tensors.
func TestRowsOfManyTensors(t *testing.T) {
	for _, n := range []int{0, 1, rowsAtOnce, rowsAtOnce + 1, 5 * rowsAtOnce} {
		table, err := tensorRows(lister{n: n})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := table.Print(&out, terminal.Style{}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")[1:]
		if len(lines) != n || len(table.damaged) != n/100 || table.sum.tensors != int64(n-n/100) {
			t.Fatalf("%d tensors have %d lines, %d are damaged, %d counted", n, len(lines), len(table.damaged), table.sum.tensors)
		}
		bytes := int64(0)
		for i, line := range lines {
			want := []string{fmt.Sprint("t", i), "uint8", fmt.Sprintf("[%d]", i), fmt.Sprint(i)}
			if i%100 == 99 {
				want = append(want, strings.Fields(damagedMark)...)
			} else {
				bytes += int64(i)
			}
			if got := strings.Fields(line); !slices.Equal(got, want) {
				t.Fatalf("line %d is %q, want %q", i, got, want)
			}
		}
		if table.sum.bytes != bytes || table.sum.elements != bytes {
			t.Errorf("%d tensors have %d elements and %d bytes, want %d", n, table.sum.elements, table.sum.bytes, bytes)
		}
	}
	if _, err := tensorRows(lister{n: 3 * rowsAtOnce, end: errors.New("no more")}); err == nil || err.Error() != "no more" {
		t.Errorf("the end of the list is %v", err)
	}
}
