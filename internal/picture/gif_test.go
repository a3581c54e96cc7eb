package picture

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"testing"
)

// odd are files that TensorFlow 2.21 decoded: how many frames it found, and the first 8
// bytes of the SHA-256 of all pixels, and of those of the first frame alone. Nothing is
// there where it refused the file.
var odd = []struct {
	name, file string
	frames     int
	all, first string
}{
	{"a control block of six bytes", "R0lGODlhCQAHAPIAAIhBO8gVJ/Q/ewcnx4JxomfKVwBN6jGqPSH5BgEAAAMAAAAsAAAAAAkABwAAAyNoMHUkxg1DjClQBDjOCE7BHEZABBNJDcQhHMBhsmYFGGxhJAAsAAAAAAUABQAAAw1YB3PBBBAxyjuVqDoSADs=", 2, "652d1c94a287b0ad", "1ed32ce1dc11073d"},
	{"two control blocks", "R0lGODlhCQAHAPIAANSJzw+0caq0Me0N4kaAIfq7ODXeZCtjcSwAAAAACQAHAAADIkh1MdQrEDKOCcC4M4o5gEIYAlAIRSCAimacaxB4Q4V2cAIAIfkEBQAAAwAh+QQEAAAAACwAAAAACQAHAAADIBhDd3XmCALOEEAY0XR9lVAIw1hcGMFlV+AGFkZmmZoAADs=", 2, "0b1d55be7df3f7e8", "8098874af9028d8c"},
	{"a control block in parts", "R0lGODlhCQAHAPIAAEYOtbcsRjH2f6aBduEmZBwaRLzl3P68+iwAAAAACQAHAAADICgBYhEkjgGkc+y4IU4pEDEYAhhwTaF8THEE3hJ0wHEkACH5AgEAAgADACwAAAAACQAHAAADIWgUJCUNmhHOAQIQUI4LzAAchAUYGFVhRXsVlFeMIlGACQA7", 2, "93cb7a0952db066b", "bb13af4caa4f9881"},
	{"an extension without a first block", "R0lGODlhCQAHAPIAADuMNNkrdfyJj5IfC1Tq2nQtD8u0kNAmuCH+ACwAAAAACQAHAAADIxgFUndBmAXgMGG4MsgARSFIQgAZzVEQBcYFk1UZBGEwMJEAADs=", 0, "", ""},
	{"colours beyond the table", "R0lGODlhCQAHAPEAAOGME9y2XxqetjatzCwAAAAACQAHAAADI2gVp7VhSGHiaOQQwEIhAyAEhEFxnzA8BzAIHxcAwJcFApEAADs=", 0, "", ""},
	{"codes of 12 bits in the second frame", "R0lGODlhCQAHAPIAAFJ2dCtOtgIzCGw1piRHaPdsGRr8itAdsiwAAAAACQAHAAADI2hXAkYlBCLCCcK4ISI5ABMFhlVAlkIARMCuxHC0hVHZc5EAACwAAAAACQAHAAAMIRgAE3IlkGlMuS2EIYAWCpGJg6EVxAEFl2CUhadNxVEKCQAsAAAAAAUABQAAAw54M9FnohRS4jklEGiCSAA7", 1, "e23319c83c8b30bc", "e23319c83c8b30bc"},
	{"a damaged code", "R0lGODlhCQAHAPIAADk8C4rjPgQ7lAjBp8A6H9WShl00lrmFEiH5BAUAAAMALAAAAAAJAAcAAAMjGPA3VIUEQMEpwohjRm7KUBwBAQiFEWjDYJ2EcQheNIKjECQAIf4BYwAh+QQJAAABACwCAAEABgAFAMIEWBLhMleUHW5zXvjPPU6X20vrbw2YD/ADEUhktRIEjNIKMC+IMog4F3EkACwFAAQAAwADAAADBjgnB1snAQA7", 3, "98256c961954f127", "b8239ea0e053232b"},
	{"a code that is not known", "R0lGODlhCQAHAPIAADk8C4rjPgQ7lAjBp8A6H9WShl00lrmFEiH5BAUAAAMALAAAAAAJAAcAAAMjGEI3T4UEQMEpwohjRm7KUBwBAQiFEWjDYJ2EcQheNIKjECQAIf4BYwAh+QQJAAABACwCAAEABgAFAMIEWBLhMleUHW5zXvjPPU6X20vrbw2YD/ADEUhktRIEjNIKMC+IMog4F3EkACwFAAQAAwADAAADBjgnB1snAQA7", 3, "70d86e5c93579dbb", "a23de712cc315613"},
	{"damage in the second frame", "R0lGODlhCQAHAPIAADk8C4rjPgQ7lAjBp8A6H9WShl00lrmFEiH5BAUAAAMALAAAAAAJAAcAAAMjGEI3VIUEQMEpwohjRm7KUBwBAQiFEWjDYJ2EcQheNIKjECQAIf4BYwAh+QQJAAABACwCAAEABgAFAMIEWBLhMleUHW5zXvjPPU6X20vrbw2YD/ADEUhk9RIEjNIKMC+IMog4F3EkACwFAAQAAwADAAADBjgnB1snAQA7", 3, "a4b9513a18550924", "6fc25a52925b9c8f"},
	{"a frame that is cut off", "R0lGODlhCQAHAPIAADoUuMrVfJ0WAp3wzc5djrhxGuG6V9vLpywAAAAACQAHAAADJThX1nQDGHUAEEUIUgjog3EcARAMZ0AQ5ZAVRSQMAkBzRmwVRwIALAAAAAAJAAcAAAMXOGF3FQQOUIoYZ5BsDDRCgQVFdwAACCQAOw==", 1, "9c318f638eae968d", "9c318f638eae968d"},
}

func TestOddGIF(t *testing.T) {
	sum := func(m *Image) string {
		all := sha256.Sum256(m.Pix)
		return hex.EncodeToString(all[:8])
	}
	for _, c := range odd {
		data, err := base64.StdEncoding.DecodeString(c.file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(data, 0)
		if (err == nil) != (c.frames > 0) {
			t.Errorf("%s: %v, want %d frames", c.name, err, c.frames)
		}
		if err != nil {
			continue
		}
		if m.Frames != c.frames || sum(m) != c.all {
			t.Errorf("%s: %d frames, %s; want %d, %s", c.name, m.Frames, sum(m), c.frames, c.all)
		}
		if m, err := DecodeFirst(data, 0); err != nil || m.Frames != 1 || sum(m) != c.first {
			t.Errorf("%s: the first frame: %+v, %v; want %s", c.name, m, err, c.first)
		}
	}
}
