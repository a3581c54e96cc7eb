package integrity_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"

	"github.com/trainerd/trainerd/ckptfmt"
	hdf5file "github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/integrity"
)

// archive returns a zip archive; with summed its entries have checksums.
func archive(t *testing.T, summed bool) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{"archive/data.pkl", "archive/data/0"} {
		text := []byte(strings.Repeat(name, 20))
		h := &zip.FileHeader{Name: name, CompressedSize64: uint64(len(text)), UncompressedSize64: uint64(len(text))}
		if summed {
			h.CRC32 = crc32.ChecksumIEEE(text)
		}
		f, err := w.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hdf5 returns a file of that many bytes with a superblock at the offset at,
// which says that the file ends at end.
func hdf5(at, size, version int, width byte, end uint64) string {
	b := make([]byte, max(size, at+48))
	copy(b[at:], "\x89HDF\r\n\x1a\n")
	b[at+8] = byte(version)
	widthAt, endAt := 13, 40
	if version >= 2 {
		widthAt, endAt = 9, 28
	}
	b[at+widthAt] = width
	binary.LittleEndian.PutUint64(b[at+endAt:], end)
	return string(b[:size])
}

// closed returns a whole HDF5 file, and one whose headers were not written.
func closed(t *testing.T) (whole, torn string) {
	t.Helper()
	var b bytes.Buffer
	if err := hdf5file.Write(t.Context(), &b, nil, hdf5file.Attrs{"layers": {"name": "dense"}}); err != nil {
		t.Fatal(err)
	}
	whole = b.String()
	return whole, whole[:96] + strings.Repeat("\x00", len(whole)-96)
}

// latest returns a whole HDF5 file of the newest form, and one whose last dataset has
// no header.
func latest(t *testing.T) (whole, torn string) {
	t.Helper()
	b, err := os.ReadFile("../../fixtures/hdf5/latest.h5")
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(b, []byte("OHDR"))
	return string(b), string(b[:at]) + "\x00\x00\x00\x00" + string(b[at+4:])
}

// array returns a .npy file of a version with a header and that much data.
func array(version byte, header string, data int) string {
	b := []byte("\x93NUMPY" + string(version) + "\x00")
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	}
	return string(b) + header + strings.Repeat("d", data)
}

// tensorsOf returns a .safetensors file.
func tensorsOf(header string, data int) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header + strings.Repeat("d", data)
}

