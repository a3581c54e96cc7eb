package ckptfmt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// heldFS has files that are read only at their beginning, until they are released, and there only
// when they are read elsewhere, too.
type heldFS struct {
	atomicfile.FS
	released  chan struct{}
	elsewhere chan struct{}
}

type heldFile struct {
	atomicfile.ReadFile
	heldFS
}

func (h heldFS) Open(name string) (atomicfile.ReadFile, error) {
	f, err := atomicfile.Open(nil, name)
	if err != nil || strings.HasSuffix(name, layout.IndexSuffix) {
		return f, err
	}
	return heldFile{f, h}, nil
}

func (h heldFile) ReadAt(b []byte, at int64) (int, error) {
	if at == 0 {
		<-h.elsewhere
	} else {
		select {
		case h.elsewhere <- struct{}{}:
			<-h.released
		case <-h.released:
		}
	}
	return h.ReadFile.ReadAt(b, at)
}

// Nothing reads the files of a checkpoint once its verification has ended, also where the loop over it ends before.
func TestVerifyLeavesNoReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, prefix := newBundle(t, nil)
		large := &Tensor{DType: tfpb.DataType_DT_UINT8, Shape: []int64{sumPiece}, Data: make([]byte, sumPiece)}
		for i := range 3 { // each is read alone
			if err := w.Add(fmt.Sprint(i), large); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		fsys := heldFS{atomicfile.OrOS(nil), make(chan struct{}), make(chan struct{})}
		r := openBundle(t, prefix, &ReaderOptions{FS: fsys})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range r.Verify(t.Context()) {
				break
			}
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("it has ended while a file is read")
		default:
		}
		close(fsys.released)
		<-ended
	})
}

// sharing makes a checkpoint whose tensors have the same bytes.
func sharing(t *testing.T, data string, names ...string) *BundleReader {
	t.Helper()
	_, prefix := newBundle(t, nil)
	entry := tfproto.Marshal(&tfpb.BundleEntryProto{
		Dtype: tfpb.DataType_DT_UINT8, Shape: shapeProto([]int64{int64(len(data))}), Size: int64(len(data)), Crc32C: crc32c.Masked([]byte(data)),
	})
	entries := map[string][]byte{"": tfproto.Marshal(newHeader(1))}
	for _, name := range names {
		entries[name] = entry
	}
	writeIndexFile(t, prefix, entries)
	if err := os.WriteFile(layout.DataName(prefix, 0, 1), []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
	return openBundle(t, prefix, nil)
}

// verdicts returns what a verification says, and does something after each verdict.
func verdicts(ctx context.Context, r *BundleReader, then func(name string)) (all []string) {
	for name, err := range r.Verify(ctx) {
		if err != nil {
			all = append(all, fmt.Sprintf("%q: %v", name, err))
		}
		then(name)
	}
	return all
}

// Tensors of one byte may share it as well. What is found of pairs of tensors is not said once the context has
// ended, which is the last that is said.
func TestVerifySharedBytesInOrder(t *testing.T) {
	for _, data := range []string{"1", "12345678"} {
		r := sharing(t, data, "a", "b", "c")
		if got := verdicts(t.Context(), r, func(string) {}); len(got) != 2 || !strings.Contains(got[1], "shares bytes") {
			t.Errorf("%d bytes: %q", len(data), got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := verdicts(ctx, r, func(name string) {
			if name == "c" {
				cancel()
			}
		})
		if len(got) != 1 || got[0] != `"": context canceled` {
			t.Errorf("%d bytes, and the end of the context: %q", len(data), got)
		}
		cancel()
	}
}

// Damage to the table, such as a key by which no search finds the last tensor, is said after that of tensors.
func TestVerifySaysDamageOfTableAndTensors(t *testing.T) {
	w, prefix := newBundle(t, nil)
	if err := errors.Join(w.Add("a", Scalar(int64(1))), w.Add("b", Scalar("text")), w.Finish()); err != nil {
		t.Fatal(err)
	}
	change := func(name string, change func(b []byte)) {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		change(b)
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	change(layout.IndexName(prefix), func(b []byte) {
		handles, at := b[len(b)-48:], [4]uint64{} // of the blocks of filters and of keys: place and size
		for i := range at {
			v, n := binary.Uvarint(handles)
			at[i], handles = v, handles[n:]
		}
		block := b[at[2]:][:at[3]+1]
		block[3] = 'a' // the only key, which is to be b at least
		binary.LittleEndian.PutUint32(b[at[2]+at[3]+1:], crc32c.Masked(block))
	})
	for _, damaged := range []bool{false, true} {
		if damaged {
			change(layout.DataName(prefix, 0, 1), func(b []byte) { b[0] ^= 1 })
		}
		got := verdicts(t.Context(), openBundle(t, prefix, nil), func(string) {})
		if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], `"": `) || strings.HasPrefix(got[0], `"a": `) != damaged {
			t.Errorf("with a damaged tensor: %v: %q", damaged, got)
		}
	}
}

// A checkpoint for readers of this version is read, and one for later ones is not.
func TestCheckVersion(t *testing.T) {
	for least, ok := range map[int32]bool{0: true, bundleVersion: true, bundleVersion + 1: false} {
		if err := checkVersion(&tfpb.VersionDef{MinConsumer: least}); (err == nil) != ok || !ok && !errors.Is(err, ErrVersion) {
			t.Errorf("for readers of version %d: %v", least, err)
		}
	}
}
