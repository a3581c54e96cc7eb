package ckptfmt

// FileOptions are the options of functions that write or remove files and have
// no others.
type FileOptions struct {
	FS FS // nil means the operating system's
}

// FileSystem returns o.FS, and nil if o is nil.
func (o *FileOptions) FileSystem() FS {
	if o == nil {
		return nil
	}
	return o.FS
}
