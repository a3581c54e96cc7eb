package dcp_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dcp"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	"github.com/trainerd/trainerd/internal/membound"
	tfpb "github.com/trainerd/trainerd/proto"
)

// The words of a pickle.
const (
	none    = "N"
	module  = "torch.distributed.checkpoint.metadata"
	float32 = "ctorch\nfloat32\n"
	code    = "ctorch.serialization\n_get_layout\n(X\x0d\x00\x00\x00torch.stridedtR"
)

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func number(n int64) string {
	return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func tuple(items ...string) string { return "(" + strings.Join(items, "") + "t" }
func list(items ...string) string  { return "](" + strings.Join(items, "") + "e" }
func dict(items ...string) string  { return "}(" + strings.Join(items, "") + "u" }

func object(class, state string) string { return "c" + module + "\n" + class + "\n)\x81" + state + "b" }

func size(dims ...int64) string {
	var items []string
	for _, d := range dims {
		items = append(items, number(d))
	}
	return "ctorch\nSize\n(" + tuple(items...) + "tR"
}

// described returns .metadata that describes a tensor "w" and a number "n", with other words
// in some places.
func described(other map[string]string) string {
	word := func(place, usual string) string {
		if w, ok := other[place]; ok {
			return w
		}
		return usual
	}
	member := func(name, usual string) string { return word(name+":", text(name)+word(name, usual)) }
	chunk := object("ChunkStorageMetadata", dict(member("offsets", size(0)), member("sizes", size(2))))
	tensor := object("TensorStorageMetadata", dict(
		member("properties", object("TensorProperties", tuple(word("type", float32), code, "\x89"))),
		member("size", size(2)), member("chunks", list(chunk)),
	))
	info := func(which, path string, length string) string {
		return "ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n)\x81" + dict(
			word(which+"relative_path:", text("relative_path")+word(which+"relative_path", text(path))),
			word(which+"offset:", text("offset")+word(which+"offset", number(0))),
			word(which+"length:", text("length")+word(which+"length", length)), word(which+"more", ""),
		) + "b"
	}
	index := func(which, name, offset string) string {
		return object("MetadataIndex", dict(
			word(which+"fqn:", text("fqn")+word(which+"fqn", text(name))), text("offset")+word(which+"index", offset)))
	}
	return "\x80\x02" + object("Metadata", dict(
		member("state_dict_metadata", dict(
			word("name", text("w"))+word("w", tensor), text("n")+word("n", object("BytesStorageMetadata", dict())))),
		member("storage_data", dict(
			index("w ", "w", size(0))+info("w ", "w.distcp", word("length", "")),
			index("n ", "n", none)+info("n ", "n.distcp", word("n length", "")),
			word("m place", ""))),
		word("more", ""),
	)) + "."
}

// part is a tensor of bytes.
func part(d tfpb.DataType, foreign string, shape []int64, b string) ckptfmt.Part {
	p := ckptfmt.WholePart("w", d, shape, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(b)), nil })
	p.Foreign, p.Bytes = foreign, int64(len(b))
	return p
}

