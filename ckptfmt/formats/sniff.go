package formats

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/internal/zipdir"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/crc32c"
)

// headSize is how much of a file is looked at to tell it. The names of the
// groups in an HDF5 file are among it as a rule.
const headSize = 64 << 10

// tableMagic ends a table: a V1 checkpoint, or the index of a bundle.
var tableMagic = []byte{0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb}

// tarMagicEnd is where the mark of a tar archive ends.
const tarMagicEnd = 262

const ggufMagic = "GGUF"

const nextPickle = "load it with Python, in a process that may be lost, and save tensors as safetensors"

// plainMagics are files that hold no tensors this package can read, by how they
// begin.
var plainMagics = []struct{ magic, is, next string }{
	{"\x93NUMPY", "one array of NumPy (.npy)", "save arrays with numpy.savez"},
	{ggufMagic, "GGUF of llama.cpp", "its tools show what is in it"},
	{"PAR1", "Parquet, a table", "read it with pandas or pyarrow"},
	{"version https://git-lfs", "a pointer of Git LFS, not the file itself", "run `git lfs pull`"},
	{"<!DOCTYPE", "a web page", "the download went wrong; fetch the file again"},
	{"<html", "a web page", "the download went wrong; fetch the file again"},
	{"\x1f\x8b", "compressed with gzip", "decompress it first"},
	{"(\xb5/\xfd", "compressed with zstd", "decompress it first"},
	{"model_checkpoint_path:", "the checkpoint file of a folder", "name the folder"},
}

// sniffFile identifies a file by its bytes.
func sniffFile(name string) (File, error) {
	f, err := atomicfile.Open(nil, name)
	if err != nil {
		return File{Checkpoint, name}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{Checkpoint, name}, err
	}
	kind, err := Sniff(f, info.Size())
	if wrong := new(KindError); errors.As(err, &wrong) {
		wrong.Path = name
	}
	if damage := new(ckptfmt.CorruptError); errors.As(err, &damage) {
		damage.Name = name
	}
	if err == nil && kind == Checkpoint && !isTable(f, info.Size()) {
		kind = kindByName(name) // its package says what is damaged
		if kind == Checkpoint && beginsAsText(f) {
			return File{Unknown, name}, &KindError{Path: name, Is: "a text", Next: "it holds no tensors"}
		}
	}
	return File{kind, name}, err
}

// kindByName identifies a file by its name, where its bytes do not.
func kindByName(name string) Kind {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".npz":
		return NPZ
	case ".safetensors":
		return Safetensors
	}
	return Checkpoint
}

// Sniff identifies a file of that size by its bytes. If it cannot be opened,
// the error is a [*KindError] without a path. A file that nothing identifies is
// treated as a checkpoint, so that opening it says what is wrong with it.
func Sniff(from io.ReaderAt, size int64) (Kind, error) {
	head := make([]byte, min(size, headSize))
	if _, err := from.ReadAt(head, 0); err != nil && err != io.EOF {
		return Checkpoint, err
	}
	text := string(head)
	for _, m := range plainMagics {
		if strings.HasPrefix(text, m.magic) {
			return Unknown, &KindError{Model: m.magic == ggufMagic, Is: m.is, Next: m.next}
		}
	}
	switch {
	case size == 0:
		return Unknown, &KindError{Is: "empty", Next: "the save or the download did not end"}
	case strings.HasPrefix(text, hdf5.Magic), hasUserBlock(from, size):
		return hdf5Kind(head), nil
	case strings.HasPrefix(text, "PK\x03\x04"), strings.HasPrefix(text, "PK\x05\x06"):
		return sniffZip(head, from, size)
	case isTable(from, size):
		return Checkpoint, nil
	case isSafetensors(head, size):
		return Safetensors, nil
	case torch.IsLegacy(head):
		return Torch, nil
	case len(head) > 1 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5:
		return Unknown, &KindError{Model: true, Is: "a Python pickle, which may run any code when it is loaded", Next: nextPickle}
	}
	if len(text) > tarMagicEnd && strings.HasSuffix(text[:tarMagicEnd], "ustar") {
		return Unknown, &KindError{Is: "a tar archive, as PyTorch wrote before version 0.1.10", Next: "unpack it, or load it with PyTorch and save it again"}
	}
	if isRecords(head) {
		return Unknown, &KindError{Is: "a file of TFRecords, as events files are", Next: "`tfevents ls` shows the curves in the events of its folder"}
	}
	if isTFLite(head) {
		return Unknown, &KindError{Model: true, Is: "a model of TensorFlow Lite", Next: "tf.lite.Interpreter shows what is in it; its checkpoint has the weights as they were trained"}
	}
	if isONNX(head) {
		return Unknown, &KindError{Model: true, Is: "an ONNX model", Next: "load it with onnx, and save onnx.numpy_helper.to_array of each initializer with numpy.savez"}
	}
	if isMsgpack(head) {
		return Unknown, &KindError{Model: true, Is: "MessagePack, as Flax writes it", Next: "load it with flax.serialization, and save tensors as safetensors"}
	}
	return sniffText(head)
}