// tree returns the manifest of a key-value store of tensorstore, which orbax writes to.
func tree(content string) string {
	b := binary.BigEndian.AppendUint32(nil, 0x0cdb3a2a)
	b = append(binary.LittleEndian.AppendUint64(b, uint64(len(content)+16)), content...)
	return string(binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}

const floats = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"

// A file of a known format that is not whole is damage, and one that is whole, or
// that says nothing of its length, is not.
func TestFiles(t *testing.T) {
	zipped, unsummed := archive(t, true), archive(t, false)
	whole, torn := closed(t)
	newest, unclosed := latest(t)
	flipped := []byte(zipped)
	flipped[60] ^= 1
	zeros := strings.Repeat("\x00", 600)
	sized := func(n int) string { // in the directory of the archive
		b := []byte(unsummed)
		binary.LittleEndian.PutUint32(b[bytes.Index(b, []byte("PK\x01\x02"))+20:], uint32(n))
		return string(b)
	}
	for _, tt := range []struct{ name, file, content, want string }{
		{"text", "a.txt", "any", ""},
		{"empty text", "a.txt", "", ""},
		{"LightGBM", "a.txt", "tree\nversion=v4\n\nTree=0\nleaf_value=" + strings.Repeat("0.5 ", 2000) + "\n\nend of trees\n\nparameters:\n[boosting: gbdt]\nend of parameters\n", ""},
		{"LightGBM without parameters", "model_20", "tree\nversion=v2\nend of trees\n", ""},
		{"LightGBM, cut in a tree", "a.txt", "tree\nversion=v4\n\nTree=0\nleaf_value=0.5 0.", "it ends too early"},
		{"LightGBM, cut in its parameters", "a.model", "tree\nversion=v4\nend of trees\nparameters:\n[boosting: gbdt]\nend of", "it ends too early"},
		{"empty mark", "_SUCCESS", "", ""},
		{"empty data", "a.bin", "", "it is empty"},

		{"zeros", "a.pt", zeros, "it begins with zeros"},
		{"zeros of one sector", "a.pth", zeros[:512] + "x", "it begins with zeros"},
		{"zeros, then data", "a.pth", zeros[:511] + "x", ""},
		{"zeros of a file that may have numbers", "a.bin", zeros, "it begins with zeros"},
		{"many of them", "a.ckpt", strings.Repeat("\x00", 300<<10), "it begins with zeros"},
		{"zeros, then numbers", "a.bin", zeros + "x" + zeros, ""},
		{"zeros, then a number at the end", "a.model", strings.Repeat("\x00", 300<<10) + "x", ""},
		{"zeros of another format", "a.dat", zeros, ""},

		{"zip", "a.pt", zipped, ""},
		{"zip without entries", "a.npz", "PK\x05\x06" + zeros[:18], ""},
		{"zip without entries, cut", "a.npz", "PK\x05\x06" + zeros[:17], "zip: not a valid zip file"},
		{"zip, cut", "a.pt", zipped[:len(zipped)-1], "zip"},
		{"zip, flipped", "a.pt", string(flipped), "archive/data.pkl: zip: checksum error"},
		{"zip without checksums", "a.pt", unsummed, ""},
		{"zip without checksums, flipped", "a.pt", strings.Replace(unsummed, "data.pklarchive", "data.pklarchivX", 1), ""},
		{"keras", "a.keras", zipped, ""},
		{"npz that is none", "a.npz", "nothing", "it is not a zip archive"},
		{"zip that is none", "a.zip", "nothing", "it is not a zip archive"},
		{"torch of the old form", "a.pt", "\x80\x02.anything", ""},

		{"zip without checksums, entry to the end", "a.pt", sized(len(unsummed) - 46), ""},
		{"zip without checksums, entry beyond the end", "a.pt", sized(len(unsummed) - 45), "archive/data.pkl: it ends too early"},
		{"zip without checksums, an entry overwritten", "a.pt", unsummed[:100] + strings.Replace(unsummed[100:], "PK\x03\x04", "xxxx", 1), "archive/data/0: it ends too early"},

		{"shard", "a.distcp", zipped, ""},
		{"shard, cut", "a.distcp", zipped[:len(zipped)-1], "it ends too early"},
		{"shard of 21 bytes", "a.distcp", "PK\x03\x04" + strings.Repeat("x", 17), "it ends too early"},
		{"shard of 22 bytes", "a.distcp", "PK\x03\x04" + strings.Repeat("x", 18), "it ends too early"},
		{"shard of another kind", "a.distcp", "other", ""},

		{"manifest of orbax", "manifest.ocdbt", tree("a tree"), ""},
		{"manifest of orbax, long", "manifest.ocdbt", tree(strings.Repeat("a tree", 20_000)), ""},
		{"manifest of orbax without a node", "manifest.ocdbt", tree(""), ""},
		{"manifest of orbax, cut", "manifest.ocdbt", tree("a tree")[:21], "says 22 bytes, and there are 21"},
		{"manifest of orbax, cut in its head", "manifest.ocdbt", tree("a tree")[:15], "it ends too early"},
		{"manifest of orbax, longer", "manifest.ocdbt", tree("a tree") + "x", "says 22 bytes, and there are 23"},
		{"manifest of orbax, flipped", "manifest.ocdbt", strings.Replace(tree("a tree"), "tree", "trees"[1:], 1), "its checksum is wrong"},
		{"manifest of orbax, of zeros", "manifest.ocdbt", zeros, "it begins with zeros"},
		{"manifest of orbax of another kind", "manifest.ocdbt", "another", ""},

		{"hdf5", "a.h5", whole, ""},
		{"hdf5, longer", "a.h5", whole + "x", ""},
		{"hdf5, not closed", "a.h5", torn, "header of an object"},
		{"hdf5 by another name, not closed", "model", torn, "header of an object"},
		{"hdf5, cut", "a.h5", hdf5(0, 99, 0, 8, 100), "says 100 bytes, and there are 99"},
		{"hdf5 of the newest form", "a.hdf5", newest, ""},
		{"hdf5 of the newest form, not closed", "a.hdf5", unclosed, "header of an object"},
		{"hdf5, version 2, cut", "a.hdf5", hdf5(0, 48, 2, 8, 49), "it ends too early"},
		{"hdf5, version 3, cut", "a.keras", hdf5(0, 48, 3, 8, 49), "it ends too early"},
		{"hdf5, addresses of 4 bytes", "a.h5", hdf5(0, 100, 0, 4, 1000), ""},
		{"hdf5, version 2, addresses of 4 bytes", "a.h5", hdf5(0, 100, 2, 4, 1000), ""},
		{"hdf5, version 3, addresses of 4 bytes", "a.h5", hdf5(0, 100, 3, 4, 1000), ""},
		{"hdf5, another version", "a.h5", hdf5(0, 100, 9, 8, 1000), ""},
		{"hdf5 after a user block", "a.h5", hdf5(512, 700, 9, 8, 700), ""},
		{"hdf5 after a user block, cut", "a.h5", hdf5(512, 700, 0, 8, 701), "it ends too early"},
		{"hdf5 after a larger user block, cut", "a.h5", hdf5(1024, 1100, 0, 8, 2000), "it ends too early"},
		{"hdf5 after the largest user block, cut", "a.h5", hdf5(1<<20, 1<<20+48, 0, 8, 2<<20), "it ends too early"},
		{"hdf5 where none can be", "a.h5", hdf5(256, 700, 0, 8, 700), "it is not an HDF5 file"},
		{"hdf5 of 47 bytes", "a.h5", hdf5(0, 47, 0, 8, 47), "it is not an HDF5 file"},

		{"array", "a.npy", array(1, floats, 24), ""},
		{"array, cut", "a.npy", array(1, floats, 23), "it ends too early"},
		{"array, longer", "a.npy", array(1, floats, 25), ""},
		{"array, version 2", "a.npy", array(2, floats, 24), ""},
		{"array, version 2, cut", "a.npy", array(2, floats, 23), "it ends too early"},
		{"array, header cut", "a.npy", array(1, floats, 0)[:68], "it ends too early"},
		{"array of 9 bytes", "a.npy", "\x93NUMPY\x01\x00\x00", "it ends too early"},
		{"array of 10 bytes", "a.npy", "\x93NUMPY\x01\x00\x00\x00", ""},
		{"array, version 2, of 11 bytes", "a.npy", "\x93NUMPY\x02\x00\x00\x00\x00", "it ends too early"},
		{"array, version 2, of 12 bytes", "a.npy", "\x93NUMPY\x02\x00\x00\x00\x01\x00", "it ends too early"},
		{"array, version 2, without a header", "a.npy", "\x93NUMPY\x02\x00\x00\x00\x00\x00", ""},
		{"array, almost the signature", "a.npy", "\x93NUMPX\x01\x00\xff\xff", ""},
		{"array of records, header cut", "a.npy", array(1, "{'descr': [('a', '<f4')], 'shape': (2,)}", 0)[:30], "it ends too early"},
		{"array, signature cut", "a.npy", "\x93NU", "it ends too early"},
		{"array that is none", "a.npy", "nothing at all", ""},
		{"another file with an array", "a.arr", array(1, floats, 0), ""},
		{"array of text", "a.npy", array(1, "{'descr': '<U3', 'shape': (2,)}", 24), ""},
		{"array of text, cut", "a.npy", array(1, "{'descr': '<U3', 'shape': (2,)}", 23), "it ends too early"},
		{"array of times", "a.npy", array(1, "{'descr': '<M8[ns]', 'shape': (2,)}", 16), ""},
		{"array of times, cut", "a.npy", array(1, "{'descr': '<M8[ns]', 'shape': (2,)}", 15), "it ends too early"},
		{"array of days, cut", "a.npy", array(1, "{'descr': '<m8[7D]', 'shape': (2,)}", 15), "it ends too early"},
		{"array of one number", "a.npy", array(1, "{'descr': '<f8', 'shape': ()}", 8), ""},
		{"array of one number, cut", "a.npy", array(1, "{'descr': '<f8', 'shape': ()}", 7), "it ends too early"},
		{"empty array", "a.npy", array(1, "{'descr': '<f8', 'shape': (0, 9)}", 0), ""},
		{"array too large for any file", "a.npy", array(1, "{'descr': '<f8', 'shape': (9223372036854775807, 9)}", 8), "it ends too early"},
		{"array too large for a number", "a.npy", array(1, "{'descr': '<f8', 'shape': (99999999999999999999,)}", 8), "it ends too early"},
		{"array of records", "a.npy", array(1, "{'descr': [('a', '<f4')], 'shape': (2,)}", 0), ""},

		{"pickle", "a.pkl", "\x80\x02.", ""},
		{"pickle, cut", "a.pkl", "\x80\x02N", "it ends too early"},
		{"pickle, protocol 5, cut", "a.pickle", "\x80\x05N", "it ends too early"},
		{"joblib, cut within an array", "a.joblib", "\x80\x04N\x00\x01", "it ends too early"},
		{"pickle under PyTorch's name, cut", "a.pt", "\x80\x04N", "it ends too early"},
		{"pickle under PyTorch's name", "a.pt", "\x80\x04N.", ""},
		{"of PyTorch 1.5", "a.pth", "\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.\x80\x02}.\x80\x02].", ""},
		{"of PyTorch 1.5, cut", "a.pth", "\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02N", "it ends too early"},
		{"of PyTorch 1.5, with others", "a.pth", "\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02cos\nsystem\n)R", ""},
		{"joblib", "a.joblib", "\x80\x04N\x00\x01.", ""},
		{"joblib, compressed", "a.joblib", "x\x9c\x03\x00\x00\x00\x00\x01", ""},
		{"joblib, compressed and cut", "a.joblib", "x\x9c\x01", "it ends too early"},
		{"pickle of 2 bytes", "a.pkl", "\x80\x04", "it ends too early"},
		{"pickle of 1 byte", "a.pkl", "\x80", ""},
		{"pickle, protocol 6", "a.pkl", "\x80\x06N", ""},
		{"pickle, protocol 1", "a.pkl", "\x80\x01N", ""},
		{"pickle, protocol 0", "a.pkl", "(lp0", ""},
		{"pickle of torch's metadata, cut", "x/.metadata", "\x80\x04N", "it ends too early"},
		{"pickle under another name", "a.obj", "\x80\x04N", ""},

		{"JSON", "a.json", `{"a": [1, {"b": "]}\"{"}], "c": NaN}`, ""},
		{"JSON, cut", "a.json", `{"a": [1]`, "it ends too early"},
		{"JSON, cut in a list", "a.json", `[1, 2`, "it ends too early"},
		{"JSON, cut in a string", "a.json", `"abc`, "it ends too early"},
		{"JSON, cut after an escape", "a.json", `"abc\"`, "it ends too early"},
		{"JSON, backslash at the end of a string", "a.json", `"abc\\"`, ""},
		{"JSON with zeros at the end", "a.json", `{"a": 1}` + "\x00\x00", "it begins with zeros"},
		{"JSON with a zero in a string", "a.json", "\"\x00\"", ""},
		{"long JSON", "a.json", "[" + strings.Repeat("1,", 20000) + "1]", ""},
		{"long JSON, cut", "a.json", "[" + strings.Repeat("1,", 20000), "it ends too early"},

		{"tensors", "a.safetensors", tensorsOf(`{"a":{"data_offsets":[4,8]},"b":{"data_offsets":[0,4]}}`, 8), ""},
		{"tensors, cut", "a.safetensors", tensorsOf(`{"a":{"data_offsets":[0,8]}}`, 7), "says 8 bytes of tensors, and there are 7"},
		{"tensors, longer", "a.safetensors", tensorsOf(`{"a":{"data_offsets":[0,8]}}`, 9), "says 8 bytes of tensors, and there are 9"},
		{"no tensors", "a.safetensors", tensorsOf(`{}`, 0), ""},
		{"tensors, header not JSON", "a.safetensors", tensorsOf(`{"a":{`, 8), "its header is damaged"},
		{"tensors, header cut", "a.safetensors", tensorsOf(`{}`, 0)[:9], "it ends too early"},
		{"tensors of 7 bytes", "a.safetensors", "1234567", "it ends too early"},
		{"tensors, huge header", "a.safetensors", "\xff\xff\xff\xff\xff\xff\xff\x7f{}", "it ends too early"},
		{"tensors, negative header", "a.safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}", "it ends too early"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, map[string]string{tt.file: tt.content}, []string{strings.Split(tt.file, "/")[0]}, tt.want)
		})
	}
}

