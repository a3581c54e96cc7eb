package hdf5

import (
	"fmt"
	"slices"
	"testing"
)

// TestNamesOutliveTheirPage has groups whose datasets are so far apart that the page with the
// names in the header is read over before the last of them.
func TestNamesOutliveTheirPage(t *testing.T) {
	const datasets, apart = 20, 70 << 10
	object := headerOf(3, slices.Concat(
		appendMessage(nil, msgDataspace, dataspaceOf(nil)), appendMessage(nil, msgDatatype, fixedType(1, false)), appendMessage(nil, msgLayout, contiguous(unwritten, 0))))
	blocks := make([]byte, datasets*apart)
	var want []string
	var links [][]byte
	for i := range datasets {
		copy(blocks[i*apart:], object)
		want = append(want, fmt.Sprintf("n%02d", i))
		links = append(links, slices.Concat([]byte{1, 0, 3}, []byte(want[i]), u64s(uint64(blocksAt+i*apart))))
	}
	info := append([]byte{0, 0}, u64s(unwritten, unwritten)...)
	older := []body{{msgLinkInfo, info}}
	newer := message2(msgLinkInfo, 0, info)
	var rest []byte // of a header that continues
	for i, l := range links {
		older = append(older, body{msgLink, l})
		if i < 8 {
			newer = append(newer, message2(msgLink, 0, l)...)
		} else {
			rest = append(rest, message2(msgLink, 0, l)...)
		}
	}
	next := summed([]byte(sigHeaderNext), rest)
	at := len(blocks)
	more := message2(msgContinuation, 0, u64s(uint64(blocksAt+at), uint64(len(next))))
	checkPaths(t, "in a header of version 1", made(older, string(blocks)), want, "")
	checkPaths(t, "in one of version 2 that continues", file2(header2Of(0, nil, newer, more), string(append(blocks, next...))), want, "")
}
