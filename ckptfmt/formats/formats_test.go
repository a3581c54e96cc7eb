package formats_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// file returns the bytes of a safetensors file with that header.
func file(header, data string) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + data
}

func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSniffSaysWhatAFileIs(t *testing.T) {
	for begin, want := range map[string]string{
		"\x93NUMPY\x01\x00": ".npy",
		"GGUF\x03":          "GGUF",
		"\x80\x04\x95":      "Python pickle",
		"":                  "empty",
		"PAR1\x15\x04":      "Parquet",

		"\x08\x07\x12\x07pytorch\x1a\x05":                        "ONNX",
		"\x1c\x00\x00\x00TFL3\x14\x00 \x00":                      "TensorFlow Lite",
		"storages" + strings.Repeat("\x00", 249) + "ustar\x0000": "tar archive",
	} {
		_, err := formats.Sniff(strings.NewReader(begin), int64(len(begin)))
		var wrong *formats.KindError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Is, want) {
			t.Errorf("%.20q is %v, want %q", begin, err, want)
		}
	}
}

// What may be a checkpoint of another program is told from what holds no model.
func TestSniffTellsModels(t *testing.T) {
	for begin, want := range map[string]bool{
		"\x80\x04\x95": true, "GGUF\x03": true, "\x1c\x00\x00\x00TFL3": true, "\x08\x07\x12\x07pytorch": true, "\x81\xa6params": true,
		"PAR1\x15\x04": false, "<!DOCTYPE html>": false, `{"a": 1}`: false, "": false,
	} {
		_, err := formats.Sniff(strings.NewReader(begin), int64(len(begin)))
		if wrong := new(formats.KindError); !errors.As(err, &wrong) || wrong.Model != want {
			t.Errorf("%.20q is %v, want Model %v", begin, err, want)
		}
	}
}

