package summary

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
)

// Tags of the values that the hparams plugin reads.
const (
	hparamsExperimentTag = "_hparams_/experiment"
	hparamsStartTag      = "_hparams_/session_start_info"
	hparamsEndTag        = "_hparams_/session_end_info"
)

// HParamsConfig returns the description of an experiment: its hyperparameters
// and metrics. Write it to the log directory above those of the runs.
func HParamsConfig(e *tbpb.Experiment) *tfpb.Summary_Value {
	return hparamsValue(hparamsExperimentTag, &tbpb.HParamsPluginData{
		Data: &tbpb.HParamsPluginData_Experiment{Experiment: e},
	})
}

// HParams returns the hyperparameters of a run, to be written to the run's own
// events file: the run's scalars are its metrics. TensorBoard keeps the first one
// that it finds in a run, so write it when all values are known.
//
// Values are bool, string, or any integer or float. Trials with the same id
// are shown as one group; with "" the id is made from the values as TensorFlow
// makes it.
func HParams(values map[string]any, trialID string, start time.Time) (*tfpb.Summary_Value, error) {
	info := &tbpb.SessionStartInfo{
		Hparams:       make(map[string]*structpb.Value, len(values)),
		GroupName:     trialID,
		StartTimeSecs: seconds(start),
	}
	var text strings.Builder // the values as Python's json writes them
	for i, name := range slices.Sorted(maps.Keys(values)) {
		v, repr, err := hparamValue(values[name])
		if err != nil {
			return nil, fmt.Errorf("tfevents: hyperparameter %q: %w", name, err)
		}
		if err := tfproto.CheckString(name); err != nil {
			return nil, err
		}
		info.Hparams[name] = v
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(pythonString(name) + ":" + repr)
	}
	if trialID == "" {
		sum := sha256.Sum256([]byte("{" + text.String() + "}"))
		info.GroupName = hex.EncodeToString(sum[:])
	}
	return hparamsValue(hparamsStartTag, &tbpb.HParamsPluginData{
		Data: &tbpb.HParamsPluginData_SessionStartInfo{SessionStartInfo: info},
	}), nil
}

// HParamsEnd returns the value that marks the end of a run with
// hyperparameters.
func HParamsEnd(status tbpb.Status, end time.Time) *tfpb.Summary_Value {
	return hparamsValue(hparamsEndTag, &tbpb.HParamsPluginData{
		Data: &tbpb.HParamsPluginData_SessionEndInfo{
			SessionEndInfo: &tbpb.SessionEndInfo{Status: status, EndTimeSecs: seconds(end)},
		},
	})
}

// hparamsValue carries everything in the metadata; the tensor is empty.
func hparamsValue(tag string, data *tbpb.HParamsPluginData) *tfpb.Summary_Value {
	return PluginTensor(tag, PluginHParams, tfproto.Marshal(data), &tfpb.TensorProto{
		Dtype: tfpb.DataType_DT_FLOAT, TensorShape: shapeProto(0),
	})
}

// seconds returns t as Python's time.time does.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// hparamValue returns v as the message has it, and as Python's json does.
func hparamValue(v any) (*structpb.Value, string, error) {
	switch v := v.(type) {
	case bool:
		return structpb.NewBoolValue(v), strconv.FormatBool(v), nil
	case string:
		return structpb.NewStringValue(v), pythonString(v), tfproto.CheckString(v)
	case float64:
		return structpb.NewNumberValue(v), pythonFloat(v), nil
	case float32:
		return structpb.NewNumberValue(float64(v)), pythonFloat(float64(v)), nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		text := fmt.Sprint(v)
		f, err := strconv.ParseFloat(text, 64)
		return structpb.NewNumberValue(f), text, err
	}
	return nil, "", fmt.Errorf("type %T, want bool, string, an integer or a float", v)
}

// pythonFloat formats v as Python's repr does.
func pythonFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	e := strconv.FormatFloat(v, 'e', -1, 64)
	if exp, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:]); exp < -4 || exp >= 16 {
		return e
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// pythonString quotes s as Python's json does.
func pythonString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		case r > 0xffff && r <= utf8.MaxRune:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