// folder writes a folder with a tensor and a number.
func folder(t *testing.T, of ckptfmt.Part, other map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	var w bytes.Buffer
	parts := []ckptfmt.Part{of}
	if other["two tensors"] != "" {
		second := of
		second.Name = "v"
		parts = append(parts, second)
	}
	if err := torch.Write(t.Context(), &w, parts); err != nil {
		t.Fatal(err)
	}
	n, err := torchArchive("\x80\x02K\x07.")
	if err != nil {
		t.Fatal(err)
	}
	usual := map[string]string{"length": number(int64(w.Len())), "n length": number(int64(len(n)))}
	maps.Copy(usual, other)
	for name, b := range map[string][]byte{"w.distcp": w.Bytes(), "n.distcp": n, dcp.MetadataName: []byte(described(usual))} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// torchArchive is what torch.save writes of something that is not a tensor.
func torchArchive(pickle string) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "archive/data.pkl", Method: zip.Store})
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(w, pickle); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// TestDescribed opens folders whose description has something else in one place.
func TestDescribed(t *testing.T) {
	plain := part(tfpb.DataType_DT_FLOAT, "", []int64{2}, "\x00\x00\x80\x3f\x00\x00\x00\x40")
	const outside, noPlace, noChunk = "is outside of shape", "its place has no file, offset or length", "a chunk has no offsets or sizes"
	property := func(state string) string { return object("TensorProperties", state) }
	named := func(class string) string { return text("more") + "c" + class + "\n(" + text("x") + "tR" }
	for name, c := range map[string]struct {
		in   map[string]string
		want string // in the error of Open or, after "read: ", of the tensor
	}{
		"as torch writes it":          {nil, ""},
		"not in shards":               {map[string]string{"w index": none}, ""},
		"properties in a dict":        {map[string]string{"properties": property(dict(text("dtype") + float32))}, ""},
		"properties of a type alone":  {map[string]string{"properties": property(tuple(float32))}, ""},
		"a scalar without offsets":    {map[string]string{"w index": none, "size": size(), "offsets:": "", "sizes": size()}, noChunk},
		"no name":                     {map[string]string{"name": text("")}, "pickle: a tensor has no name"},
		"a number for a name":         {map[string]string{"name": number(1)}, "pickle: a tensor has no name"},
		"no tensors":                  {map[string]string{"state_dict_metadata:": ""}, "pickle: it has no state_dict_metadata"},
		"no places":                   {map[string]string{"storage_data:": ""}, "pickle: it has no storage_data"},
		"a text for a tensor":         {map[string]string{"w": text("w")}, `tensor "w": it is neither a tensor nor bytes`},
		"another object":              {map[string]string{"w": property(dict())}, `tensor "w": it is neither a tensor nor bytes`},
		"no type":                     {map[string]string{"properties": property(tuple())}, `tensor "w": ckptfmt: wrong data type`},
		"no properties":               {map[string]string{"properties": none}, `tensor "w": ckptfmt: wrong data type`},
		"another word for a type":     {map[string]string{"type": "ctorch\nSize\n"}, `tensor "w": ckptfmt: wrong data type`},
		"no size":                     {map[string]string{"size:": ""}, `tensor "w": it has no size or chunks`},
		"a negative size":             {map[string]string{"size": size(-2)}, `tensor "w": it has no size or chunks`},
		"a text in a size":            {map[string]string{"size": tuple(text("2"))}, `tensor "w": it has no size or chunks`},
		"no chunks":                   {map[string]string{"chunks:": ""}, `tensor "w": it has no size or chunks`},
		"no chunk":                    {map[string]string{"chunks": "]"}, `tensor "w": it has no size or chunks`},
		"a text for a chunk":          {map[string]string{"chunks": list(text("x"))}, noChunk},
		"no offsets":                  {map[string]string{"offsets:": ""}, noChunk},
		"no sizes":                    {map[string]string{"sizes:": ""}, noChunk},
		"offsets of two dimensions":   {map[string]string{"offsets": size(0, 0)}, noChunk},
		"sizes of two dimensions":     {map[string]string{"sizes": size(2, 1)}, noChunk},
		"a chunk that is larger":      {map[string]string{"sizes": size(3)}, outside},
		"a chunk that begins further": {map[string]string{"offsets": size(1)}, outside},
		"two dimensions of none":      {map[string]string{"size": size(2, 1), "offsets": size(0, 2), "sizes": size(2, 0)}, outside},
		"chunks that are too few":     {map[string]string{"sizes": size(1)}, "the chunks have 1 elements, shape [2] does not"},
		"a giant shape":               {map[string]string{"w index": none, "size": size(1<<32, 1<<32), "offsets": size(0, 0), "sizes": size(0, 0)}, "the chunks have 0 elements"},
		"a giant chunk":               {map[string]string{"w index": none, "size": size(1<<32, 1<<32), "offsets": size(0, 0), "sizes": size(1<<32, 1<<32)}, "is larger than its piece"},
		"a chunk of 2^62":             {map[string]string{"size": size(1 << 62), "sizes": size(1 << 62)}, "is larger than its piece"},
		"of a type of no size, more":  {map[string]string{"type": "ctorch\nfloat9_x\n", "size": size(1<<50 + 1), "sizes": size(1<<50 + 1)}, "is larger than its piece"},
		"of a type of no size":        {map[string]string{"type": "ctorch\nfloat9_x\n", "size": size(1 << 50), "sizes": size(1 << 50)}, "read: it is of torch.float9_x"},
		"a piece that is too small":   {map[string]string{"length": number(7)}, "a chunk of shape [2] is larger than its piece of 7 bytes"},
		"a piece of just elements":    {map[string]string{"length": number(8)}, `read: tensor "w": `},
		"another chunk":               {map[string]string{"w index": size(1)}, "nothing says where the chunk at [0] is"},
		"another chunk, not in shards": {
			map[string]string{"w index": none, "size": size(3), "offsets": size(1)},
			"nothing says where the chunk at [1] is",
		},
		"no place of the number":     {map[string]string{"n fqn": text("m")}, `tensor "n": nothing says where it is`},
		"a place without name":       {map[string]string{"w fqn:": ""}, noPlace},
		"a place without file":       {map[string]string{"w relative_path:": ""}, noPlace},
		"a place without offset":     {map[string]string{"w offset:": ""}, noPlace},
		"a place without length":     {map[string]string{"w length:": ""}, noPlace},
		"a negative offset":          {map[string]string{"w offset": number(-1)}, noPlace},
		"a negative length":          {map[string]string{"w length": number(-1)}, `tensor "w": ` + noPlace},
		"no length at all":           {map[string]string{"n length": number(0)}, ""},
		"an index that is a text":    {map[string]string{"w index": text("0")}, `tensor "w": a chunk has no offsets`},
		"beyond the file":            {map[string]string{"w offset": number(1)}, `read: at 1 of w.distcp, which has `},
		"far beyond":                 {map[string]string{"w offset": number(1<<63 - 1)}, `read: at 9223372036854775807 of w.distcp`},
		"longer than the file":       {map[string]string{"w length": number(1 << 62)}, `read: tensor "w": it has 4611686018427387904 bytes at 0 of w.distcp`},
		"in another folder":          {map[string]string{"w relative_path": text("../w.distcp")}, `"../w.distcp" is not a file of the folder`},
		"in a folder below":          {map[string]string{"w relative_path": text("a/w.distcp")}, `"a/w.distcp" is not a file of the folder`},
		"below, on Windows":          {map[string]string{"w relative_path": text(`a\w.distcp`)}, `is not a file of the folder`},
		"the folder itself":          {map[string]string{"w relative_path": text(".")}, `"." is not a file of the folder`},
		"a file without name":        {map[string]string{"w relative_path": text("")}, `"" is not a file of the folder`},
		"a name that cannot be":      {map[string]string{"w relative_path": text("w\x00")}, `tensor "w": stat `},
		"a file that is gone":        {map[string]string{"w relative_path": text("v.distcp")}, "read: v.distcp: "},
		"gone, at a giant offset":    {map[string]string{"w relative_path": text("v.distcp"), "w offset": number(1 << 60)}, "read: v.distcp: "},
		"compressed":                 {map[string]string{"w more": text("transform_descriptors") + list()}, "read: "},
		"of another type":            {map[string]string{"type": "ctorch\nint32\n"}, "read: the piece is not one tensor of int32 and shape [2]"},
		"of another shape":           {map[string]string{"size": size(1), "sizes": size(1)}, "read: the piece is not one tensor of float32 and shape [1]"},
		"two in a piece":             {map[string]string{"two tensors": "x"}, "read: the piece is not one tensor of float32 and shape [2]"},
		"an object of a type":        {map[string]string{"more": text("more") + float32 + ")\x81"}, "an object of torch.float32 is made"},
		"an object of arguments":     {map[string]string{"more": text("more") + "c" + module + "\nMetadata\n(" + number(1) + "t\x81"}, "metadata.Metadata is made"},
		"a call of a type":           {map[string]string{"more": named("torch\nfloat32")}, "torch.float32 is called"},
		"a call of something else":   {map[string]string{"more": named("os\nsystem")}, "os.system"},
		"a size of a list":           {map[string]string{"size": "ctorch\nSize\n(" + list(number(2)) + "tR"}, ""},
		"a size of nothing":          {map[string]string{"more": text("more") + "ctorch\nSize\n)R"}, ""},
		"a path":                     {map[string]string{"more": named("pathlib\nPosixPath")}, ""},
		"a pure path":                {map[string]string{"more": named("pathlib\nPurePosixPath")}, ""},
		"a path of Windows":          {map[string]string{"more": named("pathlib\nWindowsPath")}, ""},
		"a path of Python 3.13":      {map[string]string{"more": named("pathlib._local\nPosixPath")}, ""},
		"one of Windows and 3.13":    {map[string]string{"more": named("pathlib._local\nWindowsPath")}, ""},
		"an order in memory":         {map[string]string{"more": named(module + "\n_MEM_FORMAT_ENCODING")}, ""},
		"about the storage":          {map[string]string{"more": text("storage_meta") + object("StorageMeta", dict())}, ""},
		"attributes that are a text": {map[string]string{"w": object("TensorStorageMetadata", text("x"))}, `tensor "w": it is neither a tensor nor bytes`},
	} {
		dir := folder(t, plain, c.in)
		r, err := dcp.Open(dir)
		if want, ofTensor := strings.CutPrefix(c.want, "read: "); ofTensor && err == nil {
			_, err = r.Parts()[0].Load()
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: read: got %v, want %q", name, err, want)
			}
			continue
		}
		switch isRefused := errors.As(err, new(*torch.RefusedError)); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Join(dir, dcp.MetadataName))):
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		case err != nil && !isRefused && !errors.As(err, new(*ckptfmt.CorruptError)) && name != "a name that cannot be":
			t.Errorf("%s: an error of type %T", name, err)
		case err == nil:
			got, err := r.Parts()[0].Load()
			if err != nil || string(got.Data) != "\x00\x00\x80\x3f\x00\x00\x00\x40" {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
}

