package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// TestLinesOfManyTensors has tensors of a reader that is gone through once, in their order.
func TestLinesOfManyTensors(t *testing.T) {
	for _, n := range []int{0, 1, rowsAtOnce, rowsAtOnce + 1, 5 * rowsAtOnce} {
		lines, err := newTensorLines(lister{n: n})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := lines.print(&out, terminal.Style{}); err != nil {
			t.Fatal(err)
		}
		printed := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")[1:]
		if len(printed) != n || len(lines.damaged) != n/100 || lines.sum.tensors != int64(n-n/100) {
			t.Fatalf("%d tensors have %d lines, %d are damaged, %d counted", n, len(printed), len(lines.damaged), lines.sum.tensors)
		}
		bytes := int64(0)
		for i, line := range printed {
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
		if lines.sum.bytes != bytes || lines.sum.elements != bytes {
			t.Errorf("%d tensors have %d elements and %d bytes, want %d", n, lines.sum.elements, lines.sum.bytes, bytes)
		}
	}
	if _, err := newTensorLines(lister{n: 3, end: errors.New("no more")}); err == nil || err.Error() != "no more" {
		t.Errorf("the end of the list is %v", err)
	}
}

// TestColumns has names that are not plain, one that is too long for its column, and a
// tensor without a type.
func TestColumns(t *testing.T) {
	long := strings.Repeat("w", nameWidth+1)
	list := tensorList{}
	list.add(&ckptfmt.TensorInfo{Name: "wörter", DType: tfpb.DataType_DT_FLOAT, Shape: []int64{10, 2}, Bytes: 80}, nil)
	list.add(&ckptfmt.TensorInfo{Name: "a\tb", DType: tfpb.DataType_DT_INT8, Shape: []int64{}, Bytes: 1}, nil)
	list.add(&ckptfmt.TensorInfo{Name: long, Foreign: "F4", Shape: []int64{0}}, nil)
	list.add(&ckptfmt.TensorInfo{Name: "bad"}, errors.New("bad luck"))
	lines, err := newTensorLines(listReader{tensors: &list})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := lines.print(&out, terminal.Style{}); err != nil {
		t.Fatal(err)
	}
	want := "NAME    DTYPE    SHAPE   BYTES\n" +
		"wörter  float32  [10,2]  80\n" +
		"\"a\\tb\"  int8     []      1\n" +
		long + "  F4       [0]     0\n" +
		"bad     -        -       -      <- damaged\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

type listReader struct {
	ckptfmt.Reader
	tensors
}

// TestOutputFails ends the goroutine that makes lines.
func TestOutputFails(t *testing.T) {
	for _, n := range []int{1, 2 * rowsAtOnce, 10 * rowsAtOnce} {
		lines, err := newTensorLines(lister{n: n})
		if err != nil {
			t.Fatal(err)
		}
		if err := lines.print(brokenWriter{}, terminal.Style{}); err != io.ErrShortWrite {
			t.Errorf("%d lines: %v", n, err)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
