package ckptfmt

import (
	"fmt"
	"slices"

	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
)

// FS is the file system to write a checkpoint to: nil means the operating
// system's.
type FS = atomicfile.FS

// File is a file made by the Create method of an [FS].
type File = atomicfile.File

// Wire format of a bundle.
const (
	headerKey = "" // sorts first

	// bundleVersion is the producer version that is written, and the consumer
	// version that a file's min_consumer is compared with.
	bundleVersion = 1

	// maxShards is the largest number of shards that file names have room for.
	maxShards = 99999
)

// newHeader returns the header of a little-endian bundle.
func newHeader(numShards int) *tfpb.BundleHeaderProto {
	return &tfpb.BundleHeaderProto{
		NumShards: int32(numShards),
		Version:   &tfpb.VersionDef{Producer: bundleVersion},
	}
}

// checkVersion reports whether this package may read a file of that version.
func checkVersion(v *tfpb.VersionDef) error {
	if v.GetMinConsumer() > bundleVersion {
		return fmt.Errorf("%w: a newer TensorFlow wrote it, for readers of version %d and above; this one has version %d", ErrVersion, v.GetMinConsumer(), bundleVersion)
	}
	if slices.Contains(v.GetBadConsumers(), bundleVersion) {
		return fmt.Errorf("%w: it excludes readers of version %d, which this one has", ErrVersion, bundleVersion)
	}
	return nil
}
