package hdf5_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	tfpb "github.com/trainerd/trainerd/proto"
)

func TestWrittenFilesHoldTheSame(t *testing.T) {
	var parts []ckptfmt.Part
	for _, name := range []string{"old.h5", "latest.h5"} {
		r, err := open(fixture(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Parts() {
			if p.Open != nil {
				p.Name = name + "/" + p.Name
				parts = append(parts, p)
			}
		}
	}
	for i := range 600 { // a tree of two levels
		p := parts[0]
		p.Name = fmt.Sprintf("lots/%d", i)
		parts = append(parts, p)
	}
	var out bytes.Buffer
	attrs := hdf5.Attrs{"": {"of": "root"}, "lots": {"name": "é"}, "nothing/else": {"x": ""}}
	if err := hdf5.Write(context.Background(), &out, parts, attrs); err != nil {
		t.Fatal(err)
	}
	r, err := open(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got := load(t, r.Parts())
	for name, want := range load(t, parts) {
		if have := got[name]; have == nil || have.DType != want.DType || !slices.Equal(have.Shape, want.Shape) || !bytes.Equal(have.Data, want.Data) {
			t.Errorf("%s is %v", name, have)
		}
	}
	for path, list := range attrs {
		for name, want := range list {
			if got, err := r.Attr(path, name); err != nil || !slices.Equal(got, []string{want}) {
				t.Errorf("attribute %s of %q is %q, %v, want %q", name, path, got, err, want)
			}
		}
	}
}

func TestWhatCannotBeWrittenIsRefused(t *testing.T) {
	part := func(name string, d tfpb.DataType) ckptfmt.Part { return ckptfmt.WholePart(name, d, nil, nil) }
	for name, list := range map[string][]ckptfmt.Part{
		"a type":         {part("x", tfpb.DataType_DT_QINT8)},
		"strings":        {part("x", tfpb.DataType_DT_STRING)},
		"no name":        {part("", tfpb.DataType_DT_FLOAT)},
		"an empty name":  {part("a//b", tfpb.DataType_DT_FLOAT)},
		"twice":          {part("x", tfpb.DataType_DT_FLOAT), part("x", tfpb.DataType_DT_FLOAT)},
		"under a tensor": {part("x", tfpb.DataType_DT_FLOAT), part("x/y", tfpb.DataType_DT_FLOAT)},
		"over a tensor":  {part("x/y", tfpb.DataType_DT_FLOAT), part("x", tfpb.DataType_DT_FLOAT)},
		"not supported":  {{Name: "x", Err: errors.New("why")}},
	} {
		if err := hdf5.Write(context.Background(), &bytes.Buffer{}, list, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