// check holds what is said of a checkpoint against what is wanted; "" is no
// damage.
func check(t *testing.T, files map[string]string, names []string, want string) {
	t.Helper()
	err := integrity.Check(t.Context(), rootOf(t, files), names, nil)
	if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
		t.Errorf("%v; want %q", err, want)
	}
	if ckptdir.IsUnreadable(err) {
		t.Errorf("%v is taken for an error of the system", err)
	}
}

// A folder lacks a file that another of its files names, or that the program
// writes last.
func TestFolderForms(t *testing.T) {
	const index = `{"weight_map": {"a": "m-1.bin", "b": "m-2.bin"}}`
	shards := func(prefix, suffix string, numbers ...string) map[string]string {
		files := map[string]string{}
		for _, n := range numbers {
			files["c/"+prefix+n+suffix] = "x"
		}
		return files
	}
	with := func(files map[string]string, more ...string) map[string]string {
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	ranks := func(names ...string) map[string]string {
		files := map[string]string{}
		for _, n := range names {
			files["c/"+n+"_optim_states.pt"] = "x"
		}
		return files
	}
	var elevenWithout5 []string
	for i := range 11 {
		if i != 5 {
			elevenWithout5 = append(elevenWithout5, fmt.Sprintf("zero_pp_rank_%d_mp_rank_00", i))
		}
	}
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"index", with(shards("m-", ".bin", "1", "2"), "c/m.index.json", index), ""},
		{"index names a missing shard", with(shards("m-", ".bin", "1"), "c/m.index.json", index), "c: m.index.json names m-2.bin for b, which is missing"},
		{"index is no object", with(shards("m-", ".bin", "1"), "c/m.index.json", `["a"]`), ""},
		{"index is damaged", with(shards("m-", ".bin", "1"), "c/m.index.json", `{"weight_map" 1}`), "m.index.json: "},
		{"index in a folder below", with(shards("m-", ".bin", "1"), "c/d/m.index.json", index), "c/d: m.index.json names"},

		{"numbered", shards("x-", "-of-00003.bin", "00001", "00002", "00003"), ""},
		{"numbered, one missing", shards("x-", "-of-00003.bin", "00001", "00003"), "1 of 3 files x-NNNNN-of-00003.bin are missing"},
		{"numbered, of two kinds", with(shards("x-", "-of-00002.bin", "00001", "00002"), "c/y-00001-of-00002.bin", "x"), "1 of 2 files y-NNNNN-of-00002.bin are missing"},
		{"transformers without its index", shards("model-", "-of-00002.safetensors.x", "00001", "00002"), "model.safetensors.x.index.json is missing"},
		{"torch without its index", shards("pytorch_model-", "-of-00001.bin", "00001"), "pytorch_model.bin.index.json is missing"},
		{"torch with its index", with(shards("pytorch_model-", "-of-00001.bin", "00001"), "c/pytorch_model.bin.index.json", "{}"), ""},
		{"another model without an index", shards("diffusion_model-", "-of-00001.bin", "00001"), ""},

		{"distributed without .metadata", shards("__", "_0.distcp", "0"), ".metadata is missing, which is written last"},
		{"distributed, a shard missing", with(shards("__", "_0.distcp", "0"), "c/.metadata", "\x80\x04 __0_0.distcp __1_0.distcp."), "__1_0.distcp is missing, which .metadata names"},
		{"distributed, .metadata of a class that is not known", with(shards("__", "_0.distcp", "0"), "c/.metadata", "\x80\x04__0_0.distcp."), ""},

		{"orbax", with(shards("x", "", "1"), "c/_CHECKPOINT_METADATA", `{"commit_timestamp_nsecs": 5}`), ""},
		{"orbax, not committed", with(shards("x", "", "1"), "c/_CHECKPOINT_METADATA", `{"commit_timestamp_nsecs": null}`), "has no time of a commit"},
		{"orbax, without a time", with(shards("x", "", "1"), "c/_CHECKPOINT_METADATA", `{}`), ""},
		{"orbax, damaged", with(shards("x", "", "1"), "c/_CHECKPOINT_METADATA", `{"a" 1}`), "_CHECKPOINT_METADATA: "},
		{"orbax's name for something else", with(shards("x", "", "1"), "c/_CHECKPOINT_METADATA", `[1]`), ""},
		{"orbax without its manifest", map[string]string{"c/ocdbt.process_0/d/1": "x"}, "manifest.ocdbt is missing"},
		{"orbax with its manifest", map[string]string{"c/ocdbt.process_0/d/1": "x", "c/manifest.ocdbt": "x"}, ""},
		{"orbax without _METADATA", map[string]string{"c/manifest.ocdbt": "x", "c/_sharding": "x"}, "_METADATA is missing"},
		{"orbax with _METADATA", map[string]string{"c/manifest.ocdbt": "x", "c/_sharding": "x", "c/_METADATA": "{}"}, ""},
		{"orbax without sharding", map[string]string{"c/manifest.ocdbt": "x"}, ""},
		{"sharding of another program", map[string]string{"c/_sharding": "x"}, ""},

		{"latest", map[string]string{"c/latest": "step_5\n", "c/step_5/a": "x"}, ""},
		{"latest names a file", map[string]string{"c/latest": "step_5", "c/step_5": "x"}, ""},
		{"latest names what is missing", map[string]string{"c/latest": "step_5", "c/step_55/a": "x"}, "step_5 is missing, which latest names"},
		{"latest is a path", map[string]string{"c/latest": "/a/b", "c/x": "x"}, ""},
		{"latest is white space", map[string]string{"c/latest": "\n", "c/x": "x"}, ""},

		{"ranks", ranks("zero_pp_rank_0_mp_rank_00", "bf16_zero_pp_rank_1_mp_rank_00"), ""},
		{"rank missing", ranks("zero_pp_rank_0_mp_rank_00", "zero_pp_rank_2_mp_rank_00"), "1 of 3 files zero_pp_rank_N_mp_rank_00_optim_states.pt are missing"},
		{"rank missing in one of two", ranks("zero_pp_rank_0_mp_rank_00", "zero_pp_rank_1_mp_rank_00", "zero_pp_rank_0_mp_rank_01"), "1 of 2 files zero_pp_rank_N_mp_rank_01"},
		{"rank 5 of eleven missing", ranks(elevenWithout5...), "1 of 11 files"},
		{"rank 0 missing", ranks("zero_pp_rank_1_mp_rank_00"), "1 of 2 files"},

		{"bundle", map[string]string{"c/m.data-00000-of-00001": "x"}, "c/m.index is missing, which is written last"},
		{"bundle, damaged", map[string]string{"c/m.data-00000-of-00001": "x", "c/m.index": "x"}, "m.index"},
		{"MetaGraph alone", map[string]string{"c/m.meta": "x"}, ""},
		{"empty MetaGraph", map[string]string{"c/m.meta": ""}, ""},
		{"unfinished", map[string]string{"c/m.bin.tmp": "x"}, "c/m.bin.tmp: a file with a temporary name"},
		{"no files", map[string]string{"d/x": "x"}, "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, tt.files, []string{"c"}, tt.want) })
	}
}

