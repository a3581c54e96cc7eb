package ckptdir

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/trainerd/trainerd/internal/membound"
	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

const stateSet = "checkpoint_text"

// stateCase is a golden case of the state file.
type stateCase struct {
	ID    string
	Files map[string]string
	Input struct {
		SaveDir        string    `json:"save_dir"`
		Model          string    `json:"model_checkpoint_path"`
		All            []string  `json:"all_model_checkpoint_paths"`
		Timestamps     []float64 `json:"all_model_checkpoint_timestamps"`
		LastPreserved  float64   `json:"last_preserved_timestamp"`
		LatestFilename string    `json:"latest_filename"`
		Hex            *string
	}
	Expect json.RawMessage
}

func stateCases(t testing.TB) []stateCase {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtureDir, stateSet, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Cases []stateCase }
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m.Cases
}

// What TensorFlow wrote for a directory and paths, we write.
func TestUpdateStateGolden(t *testing.T) {
	n := 0
	for _, c := range stateCases(t) {
		if c.Input.SaveDir == "" {
			continue
		}
		n++
		t.Run(c.ID, func(t *testing.T) {
			var want struct{ Hex, Error string }
			if err := json.Unmarshal(c.Expect, &want); err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			if err := os.MkdirAll(c.Input.SaveDir, 0o777); err != nil {
				t.Fatal(err)
			}
			err := UpdateState(c.Input.SaveDir, &tfpb.CheckpointState{
				ModelCheckpointPath: c.Input.Model, AllModelCheckpointPaths: c.Input.All,
				AllModelCheckpointTimestamps: c.Input.Timestamps, LastPreservedTimestamp: c.Input.LastPreserved,
			}, &StateOptions{Name: c.Input.LatestFilename})
			if want.Error != "" {
				if err == nil {
					t.Errorf("no error, TensorFlow says %s", want.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(statePath(c.Input.SaveDir, c.Input.LatestFilename))
			if err != nil {
				t.Fatal(err)
			}
			if hex.EncodeToString(got) != want.Hex {
				t.Errorf("got:\n%swant:\n%s", got, decodeHex(t, want.Hex))
			}
			if left := fileNames(t, c.Input.SaveDir); len(left) != 1 {
				t.Errorf("files in the directory: %q", left)
			}
		})
	}
	if n < 10 {
		t.Errorf("only %d cases", n)
	}
}

func TestUpdateStatePaths(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	if err := os.Mkdir("run", 0o777); err != nil {
		t.Fatal(err)
	}
	abs := filepath.Join(root, "run")
	for _, tc := range []struct {
		name, dir, path string
		relative        bool
		want            string
	}{
		{"relative directory, relative path", "run", "run/m-1", false, "m-1"},
		{"relative directory, path to be cleaned", "./run/", "run/./m-1", false, "m-1"},
		{"relative directory, absolute path", "run", abs + "/m-1", false, abs + "/m-1"},
		{"relative directory, absolute path made relative", "run", abs + "/m-1", true, "m-1"},
		{"absolute directory, absolute path", abs, abs + "/m-1", false, abs + "/m-1"},
		{"absolute directory, absolute path made relative", abs, abs + "/m-1", true, "m-1"},
		{"absolute directory, relative path", abs, "m-1", false, "m-1"},
		{"absolute directory, relative path kept", abs, "m-1", true, "m-1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := UpdateState(tc.dir, &tfpb.CheckpointState{ModelCheckpointPath: tc.path}, &StateOptions{RelativePaths: tc.relative})
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile("run/checkpoint")
			if err != nil {
				t.Fatal(err)
			}
			s, err := ParseState(text)
			if err != nil {
				t.Fatal(err)
			}
			want := &tfpb.CheckpointState{ModelCheckpointPath: tc.want, AllModelCheckpointPaths: []string{tc.want}}
			if diff := cmp.Diff(want, s, protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUpdateStateConflict(t *testing.T) {
	dir := t.TempDir()
	err := UpdateState(dir, &tfpb.CheckpointState{ModelCheckpointPath: filepath.Join(dir, "checkpoint")}, nil)
	if err == nil || len(fileNames(t, dir)) > 0 {
		t.Errorf("UpdateState = %v, files %q; want an error and no file", err, fileNames(t, dir))
	}
}

// Edited files are read, ignored or refused as TensorFlow does.
func TestReadStateGolden(t *testing.T) {
	cases := stateCases(t)
	t.Chdir(fixtureDir)
	n := 0
	for _, c := range cases {
		if c.Input.Hex == nil {
			continue
		}
		n++
		t.Run(c.ID, func(t *testing.T) {
			var want struct {
				State json.RawMessage `json:"get_checkpoint_state"`
			}
			if err := json.Unmarshal(c.Expect, &want); err != nil {
				t.Fatal(err)
			}
			s, err := ReadState(stateSet+"/"+c.ID, nil)
			checkState(t, s, err, want.State)
		})
	}
	if n < 28 {
		t.Errorf("only %d cases", n)
	}
}

func checkState(t *testing.T, s *tfpb.CheckpointState, err error, want json.RawMessage) {
	t.Helper()
	var message string
	switch {
	case string(want) == "null":
		if !errors.Is(err, ErrState) || !IsNoState(err) {
			t.Errorf("got %v, %v; TensorFlow ignores the file", s, err)
		}
		return
	case json.Unmarshal(want, &message) == nil && strings.HasPrefix(message, "ValueError"):
		if !errors.Is(err, ErrEmptyState) {
			t.Errorf("got %v, %v; TensorFlow says %s", s, err, message)
		}
		return
	case message != "": // a Python exception that is better taken for a file to be ignored
		if !errors.Is(err, ErrState) {
			t.Errorf("got %v, %v; TensorFlow says %s", s, err, message)
		}
		return
	case err != nil:
		t.Error(err)
		return
	}
	w := &tfpb.CheckpointState{}
	if err := stateFromJSON(want, w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, s, protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}

// stateFromJSON reads a manifest's state, in which special numbers are text.
func stateFromJSON(b []byte, s *tfpb.CheckpointState) error {
	var j struct {
		Model         string          `json:"model_checkpoint_path"`
		All           []string        `json:"all_model_checkpoint_paths"`
		Timestamps    []float64       `json:"all_model_checkpoint_timestamps"`
		LastPreserved json.RawMessage `json:"last_preserved_timestamp"`
	}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	s.ModelCheckpointPath, s.AllModelCheckpointPaths, s.AllModelCheckpointTimestamps = j.Model, j.All, j.Timestamps
	if j.LastPreserved == nil {
		return nil
	}
	v, err := strconv.ParseFloat(strings.Trim(string(j.LastPreserved), `"`), 64)
	s.LastPreservedTimestamp = v
	return err
}

func TestFormatGolden(t *testing.T) {
	for _, c := range stateCases(t) {
		if c.ID != "float_format" && c.ID != "string_escapes" {
			continue
		}
		var want map[string]string
		if err := json.Unmarshal(c.Expect, &want); err != nil {
			t.Fatal(err)
		}
		for in, text := range want {
			s := &tfpb.CheckpointState{}
			field := fieldModelPath
			if c.ID == "float_format" {
				bits, err := strconv.ParseUint(in, 16, 64)
				if err != nil {
					t.Fatal(err)
				}
				s.LastPreservedTimestamp = math.Float64frombits(bits)
				field = fieldLastPreserved
			} else {
				s.ModelCheckpointPath = string(decodeHex(t, in))
			}
			line := field + ": " + text + "\n"
			if text == "(field omitted)" {
				line = ""
			}
			if got := string(FormatState(s)); got != line {
				t.Errorf("%s %s: %q, want %q", c.ID, in, got, line)
			}
		}
	}
}

func TestParseStateForms(t *testing.T) {
	path := func(p string) *tfpb.CheckpointState { return &tfpb.CheckpointState{ModelCheckpointPath: p} }
	stamp := func(v float64) *tfpb.CheckpointState { return &tfpb.CheckpointState{LastPreservedTimestamp: v} }
	for _, tc := range []struct {
		name, text string
		want       *tfpb.CheckpointState // nil: refused
	}{
		{"empty list", "all_model_checkpoint_paths: []", &tfpb.CheckpointState{}},
		{"comma before the end of a list", `all_model_checkpoint_paths: ["a",]`, nil},
		{"list of a singular field", `model_checkpoint_path: ["a"]`, nil},
		{"two semicolons", `model_checkpoint_path: "a";;`, nil},
		{"comma, then semicolon", `model_checkpoint_path: "a",;`, nil},
		{"lone carriage returns", "model_checkpoint_path:\r\"a\"\r", path("a")},
		{"other white space", "model_checkpoint_path\u00a0:\x1c\"a\"\u2003\v", path("a")},
		{"comment to the end", `model_checkpoint_path: "a" # "b"`, path("a")},
		{"field over lines", "model_checkpoint_path\n:\n\"a\"\n'b'", path("ab")},
		{"byte order mark", "\ufeffmodel_checkpoint_path: 'a'", nil},
		{"extension", `[x.y]: "a"`, nil},
		{"field number", `1: "a"`, nil},
		{"braces", `{ model_checkpoint_path: "a" }`, nil},
		{"wrong case", `Model_Checkpoint_Path: "a"`, nil},
		{"one-letter escapes", `model_checkpoint_path: "\a\b\f\v\n\r\t\\\'\""`, path("\a\b\f\v\n\r\t\\'\"")},
		{"unknown escape", `model_checkpoint_path: "\q\?"`, path(`\q\?`)},
		{"octal of one and two digits", `model_checkpoint_path: "\7\60x"`, path("\x070x")},
		{"octal beyond a byte", `model_checkpoint_path: "\400"`, nil},
		{"hexadecimal of one digit", `model_checkpoint_path: "\x9y"`, path("\ty")},
		{"hexadecimal without digits", `model_checkpoint_path: "\xg"`, nil},
		{"character of eight digits", `model_checkpoint_path: "\U0001F680"`, path("\U0001F680")},
		{"character of three digits", `model_checkpoint_path: "\u123"`, nil},
		{"surrogate", `model_checkpoint_path: "\ud83d\ude80"`, nil},
		{"bytes that are not UTF-8", `model_checkpoint_path: "\303"`, nil},
		{"UTF-8 over two strings", `model_checkpoint_path: "\303" "\251"`, path("é")},
		{"backslash at the end of the line", "model_checkpoint_path: \"a\\\n\"", nil},
		{"positive sign", "last_preserved_timestamp: +5", stamp(5)},
		{"grouped digits", "last_preserved_timestamp: 1_000.5e1_0", stamp(1000.5e10)},
		{"two underscores", "last_preserved_timestamp: 1__0", nil},
		{"C suffix", "last_preserved_timestamp: 1.5F", stamp(1.5)},
		{"two C suffixes", "last_preserved_timestamp: 1.5ff", stamp(1.5)},
		{"point at the end", "last_preserved_timestamp: 5.", stamp(5)},
		{"infinity", "last_preserved_timestamp: -Infinity", stamp(math.Inf(-1))},
		{"too large", "last_preserved_timestamp: 1e999", stamp(math.Inf(1))},
		{"too small", "last_preserved_timestamp: 1e-999", stamp(0)},
		{"leading zero", "last_preserved_timestamp: -01", nil},
		{"zero with a fraction", "last_preserved_timestamp: 0.5", stamp(0.5)},
		{"hexadecimal float", "last_preserved_timestamp: 0x1p4", nil},
		{"string for a number", `last_preserved_timestamp: "5"`, nil},
		{"sign alone", "last_preserved_timestamp: -", nil},
		{"nothing", "model_checkpoint_path:", nil},
		{"character by its name", `model_checkpoint_path: "\N{DASH}"`, nil},
		{"backslash before Latin-1", `model_checkpoint_path: "\ÿ"`, path(`\ÿ`)},
		{"backslash before Latin", `model_checkpoint_path: "\Ā"`, path(`\u0100`)},
		{"backslash before the last of 16 bits", "model_checkpoint_path: \"\\\uffff\"", path(`\uffff`)},
		{"backslash before a rocket", `model_checkpoint_path: "\🚀"`, path(`\U0001f680`)},
		{"backslash before 8", `model_checkpoint_path: "\8"`, path(`\8`)},
		{"octal of four digits", `model_checkpoint_path: "\1234"`, path("S4")},
		{"hexadecimal of three digits", `model_checkpoint_path: "\x414"`, path("A4")},
		{"hexadecimal digits", `model_checkpoint_path: "\x4a\x4f\x4A\x4F"`, path("JOJO")},
		{"after the last hexadecimal digits", "model_checkpoint_path: \"\\x4g\\x4G\\x4`\\x4@\"", path("\x04g\x04G\x04`\x04@")},
		{"last character", `model_checkpoint_path: "\U0010FFFF"`, path("\U0010ffff")},
		{"after the last character", `model_checkpoint_path: "\U00110000"`, nil},
		{"around the surrogates", `model_checkpoint_path: "\uD7FF\uE000"`, path("\ud7ff\ue000")},
		{"replacement character", "model_checkpoint_path: \"\ufffd\"", path("\ufffd")},
		{"escaped quote for an end", `model_checkpoint_path: "a\"`, nil},
		{"infinity in short with a C suffix", "last_preserved_timestamp: inff", stamp(math.Inf(1))},
		{"a quote alone", `model_checkpoint_path: "`, nil},
		{"no end", `model_checkpoint_path: "a\`, nil},
		{"no colon", `model_checkpoint_path "a"`, nil},
		{"list without a comma", "all_model_checkpoint_timestamps: [1 2]", nil},
		{"list without an end", "all_model_checkpoint_timestamps: [1, 2", nil},
		{"list with a comma at the end", "all_model_checkpoint_timestamps: [1,]", nil},
		{"list with a string", `all_model_checkpoint_timestamps: [1, "x"]`, nil},
		{"empty list", "all_model_checkpoint_timestamps: []", &tfpb.CheckpointState{}},
		{"list for a single value", "last_preserved_timestamp: [5]", nil},
		{"infinity with a C suffix", "last_preserved_timestamp: -infinityf", stamp(math.Inf(-1))},
		{"infinity with two", "last_preserved_timestamp: infinityff", stamp(math.Inf(1))},
		{"separators for spaces", "\x1cmodel_checkpoint_path:\x1f\"a\"\x1d\x1e", path("a")},
		{"escape for a space", "\x1bmodel_checkpoint_path: \"a\"", nil},
		{"exclamation mark for a space", "model_checkpoint_path: \"a\" !", nil},
		{"no UTF-8 at the beginning", "\xc3", nil},
		{"no UTF-8 at the end", "model_checkpoint_path: \"a\"\xff", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseState([]byte(tc.text))
			if tc.want == nil {
				if !errors.Is(err, ErrState) {
					t.Errorf("got %v, %v; want ErrState", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseStateErrorNamesLine(t *testing.T) {
	_, err := ParseState([]byte("model_checkpoint_path: \"a\"\n\nnonsense: 3\n"))
	if err == nil || !strings.Contains(err.Error(), "line 3") || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("error %v does not name line and field", err)
	}
}

func TestLatestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name, want string, wantErr error) {
		t.Helper()
		got, err := LatestCheckpoint(dir, nil)
		if want != "" {
			want = filepath.Join(dir, want)
		}
		if got != want || !errors.Is(err, wantErr) {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, err, want, wantErr)
		}
	}
	check("no state file", "", fs.ErrNotExist)
	if err := os.Mkdir(filepath.Join(dir, "checkpoint"), 0o777); err != nil {
		t.Fatal(err)
	}
	check("directory for a state file", "", ErrState)
	if err := os.Remove(filepath.Join(dir, "checkpoint")); err != nil {
		t.Fatal(err)
	}
	write("checkpoint", "")
	check("empty state file", "", ErrEmptyState)
	write("checkpoint", "model_checkpoint_path: 5")
	check("bad state file", "", ErrState)
	write("checkpoint", `model_checkpoint_path: "m-1"`)
	check("no such checkpoint", "", fs.ErrNotExist)
	write("m-1.index", "")
	check("V2 checkpoint", "m-1", nil)
	write("checkpoint", `model_checkpoint_path: "old-2"`)
	write("old-2", "")
	check("V1 checkpoint", "old-2", nil)
	write("checkpoint", `model_checkpoint_path: "old-3-?????-of-00002"`)
	write("old-3-00001-of-00002", "")
	check("sharded V1 checkpoint", "old-3-?????-of-00002", nil)
}

func FuzzState(f *testing.F) {
	for _, c := range stateCases(f) {
		if c.Input.Hex != nil {
			f.Add(decodeHex(f, *c.Input.Hex))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		defer membound.Check(t, len(text), 256)()
		s, err := ParseState(text)
		if err != nil {
			if !errors.Is(err, ErrState) {
				t.Fatalf("error %v is not ErrState", err)
			}
			return
		}
		again, err := ParseState(FormatState(s))
		if err != nil {
			t.Fatalf("our own text is refused: %v", err)
		}
		if diff := cmp.Diff(s, again, protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
			t.Error(diff)
		}
	})
}