// TestSharedChunks has chunks and shapes that take a few bytes each, because they are all the same.
func TestSharedChunks(t *testing.T) {
	const dims, chunks = 2000, 20_000
	ones := tuple(strings.Repeat("K\x00", dims))
	chunk := object("ChunkStorageMetadata", dict(text("offsets")+ones+"q\x01", text("sizes")+"h\x01"))
	dir := folder(t, part(tfpb.DataType_DT_FLOAT, "", []int64{2}, "12345678"), map[string]string{
		"w index": none, "size": ones, "chunks": list(chunk + "q\x02" + strings.Repeat("h\x02", chunks)),
	})
	defer membound.Check(t, chunks, 100)()
	if _, err := dcp.Open(dir); !errors.As(err, new(*ckptfmt.CorruptError)) {
		t.Errorf("got %v", err)
	}
}

// TestChunksOfForeignTypes have as many bytes as their type says.
func TestChunksOfForeignTypes(t *testing.T) {
	r, err := dcp.Open(folder(t, part(0, "complex32", []int64{2}, "abcdefgh"), map[string]string{"type": "ctorch\ncomplex32\n"}))
	if err != nil {
		t.Fatal(err)
	}
	p := r.Parts()[0]
	if n, err := p.Size(); n != 8 || err != nil || p.TypeName() != "complex32" {
		t.Errorf("%d bytes of %s, %v", n, p.TypeName(), err)
	}
	if got, err := p.Load(); err != nil || string(got.Data) != "abcdefgh" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestObjects are verified like tensors, and metadata if they are numbers or texts.
func TestObjects(t *testing.T) {
	plain := part(tfpb.DataType_DT_FLOAT, "", []int64{2}, "12345678")
	dir := folder(t, plain, nil)
	before := descriptors()
	r, err := dcp.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if after := descriptors(); after != before {
		t.Errorf("%d files are open, and %d were", after, before)
	}
	if got := r.Metadata(); !maps.Equal(got, map[string]string{"n": "7"}) {
		t.Errorf("metadata is %v", got)
	}
	want := []string{filepath.Join(dir, dcp.MetadataName), filepath.Join(dir, "n.distcp"), filepath.Join(dir, "w.distcp")}
	if got := r.Files(); !slices.Equal(got, want) {
		t.Errorf("files are %q, want %q", got, want)
	}
	for name, c := range map[string]struct {
		pickle, want string
		metadata     map[string]string
	}{
		"a dict":     {"\x80\x02" + dict(text("a")+number(1), text("b")+text("x")) + ".", "", map[string]string{"n.a": "1", "n.b": "x"}},
		"refused":    {"\x80\x02cos\nsystem\n.", "", nil},
		"no archive": {"", `object "n": `, nil},
	} {
		n, err := torchArchive(c.pickle)
		if err != nil {
			t.Fatal(err)
		}
		if c.pickle == "" {
			n = []byte("PK")
		}
		dir := folder(t, plain, map[string]string{"n length": number(int64(len(n)))})
		if err := os.WriteFile(filepath.Join(dir, "n.distcp"), n, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := dcp.Open(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := r.Metadata(); !maps.Equal(got, c.metadata) {
			t.Errorf("%s: metadata is %v", name, got)
		}
		var found []string
		for name, err := range r.Verify(t.Context()) {
			if err != nil {
				found = append(found, name+err.Error())
			}
		}
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0], c.want)) {
			t.Errorf("%s: verify finds %q, want %q", name, found, c.want)
		}
	}
}

