package ckptfmt

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// fixtures holds files that TensorFlow wrote, and for each what it was given
// or what its readers made of it. Files of more than 210 kB are not kept; the
// manifest has the checksums of all.
const fixtures = "../fixtures"

type goldenCase struct {
	ID     string
	Kind   string
	Files  map[string]string // sha256 by name
	Input  goldenInput
	Expect json.RawMessage
}

type goldenInput struct {
	Op      string
	Tensors []goldenTensor `json:"tensors_in_write_order"`
	Parts   []struct {
		Prefix  string
		Tensors []goldenTensor `json:"tensors_in_write_order"`
	}
}

type goldenTensor struct {
	Name      json.RawMessage
	NameRule  string `json:"name_rule"`
	SliceSpec string `json:"slice_spec"`
	DType     string
	Shape     []int64
	Fill      *goldenFill
	RawHex    string `json:"raw_hex"`
	Strings   []struct {
		Hex  string
		Fill *goldenFill
	}
}

type goldenFill struct {
	Seed   uint64
	Post   string
	NBytes int
}

func readManifest(t testing.TB, set string) []goldenCase {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtures, set, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Cases []goldenCase }
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m.Cases
}

// splitmix64 is the rule by which the inputs were filled.
func splitmix64(seed uint64, n int) []byte {
	var b []byte
	for len(b) < n {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		b = binary.LittleEndian.AppendUint64(b, z^z>>31)
	}
	return b[:n]
}

func (f *goldenFill) bytes(n int) []byte {
	b := splitmix64(f.Seed, n)
	for i, c := range b {
		switch f.Post {
		case "bool":
			b[i] = c & 1
		case "int4":
			b[i] = byte(int8(c<<4) >> 4)
		case "uint4":
			b[i] = c & 15
		case "int2":
			b[i] = byte(int8(c<<6) >> 6)
		case "uint2":
			b[i] = c & 3
		}
	}
	return b
}

func (g *goldenTensor) name(t testing.TB) string {
	t.Helper()
	switch {
	case strings.HasPrefix(g.NameRule, "letter m"):
		return strings.Repeat("m", 530000)
	case g.NameRule != "":
		return g.longName(t)
	}
	var s string
	if json.Unmarshal(g.Name, &s) == nil {
		return s
	}
	var h struct{ Hex string }
	if err := json.Unmarshal(g.Name, &h); err != nil {
		t.Fatal(err)
	}
	return string(unhex(t, h.Hex))
}

// longName follows the rule that a manifest gives for names of a thousand
// letters.
func (g *goldenTensor) longName(t testing.TB) string {
	var prefix string
	var i, n int
	var seed uint64
	rule := strings.NewReplacer("'", " ", ",", " ").Replace(strings.TrimPrefix(g.NameRule, "longname("))
	if _, err := fmt.Sscanf(rule, "%s i=%d n=%d seed=%d", &prefix, &i, &n, &seed); err != nil {
		t.Fatalf("name rule %q: %v", g.NameRule, err)
	}
	letters := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(splitmix64(seed+uint64(i), n))
	return fmt.Sprintf("%s/block_%04d/%s/weights", prefix, i, strings.ToLower(letters)[:n])
}

func (g *goldenTensor) tensor(t testing.TB) *Tensor {
	t.Helper()
	d := tfpb.DataType(tfpb.DataType_value[g.DType])
	out := &Tensor{DType: d, Shape: g.Shape}
	if d == tfpb.DataType_DT_STRING {
		for _, s := range g.Strings {
			b := unhex(t, s.Hex)
			if s.Fill != nil {
				b = s.Fill.bytes(s.Fill.NBytes)
			}
			out.Strings = append(out.Strings, b)
		}
		return out
	}
	if g.Fill == nil {
		out.Data = unhex(t, g.RawHex)
		return out
	}
	n, err := dtype.NumElements(g.Shape)
	if err != nil {
		t.Fatal(err)
	}
	out.Data = g.Fill.bytes(int(n * dtype.Size(d)))
	return out
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// save writes tensors as the SaveV2 op does.
func save(t testing.TB, prefix string, tensors []goldenTensor) {
	t.Helper()
	w, err := CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	addGolden(t, w, tensors)
}

// addGolden writes tensors and slices of them, and finishes the checkpoint.
func addGolden(t testing.TB, w interface {
	Add(name string, tensor *Tensor) error
	AddSlice(name string, fullShape []int64, s TensorSlice, tensor *Tensor) error
	Finish() error
	Close() error
}, tensors []goldenTensor) {
	t.Helper()
	defer w.Close()
	for _, g := range tensors {
		shape, slice, _, err := ParseShapeAndSlice(g.SliceSpec)
		if err != nil {
			t.Fatal(err)
		}
		if g.SliceSpec == "" {
			err = w.Add(g.name(t), g.tensor(t))
		} else {
			err = w.AddSlice(g.name(t), shape, slice, g.tensor(t))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
}

// compareFiles checks that a directory holds the files of a golden case, and
// nothing else.
func compareFiles(t *testing.T, dir, set string, c goldenCase) {
	t.Helper()
	var want []string
	for name, sum := range c.Files {
		base := filepath.Base(name)
		want = append(want, base)
		got, err := os.ReadFile(filepath.Join(dir, base))
		if err != nil {
			t.Error(err)
			continue
		}
		if hash(got) == sum {
			continue
		}
		golden, err := os.ReadFile(filepath.Join(fixtures, set, name))
		if err != nil {
			t.Errorf("%s: %d bytes are not TensorFlow's, which are not kept", base, len(got))
			continue
		}
		at := 0
		for at < min(len(got), len(golden)) && got[at] == golden[at] {
			at++
		}
		t.Errorf("%s: %d bytes, TensorFlow's %d; first difference at %d:\ngot  %x\nwant %x",
			base, len(got), len(golden), at, head(got[at:]), head(golden[at:]))
	}
	if got := list(t, dir); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("files %q, want %q", got, want)
	}
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func head(b []byte) []byte { return b[:min(len(b), 40)] }

// list returns the names in a directory, in order.
func list(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// tensorHash is how the manifests name the content of a tensor.
func tensorHash(t *Tensor) string {
	if !hasStrings(t.DType) {
		return hash(t.Data)
	}
	var b bytes.Buffer
	for _, s := range t.Strings {
		b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
		b.Write(s)
	}
	return hash(b.Bytes())
}