func TestSniffTellsEvents(t *testing.T) {
	var file bytes.Buffer
	if err := tfrecord.NewWriter(&file).Write([]byte("an event")); err != nil {
		t.Fatal(err)
	}
	_, err := formats.Sniff(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if wrong := new(formats.KindError); !errors.As(err, &wrong) || !strings.Contains(wrong.Is, "events files") {
		t.Errorf("%v", err)
	}
}

// A SavedModel begins with the same fields as an ONNX model.
func TestSniffTellsSavedModels(t *testing.T) {
	for _, begin := range []string{"\x08\x01\x12\x07\x0a\x05\x12\x03abc", "\x08\x01\x12\x00", "\x08\x01\x12\x7fabc"} {
		if got, err := formats.Sniff(strings.NewReader(begin), int64(len(begin))); err != nil || got != formats.Checkpoint {
			t.Errorf("%q is %v, %v", begin, got, err)
		}
	}
}

func TestSniffTellsHDF5(t *testing.T) {
	for begin, want := range map[string]formats.Kind{
		"\x89HDF\r\n\x1a\n layer_names":                   formats.KerasLegacy,
		"\x89HDF\r\n\x1a\n vars\x00":                      formats.KerasWeights,
		strings.Repeat("\x00", 512) + "\x89HDF\r\n\x1a\n": formats.HDF5,
	} {
		if got, err := formats.Sniff(strings.NewReader(begin), int64(len(begin))); err != nil || got != want {
			t.Errorf("%.20q is %v, %v, want %v", begin, got, err, want)
		}
	}
}

func TestFilesOfKerasAreRead(t *testing.T) {
	for _, name := range []string{"model.keras", "model.weights.h5", "model.h5"} {
		f, err := formats.Find(filepath.Join("../../fixtures/keras", name))
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.Checks() == "" {
			t.Errorf("%s: no check is named", name)
		}
		for tensor, err := range r.Verify(context.Background()) {
			if err != nil {
				t.Errorf("%s: %s: %v", name, tensor, err)
			}
		}
		if _, err := r.Lookup("head/kernel"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestShardedReadsEachTensorFromItsFile(t *testing.T) {
	const one = `{"%":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"twice":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`
	dir := write(t, map[string]string{
		"a.safetensors":                file(strings.Replace(one, "%", "x", 1), "\x01\x02"),
		"b.safetensors":                file(strings.Replace(one, "%", "y", 1), "\x03\x04"),
		"model.safetensors.index.json": `{"weight_map":{"x":"a.safetensors","y":"b.safetensors","twice":"b.safetensors"}}`,
	})
	f, err := formats.FindIn(dir)
	if err != nil || f.Kind != formats.Sharded {
		t.Fatal(f, err)
	}
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, want := range map[string]byte{"x": 1, "y": 3, "twice": 4} {
		got, err := r.Lookup(name)
		if err != nil || !bytes.Equal(got.Data, []byte{want}) {
			t.Errorf("%s: %v, %v, want %d", name, got, err, want)
		}
	}
	for name, err := range r.Verify(context.Background()) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTotalSize has an index that counts the bytes of the tensors, wrongly or not.
func TestTotalSize(t *testing.T) {
	const one = `{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`
	for metadata, want := range map[string]string{
		"{}": "", `{"total_size":2}`: "", `{"total_size":96}`: "total_size 96, the tensors have 2 bytes",
	} {
		dir := write(t, map[string]string{
			"a.safetensors":                file(one, "\x01\x02"),
			"model.safetensors.index.json": `{"metadata":` + metadata + `,"weight_map":{"x":"a.safetensors"}}`,
		})
		r, err := formats.File{Kind: formats.Sharded, Path: dir + "/model.safetensors.index.json"}.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if notes := strings.Join(r.Notes(), "\n"); (want == "") != (notes == "") || !strings.Contains(notes, want) {
			t.Errorf("%s: notes are %q, want %q", metadata, notes, want)
		}
	}
}

// TestProgramsOfTorchAreRefused has the members of TorchScript and of torch.export, in
// the order in which they may be.
func TestProgramsOfTorchAreRefused(t *testing.T) {
	for _, members := range [][]string{{"m/data.pkl", "m/constants.pkl"}, {"m/code/x.py", "m/constants.pkl", "m/data.pkl"}, {"archive_format", "data/weights/w.pt"}} {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, name := range members {
			w, err := z.CreateHeader(&zip.FileHeader{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, "\x80\x02}."); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		dir := write(t, map[string]string{"m.pt": b.String()})
		f, err := formats.Find(dir + "/m.pt")
		if err == nil {
			_, err = f.Open()
		}
		if err == nil || !strings.Contains(err.Error(), "a program of torch") || !strings.Contains(err.Error(), "m.pt") {
			t.Errorf("%q: %v", members, err)
		}
	}
}

func TestShardedRefusesFilesElsewhere(t *testing.T) {
	for _, index := range []string{
		`{"weight_map":{"x":"../a.safetensors"}}`, `{"weight_map":{"x":"/etc/passwd"}}`, `{"weight_map":{"x":"."}}`, `{"weight_map":{"x":7}}`,
		`{"weight_map":{"x":"a","x":"a"}}`, `{"weight_map":{},"weight_map":{}}`, `{"weight_map":[]}`,
	} {
		dir := write(t, map[string]string{"model.safetensors.index.json": index})
		f, err := formats.FindIn(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := f.Open(); err == nil {
			r.Close()
			t.Errorf("%s was opened", index)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, "\x01")))
	f.Add([]byte(`{"weight_map":{"x":"a.safetensors"}}`))
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Add([]byte("\x89HDF\r\n\x1a\n"))
	name := filepath.Join(f.TempDir(), "f") // of each process that fuzzes
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := formats.Find(name)
		if err != nil {
			return
		}
		r, err := found.Open()
		if err != nil {
			return
		}
		defer r.Close()
		for info, err := range r.Tensors() {
			if err == nil && info.Bytes < 1<<20 {
				_, _ = r.Lookup(info.Name)
			}
		}
	})
}