// DeepSpeed writes the file latest, next to the folders of its steps, when all
// processes have saved theirs.
func TestDeepSpeedLatest(t *testing.T) {
	for _, tt := range []struct{ latest, folder, want string }{
		{"global_step10", "global_step10", ""},
		{"global_step11\n", "global_step10", ""},
		{"global_step9", "global_step10", "the file latest still names global_step9"},
		{"step9", "global_step10", ""},
		{"global_step9", "step10", ""},
		{"global_step99999999999999999999", "global_step10", ""},
		{"global_step9", "global_step99999999999999999999", ""},
		{"", "global_step10", ""},
	} {
		files := map[string]string{"run/" + tt.folder + "/a": "x", "run/latest": tt.latest}
		if tt.latest == "" {
			delete(files, "run/latest")
		}
		check(t, files, []string{"run/" + tt.folder}, tt.want)
	}
	// Of a checkpoint of several parts nothing is known.
	check(t, map[string]string{"run/global_step10/a": "x", "run/b": "x", "run/latest": "global_step9"}, []string{"run/global_step10", "run/b"}, "")
}

// What cannot be read is not damage, and neither is a check that was cancelled.
func TestNotDamage(t *testing.T) {
	for _, name := range []string{"m.index.json", ".metadata", "_CHECKPOINT_METADATA", "latest"} {
		root := rootOf(t, map[string]string{"c/x": "x"})
		file := filepath.Join(root.Name(), "c", name)
		if err := os.Symlink(name, file); err != nil {
			t.Skip(err)
		}
		if err := integrity.Check(t.Context(), root, []string{"c"}, nil); !ckptdir.IsUnreadable(err) {
			t.Errorf("%s that links to itself: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root := rootOf(t, map[string]string{"c/__0_0.distcp": "x", "c/.metadata": "\x80\x04__0_0.distcp."})
	if err := integrity.Check(ctx, root, []string{"c"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A link within the checkpoint is not looked through; an empty checkpoint, and
// one that does not exist, are errors, and have no markers.
func TestOddCheckpoints(t *testing.T) {
	root := rootOf(t, map[string]string{"c/a.txt": "x", "blob": ""})
	if err := errors.Join(os.Symlink("../blob", filepath.Join(root.Name(), "c", "b.bin")), os.Mkdir(filepath.Join(root.Name(), "empty"), 0o777)); err != nil {
		t.Skip(err)
	}
	if err := integrity.Check(t.Context(), root, []string{"c"}, nil); err != nil {
		t.Errorf("with a link: %v", err)
	}
	if err := integrity.Check(t.Context(), root, []string{"empty"}, nil); err == nil || err.Error() != "it is empty" {
		t.Errorf("empty folder: %v", err)
	}
	if err := integrity.Check(t.Context(), root, []string{"none"}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if got := integrity.Markers(root, []string{"none"}); got != nil {
		t.Errorf("markers of none: %q", got)
	}
}

// The format of a checkpoint shows in the names of its files, the most certain
// one first.
func TestFormats(t *testing.T) {
	for files, want := range map[string]string{
		"c/mp_rank_00_model_states.pt": "deepspeed", "c/.metadata": "dcp", "c/__0_0.distcp": "dcp", "c/_METADATA": "orbax",
		"c/_CHECKPOINT_METADATA": "orbax", "c/manifest.ocdbt c/x.json": "orbax", "c/trainer_state.json c/model.safetensors": "transformers",
		"m.index m.data-00000-of-00001": "bundle", "x.json model.SAFETENSORS": "safetensors", "m.keras": "keras", "m.h5": "hdf5", "m.hdf5 x.npy": "hdf5",
		"m.pt": "torch", "m.pth": "torch", "m.ckpt": "torch", "m.bin": "torch", "m.npz": "npz", "m.npy": "npy", "m.pkl": "pickle",
		"m.pickle": "pickle", "m.json": "json", "m.txt": "other", "": "other",
	} {
		if got := integrity.Format(strings.Fields(files)); got != want {
			t.Errorf("%q: %s, want %s", files, got, want)
		}
	}
}

// All files of a bundle are one, whose checksums are read.
func TestBundles(t *testing.T) {
	root := rootOf(t, map[string]string{"c/x.txt": "x"})
	prefix := filepath.Join(root.Name(), "c", "m")
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := errors.Join(w.Add("a", ckptfmt.Scalar(int64(1))), w.Finish()); err != nil {
		t.Fatal(err)
	}
	if err := integrity.Check(t.Context(), root, []string{"c"}, nil); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(prefix+".data-00000-of-00001", []byte("12345678"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := integrity.Check(t.Context(), root, []string{"c"}, nil); err == nil {
		t.Error("a changed data file is intact")
	}
}

// Programs write to names of these forms before they rename them.
func TestIsUnfinished(t *testing.T) {
	for name, want := range map[string]bool{
		"a.tmp": true, "a.part": true, "a.partial": true, "a.incomplete": true, "a~": true, "d.tmp/a": true,
		"m.index.tempstate12": true, "m.data-00000-of-00001_temp": true, "m_temp": true, "m_temp_0123456789abcdef0123456789abcdef/part-0": true,
		"tmp-checkpoint-5/a": true, "5.orbax-checkpoint-tmp-17/a": true, "a.tmp-123": true,
		"a": false, "tmp": false, "a.tmpx": false, "my-tmp-checkpoint-5": false, "m_template": false, "m_temp_0123": false, "parts/a": false, "": false,
	} {
		if got := integrity.IsUnfinished(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// Folders and markers come in the order of their names, each once.
func TestOrder(t *testing.T) {
	if got := integrity.Folders([]string{"c", "a.pt"}, []string{"c/b/x", "c/a/y", "c/b/z", "a.pt"}); !slices.Equal(got, []string{"c", "c/a", "c/b"}) {
		t.Errorf("folders %q", got)
	}
	root := rootOf(t, map[string]string{"b-1/y": "", "b-1/x": "", "a-1": ""})
	if got := integrity.Markers(root, []string{"b-1", "a-1"}); !slices.Equal(got, []string{"a-#", "b-#", "b-#/x", "b-#/y"}) {
		t.Errorf("markers %q", got)
	}
}