// hasUserBlock reports whether HDF5 begins after 512 bytes, 1024, and so on.
func hasUserBlock(from io.ReaderAt, size int64) bool {
	var b [len(hdf5.Magic)]byte
	for at := int64(512); at < min(size, 1<<20); at *= 2 {
		if _, err := from.ReadAt(b[:], at); err == nil && string(b[:]) == hdf5.Magic {
			return true
		}
	}
	return false
}

// hdf5Kind finds out who wrote an HDF5 file by the names in its first bytes, which is
// for messages: the file is read no matter who wrote it.
func hdf5Kind(head []byte) Kind {
	has := func(name string) bool { return bytes.Contains(head, []byte(name)) }
	switch {
	case has("keras_version"), has("layer_names"), has("model_weights"):
		return KerasLegacy
	case has("vars\x00"), has("_layer_checkpoint_dependencies"):
		return KerasWeights
	}
	return HDF5
}

// isRecords reports whether a file begins with the length of a record and its checksum.
func isRecords(head []byte) bool {
	const size = 8
	return len(head) >= size+4 && binary.LittleEndian.Uint32(head[size:]) == crc32c.Masked(head[:size])
}

// isTFLite reports whether a file has the mark of TensorFlow Lite, which follows an offset.
func isTFLite(head []byte) bool {
	const at, mark = 4, "TFL3"
	return len(head) >= at+len(mark) && string(head[at:at+len(mark)]) == mark
}

// isONNX reports whether a file begins with a version and the name of what has produced it:
// that of a SavedModel has no text there.
func isONNX(head []byte) bool {
	const version, producer, most = 0x08, 0x12, 0x7f
	if len(head) < 4 || head[0] != version || head[1] > most || head[2] != producer || head[3] > most {
		return false
	}
	name := head[4:min(len(head), 4+int(head[3]))]
	return len(name) > 0 && len(name) == int(head[3]) && !bytes.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) })
}

// isMsgpack reports whether a file begins with a map of MessagePack, whose first key is
// a text of printable characters.
func isMsgpack(head []byte) bool {
	const short, long16, long32, text = 0x80, 0xde, 0xdf, 0xa0
	if len(head) < 2 {
		return false
	}
	at := 1
	switch {
	case head[0] > short && head[0] < short+16:
	case head[0] == long16:
		at += 2
	case head[0] == long32:
		at += 4
	default:
		return false
	}
	if at >= len(head) || head[at] <= text || head[at] >= text+32 {
		return false
	}
	n := int(head[at] - text)
	key := head[at+1 : min(len(head), at+1+n)]
	return len(key) == n && !bytes.ContainsFunc(key, func(c rune) bool { return !unicode.IsPrint(c) })
}

