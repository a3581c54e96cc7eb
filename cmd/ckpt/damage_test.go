package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/sstable"
	"github.com/trainerd/trainerd/internal/crc32c"
	tfpb "github.com/trainerd/trainerd/proto"
)

// damage KIND PREFIX NAME [N]: damages the index of a checkpoint.
//
//	size    the entry of that name claims one byte too much
//	shard   the entry of that name is in a shard that there is not
//	slice   the Nth slice of that name is gone
//	slices  all slices of that name are gone
//	rename  the tensor gets the name N, in quotes
//	sum     the entry of that name has another checksum
//	start   the key of a slice of that name has a whole dimension that begins at 60
//	last    the entry of that name is after all others
//	twice   after all others is the entry of that name once more
//	order   the name begins with a byte 0xff, where it is, and the block's checksum is right
func damage(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) < 3 {
		ts.Fatalf("usage: damage KIND PREFIX NAME [N]")
	}
	index := ts.MkAbs(layout.IndexName(words[1]))
	if words[0] == "order" {
		disorder(ts, index, words[2])
		return
	}
	entries := readTable(ts, index)
	if words[0] == "last" || words[0] == "twice" {
		at := slices.IndexFunc(entries, func(e sstable.Entry) bool { return string(e.Key) == words[2] })
		entries = append(entries, entries[at])
		if words[0] == "last" {
			entries = slices.Delete(entries, at, at+1)
		}
		writeUnordered(ts, index, entries)
		return
	}
	isSlice := func(e sstable.Entry) bool {
		return len(e.Key) > 0 && e.Key[0] == 0 && bytes.Contains(e.Key, []byte(words[2]))
	}
	switch words[0] {
	case "size":
		changeEntry(ts, entries, words[2], func(e *tfpb.BundleEntryProto) { e.Size++ })
	case "shard":
		changeEntry(ts, entries, words[2], func(e *tfpb.BundleEntryProto) { e.ShardId = 9 })
	case "sum":
		changeEntry(ts, entries, words[2], func(e *tfpb.BundleEntryProto) { e.Crc32C++ })
	case "start":
		e := &entries[slices.IndexFunc(entries, isSlice)]
		whole, ok := bytes.CutSuffix(e.Key, []byte("\x80\x7f")) // start 0, length -1
		if !ok {
			ts.Fatalf("the last dimension of %q is not whole", e.Key)
		}
		e.Key = append(whole, "\xbc\x7f"...)
	case "slices":
		entries = slices.DeleteFunc(entries, isSlice)
	case "slice":
		n, err := strconv.Atoi(words[3])
		ts.Check(err)
		for i, e := range entries {
			if n -= bit(isSlice(e)); n < 0 {
				entries = slices.Delete(entries, i, i+1)
				break
			}
		}
	case "rename":
		name, err := strconv.Unquote(words[3])
		ts.Check(err)
		i := slices.IndexFunc(entries, func(e sstable.Entry) bool { return string(e.Key) == words[2] })
		entries[i].Key = []byte(name)
	default:
		ts.Fatalf("damage: no kind %q", words[0])
	}
	writeTable(ts, index, entries)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func changeEntry(ts *testscript.TestScript, entries []sstable.Entry, name string, change func(*tfpb.BundleEntryProto)) {
	for i, e := range entries {
		if string(e.Key) != name {
			continue
		}
		p := &tfpb.BundleEntryProto{}
		ts.Check(proto.Unmarshal(e.Value, p))
		change(p)
		b, err := proto.Marshal(p)
		ts.Check(err)
		entries[i].Value = b
		return
	}
	ts.Fatalf("there is no tensor %q", name)
}

// disorder changes a name within the first block of an index.
func disorder(ts *testscript.TestScript, index, name string) {
	b, err := os.ReadFile(index)
	ts.Check(err)
	at := bytes.Index(b, []byte(name))
	end := at + len(name) // of the block with its type: where its checksum is
	for end < len(b)-4 && binary.LittleEndian.Uint32(b[end:]) != crc32c.Masked(b[:end]) {
		end++
	}
	b[at] = 0xff
	binary.LittleEndian.PutUint32(b[end:], crc32c.Masked(b[:end]))
	ts.Check(os.WriteFile(index, b, 0o666))
}

func readTable(ts *testscript.TestScript, file string) []sstable.Entry {
	b, err := os.ReadFile(file)
	ts.Check(err)
	r, err := sstable.NewReader(bytes.NewReader(b), int64(len(b)), nil)
	ts.Check(err)
	var entries []sstable.Entry
	for e, err := range r.All() {
		ts.Check(err)
		entries = append(entries, sstable.Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)})
	}
	return entries
}

func writeTable(ts *testscript.TestScript, file string, entries []sstable.Entry) {
	slices.SortFunc(entries, func(a, b sstable.Entry) int { return strings.Compare(string(a.Key), string(b.Key)) })
	var b bytes.Buffer
	w := sstable.NewWriter(&b, nil)
	for _, e := range entries {
		ts.Check(w.Add(e.Key, e.Value))
	}
	ts.Check(w.Finish())
	ts.Check(os.WriteFile(file, b.Bytes(), 0o666))
}

// writeUnordered writes a table of one block that holds the entries as they come.
func writeUnordered(ts *testscript.TestScript, file string, entries []sstable.Entry) {
	const restarts = "\x00\x00\x00\x00\x01\x00\x00\x00" // one, at 0
	var b, block []byte
	handle := func(b []byte) []byte {
		return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(b)-len(block)-5)), uint64(len(block)))
	}
	entry := func(block, key, value []byte) []byte {
		block = binary.AppendUvarint(append(block, 0), uint64(len(key)))
		block = binary.AppendUvarint(block, uint64(len(value)))
		return append(append(block, key...), value...)
	}
	seal := func() {
		block = append(block, restarts...)
		b = append(append(b, block...), 0) // not compressed
		b = binary.LittleEndian.AppendUint32(b, crc32c.Masked(b[len(b)-len(block)-1:]))
	}
	for _, e := range entries {
		block = entry(block, e.Key, e.Value)
	}
	seal()
	block = entry(nil, []byte("\xff"), handle(b))
	seal()
	footer := append([]byte{0, 0}, handle(b)...) // no metaindex
	footer = append(footer, make([]byte, 40-len(footer))...)
	b = binary.LittleEndian.AppendUint64(append(b, footer...), sstable.Magic)
	ts.Check(os.WriteFile(file, b, 0o666))
}
