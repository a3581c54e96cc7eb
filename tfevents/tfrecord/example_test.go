package tfrecord_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// A file is read past a damaged record.
func ExampleReader() {
	var file bytes.Buffer
	w := tfrecord.NewWriter(&file)
	for _, record := range []string{"one", "two", "three"} {
		if err := w.Write([]byte(record)); err != nil {
			log.Fatal(err)
		}
	}
	file.Bytes()[tfrecord.Size(len("one"))+tfrecord.HeaderSize] ^= 1 // in "two"

	r := tfrecord.NewReader(&file)
	r.Name = "data.tfrecord"
	for {
		record, err := r.Next()
		var damage *tfrecord.CorruptError
		switch {
		case err == io.EOF:
			return
		case errors.As(err, &damage) && damage.Skippable():
			fmt.Println(err)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Printf("%s\n", record)
		}
	}
	// Output:
	// one
	// data.tfrecord: damaged record at offset 19, 19 bytes lost: data: checksum mismatch
	// three
}
