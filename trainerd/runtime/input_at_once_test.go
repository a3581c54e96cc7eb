package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// elementsOf returns the values of each element of a data set of vectors or scalars of
// int64; of one that cannot be made "error".
func (p *pipe) elementsOf(t *testing.T, ds string) (all []string) {
	t.Helper()
	it := p.node("IteratorV2", nil, "shared_name", "it", "output_types", oneLong)
	start, next := p.node("MakeIterator", []string{ds, it}), p.node("IteratorGetNext", []string{it}, "output_types", oneLong)
	s, err := runtime.New(p.def, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run(context.Background(), nil, nil, []string{start}); err != nil {
		t.Fatal(err)
	}
	for {
		out, err := s.Run(context.Background(), nil, []string{next}, nil)
		switch {
		case errors.Is(err, session.ErrOutOfRange):
			return all
		case err != nil:
			all = append(all, "error")
		default:
			values, err := ckptfmt.Values[int64](out[0])
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(values))
		}
	}
}

// TestAtOnce checks that a batch whose elements a function makes at once has those that
// are made one after the other, also random ones and those around errors.
func TestAtOnce(t *testing.T) {
	var texts []string
	for i := range 100 {
		texts = append(texts, strconv.Itoa(i))
		if i%7 == 5 || i > 80 {
			texts[i] = "no number"
		}
	}
	for name, mapped := range map[string]func(p *pipe) string{
		"a function":     func(p *pipe) string { return p.mapped(p.numbers(0, 100), p.square()) },
		"random numbers": func(p *pipe) string { return p.mapped(p.numbers(0, 100), p.noisy()) },
		"two functions":  func(p *pipe) string { return p.mapped(p.mapped(p.numbers(0, 100), p.noisy()), p.square()) },
		"errors": func(p *pipe) string {
			return p.parsed(p.node("TensorSliceDataset", []string{p.names(texts...)}, "Toutput_types", []tfpb.DataType{dtString}))
		},
		"ignored errors": func(p *pipe) string {
			of := p.parsed(p.node("TensorSliceDataset", []string{p.names(texts...)}, "Toutput_types", []tfpb.DataType{dtString}))
			return p.node("IgnoreErrorsDataset", []string{of})
		},
		"shuffled":            func(p *pipe) string { return p.shuffled(p.mapped(p.numbers(0, 100), p.noisy()), 23) },
		"shuffled as a whole": func(p *pipe) string { return p.shuffled(p.mapped(p.numbers(0, 100), p.noisy()), -1) },
		"shuffled many rounds": func(p *pipe) string {
			return p.node("ShuffleAndRepeatDataset", []string{p.mapped(p.numbers(0, 5), p.noisy()), p.long(50), p.long(5), p.long(6), p.long(9)})
		},
		"shuffled errors": func(p *pipe) string {
			return p.shuffled(p.parsed(p.node("TensorSliceDataset", []string{p.names(texts...)}, "Toutput_types", []tfpb.DataType{dtString})), 20)
		},
		"repeated": func(p *pipe) string {
			return p.node("RepeatDataset", []string{p.mapped(p.numbers(0, 7), p.noisy()), p.long(12)})
		},
		"taken": func(p *pipe) string {
			return p.node("TakeDataset", []string{p.mapped(p.numbers(0, 100), p.noisy()), p.long(45)})
		},
	} {
		for _, size := range []int{1, 3, 16, 33, 100, 2000} {
			t.Run(fmt.Sprintf("%s, batches of %d", name, size), func(t *testing.T) {
				one, many := newPipe(t), newPipe(t)
				want := batched(one.elementsOf(t, mapped(one)), size)
				got := many.elementsOf(t, many.batched(mapped(many), int64(size)))
				if !slices.Equal(got, want) {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// batched returns the batches of elements. An error takes along what the batch had
// before it.
func batched(elements []string, size int) (all []string) {
	var batch []string
	flush := func() {
		if len(batch) > 0 {
			all = append(all, fmt.Sprint(batch))
		}
		batch = nil
	}
	for _, el := range elements {
		if el == "error" {
			all, batch = append(all, el), nil
			continue
		}
		if batch = append(batch, el[1:len(el)-1]); len(batch) == size {
			flush()
		}
	}
	flush()
	return all
}
