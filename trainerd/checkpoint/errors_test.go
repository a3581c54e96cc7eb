package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// The texts say what is wrong with which file, and what to do.
func TestErrorTexts(t *testing.T) {
	missing := Difference{Key: "b", Variable: "b", ModelDType: tfpb.DataType_DT_FLOAT, ModelShape: []int64{3}}
	other := Difference{"k", "w", tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_INT32, []int64{2}, []int64{4}}
	damage := &Error{Prefix: "/log/m-3", File: "/log/m-3.index", Err: errors.New("wrong magic number")}
	many := &WarmStartError{Checkpoint: "/old/m-3"}
	for i := range 12 {
		many.Differences = append(many.Differences, Difference{Key: fmt.Sprint("v", i), Variable: fmt.Sprint("v", i), ModelDType: tfpb.DataType_DT_INT32})
	}
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"damage", damage, "checkpoint /log/m-3: wrong magic number"},
		{"unreadable", &UnreadableError{damage, "/log/checkpoint"}, "checkpoint /log/m-3: wrong magic number\n" +
			"it may be intact, so no older checkpoint is used instead: make /log/m-3.index readable, and start again; or let /log/checkpoint name another checkpoint"},
		{"none intact", &NoIntactError{Dir: "/log", State: "/log/checkpoint", Tried: []*Error{damage, {Prefix: "/log/m-2", Err: fs.ErrNotExist}}, Newer: []string{"/log/m-5", "/log/m-4"}},
			"no usable checkpoint in /log:\n  m-3: wrong magic number\n  m-2: file does not exist\n  newer than the one that checkpoint names, so not tried: m-5, m-4\n" +
				"put the missing files back, or let /log/checkpoint name another checkpoint, or use another logdir to start from the beginning"},
		{"another model", &MismatchError{Prefix: "/log/m-3", Differences: []Difference{missing, other}, Extra: []string{"x"}},
			"checkpoint /log/m-3 is of a different model:\n  b: missing in the checkpoint; the model has float32 [3]\n  w (key k): the model has float32 [2], the checkpoint int32 [4]\n" +
				"  x: only in the checkpoint\nuse a new logdir for the changed model, or change the model back"},
		{"another model, by name", &MismatchError{Prefix: "/m", Differences: []Difference{missing}, Named: true},
			"checkpoint /m is of a different model:\n  b: missing in the checkpoint; the model has float32 [3]\nname a checkpoint of this model, or start without one"},
		{"warm start", &WarmStartError{"/m", []Difference{missing}}, "warm start: /m has no value for 1 variables of the model:\n  b: missing in the checkpoint; the model has float32 [3]"},
		{"full disk", &NoSpaceError{"/log", 500, 20}, "a checkpoint of about 500 bytes does not fit on the disk of /log, which has 20 left; make room, or keep fewer checkpoints"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.err.Error(), tt.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", tt.name, diff)
		}
	}
	if text := many.Error(); !strings.HasSuffix(text, "\n  and 2 more") || strings.Contains(text, "v10") {
		t.Errorf("many differences: %s", text)
	}
	many.Differences = many.Differences[:10]
	if text := many.Error(); strings.Contains(text, "more") || !strings.Contains(text, "v9") {
		t.Errorf("ten differences: %q", text)
	}
}

// The causes can be found with errors.Is and errors.As.
func TestErrorCauses(t *testing.T) {
	cause := errors.New("cause")
	damage := &Error{Prefix: "/log/m-3", Err: cause}
	var found *Error
	for _, err := range []error{damage, &UnreadableError{Checkpoint: damage}, &NoIntactError{Tried: []*Error{{Err: fs.ErrNotExist}, damage}}} {
		if !errors.Is(err, cause) || !errors.As(err, &found) {
			t.Errorf("%T hides its cause", err)
		}
	}
	newer := &NoIntactError{Tried: []*Error{damage, {Err: ckptfmt.ErrVersion}}}
	if text := newer.Error(); !strings.Contains(text, "install a newer release") {
		t.Errorf("a checkpoint of a newer TensorFlow: %s", text)
	}
	if errors.Is(&NoIntactError{}, cause) {
		t.Error("a cause where nothing was tried")
	}
}
