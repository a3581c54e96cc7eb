package integrity

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// OwnSums returns a sum, by name, for each of the files whose own checksums cover every byte that
// matters and are verified by [Check]: archives, such as torch.save writes, and the data of
// bundles, whose checksums are in the index. A sum identifies the content of a file. Files with
// fewer than least bytes are left out.
func OwnSums(root *os.Root, files []string, least int64) map[string]string {
	sums, x := map[string]string{}, &checker{root: root}
	for _, name := range files {
		info, err := root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() < least {
			continue
		}
		if sum, ok := x.ownSum(name, files, info.Size()); ok {
			sums[name] = sum
		}
	}
	return sums
}

// ownSum returns the sum of one of the files. As for [Check], the name says what the file is: in a
// file of torch.distributed.checkpoint there may be a row of archives.
func (x *checker) ownSum(name string, files []string, size int64) (sum string, ok bool) {
	switch isOfBundle := bundleFile().MatchString(name); {
	case strings.EqualFold(path.Ext(name), ".distcp"):
		return "", false
	case !isOfBundle:
		return x.sumOfArchive(name, size)
	case strings.HasSuffix(name, ".index"), strings.HasSuffix(name, ".meta"):
		return "", false
	}
	return x.sumOfData(name, files, size)
}

// sumOfData returns the sum of a data file of a bundle.
func (x *checker) sumOfData(name string, files []string, size int64) (sum string, ok bool) {
	index := bundleFile().ReplaceAllString(name, "") + ".index"
	if !slices.Contains(files, index) {
		return "", false
	}
	entries, err := x.read(index)
	if err != nil {
		return "", false
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %d\n", bundleFile().FindString(name), size)
	h.Write(entries)
	return hex.EncodeToString(h.Sum(nil)), true
}

// sumOfArchive returns a sum of the checksums that an archive has of its entries, such as a file
// that torch.save writes. It is not ok for other files, nor for archives with an entry that has
// none, nor for a row of archives, since only the last would be read. If it is ok, [Check] reads
// each byte that matters, and the sum identifies the content.
func (x *checker) sumOfArchive(name string, size int64) (sum string, ok bool) {
	f, err := x.root.Open(name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	archive, err := zip.NewReader(f, size)
	if err != nil || !beginsAtFirst(f, archive.File) {
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

// beginsAtFirst reports whether a file begins with the first of the entries of its archive.
func beginsAtFirst(f io.ReaderAt, entries []*zip.File) bool {
	const headerSize = 30 // of an entry, before its name and its extra field
	var head [headerSize]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return false
	}
	data := headerSize + int64(binary.LittleEndian.Uint16(head[26:])) + int64(binary.LittleEndian.Uint16(head[28:]))
	return string(head[:4]) == zipHead && slices.ContainsFunc(entries, func(e *zip.File) bool {
		at, _ := e.DataOffset() // 0 for an error
		return at == data
	})
}