// descriptors returns how many files are open, where the system says so.
func descriptors() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

// TestClosedElements are not read any more, and the file is closed.
func TestClosedElements(t *testing.T) {
	r, err := dcp.Open(folder(t, part(tfpb.DataType_DT_FLOAT, "", []int64{2}, "12345678"), nil))
	if err != nil {
		t.Fatal(err)
	}
	p := r.Parts()[0]
	elements, err := p.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := elements.Close(); err != nil {
		t.Error(err)
	}
	if _, err := elements.Read(make([]byte, 4)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestVerifyEnds when it is cancelled, also between objects, and when nobody listens.
func TestVerifyEnds(t *testing.T) {
	dir := folder(t, part(tfpb.DataType_DT_FLOAT, "", []int64{2}, "12345678"), map[string]string{
		"n": object("BytesStorageMetadata", dict()) + text("m") + object("BytesStorageMetadata", dict()),
		"m place": object("MetadataIndex", dict(text("fqn")+text("m"))) +
			"ctorch.distributed.checkpoint.filesystem\n_StorageInfo\n)\x81" +
			dict(text("relative_path")+text("n.distcp"), text("offset")+number(0), text("length")+number(2)) + "b",
		"n length": number(2),
	})
	if err := os.WriteFile(filepath.Join(dir, "n.distcp"), []byte("PK"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := dcp.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	damaged := func(ctx context.Context, until func(name string) bool) (errs []error) {
		for name, err := range r.Verify(ctx) {
			if err != nil {
				errs = append(errs, err)
			}
			if until(name) {
				break
			}
		}
		return errs
	}
	never := func(string) bool { return false }
	if errs := damaged(t.Context(), never); len(errs) != 2 {
		t.Errorf("two objects are damaged: %v", errs)
	}
	if errs := damaged(t.Context(), func(name string) bool { return name == "" }); len(errs) != 1 {
		t.Errorf("until the first: %v", errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	errs := damaged(ctx, func(name string) bool {
		if name == "w" {
			cancel()
		}
		return false
	})
	if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("cancelled: %v", errs)
	}
}

// TestUnreadableMetadata is not damage.
func TestUnreadableMetadata(t *testing.T) {
	dir := t.TempDir()
	if _, err := dcp.Open(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, dcp.MetadataName), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := dcp.Open(dir)
	if path := new(os.PathError); !errors.As(err, &path) {
		t.Errorf("a folder: %v", err)
	}
}
