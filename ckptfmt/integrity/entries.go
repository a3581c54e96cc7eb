package integrity

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"strings"
)

// SumOfEntries returns a sum of the checksums that an archive has of its entries, such as a file that
// torch.save writes. It is not ok for other files, nor for archives with an entry that has none. Where it
// is ok, [Check] reads each byte that matters, and the sum says which content it is. The name of the file
// says, as for Check, whether it is one archive: those of torch.distributed.checkpoint are rows of them.
func SumOfEntries(name string, f io.ReaderAt, size int64) (sum string, ok bool) {
	archive, err := zip.NewReader(f, size)
	if err != nil || strings.EqualFold(path.Ext(name), ".distcp") || !isArchive(f) {
		return "", false
	}
	h := sha256.New()
	for _, e := range archive.File {
		if e.CRC32 == 0 && e.UncompressedSize64 > 0 {
			return "", false
		}
		fmt.Fprintf(h, "%q %d %08x\n", e.Name, e.UncompressedSize64, e.CRC32)
	}
	return hex.EncodeToString(h.Sum(nil)), true
}

// isArchive reports whether a file begins with an entry of an archive: one that only ends as archives do has
// something in front that has no checksum.
func isArchive(f io.ReaderAt) bool {
	var head [4]byte
	_, err := f.ReadAt(head[:], 0)
	return err == nil && string(head[:]) == "PK\x03\x04"
}