func isTable(from io.ReaderAt, size int64) bool {
	end := make([]byte, len(tableMagic))
	if size < int64(len(end)) {
		return false
	}
	_, err := from.ReadAt(end, size-int64(len(end)))
	return (err == nil || err == io.EOF) && bytes.Equal(end, tableMagic)
}

// isSafetensors reports whether a file begins with the length of a header, and
// the header with a brace.
func isSafetensors(head []byte, size int64) bool {
	return len(head) > 8 && head[8] == '{' && binary.LittleEndian.Uint64(head)&^(1<<40-1) == 0 && size > 9
}

// sniffText recognizes text files.
func sniffText(head []byte) (Kind, error) {
	trimmed := bytes.TrimSpace(head)
	if len(trimmed) == 0 || trimmed[0] != '{' || !isText(head) {
		return Checkpoint, nil
	}
	has := func(text string) bool { return bytes.Contains(head, []byte(text)) }
	switch {
	case has(`"weight_map"`) && has(`.weights.h5"`):
		return KerasSharded, nil
	case has(`"weight_map"`) && !has(`.safetensors"`) && (has(`.bin"`) || has(`.pt"`) || has(`.pth"`)):
		return TorchSharded, nil
	case has(`"weight_map"`):
		return Sharded, nil
	}
	return Unknown, &KindError{Is: "JSON", Next: "it holds no tensors"}
}

// beginsAsText reports whether a file begins with text, and not with blanks alone.
func beginsAsText(from io.ReaderAt) bool {
	head := make([]byte, 512)
	n, err := from.ReadAt(head, 0)
	return (err == nil || err == io.EOF) && isText(head[:n]) && len(bytes.TrimSpace(head[:n])) > 0
}

// isText reports whether the beginning of a file, which may end within a character, is
// text.
func isText(head []byte) bool {
	for i := 0; i < utf8.UTFMax && len(head) > 0 && !utf8.Valid(head); i++ {
		head = head[:len(head)-1]
	}
	return utf8.Valid(head) && !bytes.ContainsFunc(head, func(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) })
}

// firstMember returns the name of the first member of an archive, "" where it is not in
// the head.
func firstMember(head []byte) string {
	const nameSize, name = 26, 30
	if len(head) < name {
		return ""
	}
	end := name + int(binary.LittleEndian.Uint16(head[nameSize:]))
	return string(head[name:max(name, min(end, len(head)))])
}

// sniffZip identifies an archive by its members. What no other format begins with will
// do, as large archives need not be read twice: opening one names what does not belong
// in it.
func sniffZip(head []byte, from io.ReaderAt, size int64) (Kind, error) {
	switch first := firstMember(head); {
	case strings.HasSuffix(first, ".npy"):
		return NPZ, nil
	case strings.HasSuffix(first, "/data.pkl"):
		return Torch, nil
	}
	var seen struct{ script, pickle, config, weights, array, any bool }
	err := zipdir.Each(from, size, func(m *zipdir.Member) {
		name := m.Name
		seen.any = true
		switch base := name[strings.LastIndexByte(name, '/')+1:]; base {
		case "constants.pkl", "archive_format":
			seen.script = true
		case "data.pkl":
			seen.pickle = true
		}
		seen.config = seen.config || name == "config.json"
		seen.weights = seen.weights || name == "model.weights.h5"
		seen.array = seen.array || strings.HasSuffix(name, ".npy")
	})
	if err != nil {
		return Unknown, &ckptfmt.CorruptError{Part: "zip archive", Err: err}
	}
	switch {
	case seen.script:
		return Unknown, &KindError{Model: true, Is: "a program of torch (TorchScript or torch.export)", Next: "save its tensors with torch.save(model.state_dict(), ...)"}
	case seen.pickle:
		return Torch, nil
	case seen.config && seen.weights:
		return Keras, nil
	case seen.array, !seen.any:
		return NPZ, nil // opening it names a member that is not an array
	}
	return Unknown, &KindError{Is: "a zip archive without arrays", Next: "unpack it and name what is in it"}
}
