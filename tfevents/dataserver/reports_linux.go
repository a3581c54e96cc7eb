package dataserver

import "golang.org/x/sys/unix"

// Network file systems, which report only what this machine changes.
const (
	nineP  = 0x01021997
	lustre = 0x0bd00bd0
	gpfs   = 0x47504653
	beegfs = 0x19830326
)

// reportsChanges reports whether all changes of a directory's file system are made on this machine,
// so that a watcher sees them.
func reportsChanges(dir string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false
	}
	switch int64(st.Type) & 0xffffffff {
	case unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC,
		unix.FUSE_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, nineP, lustre, gpfs, beegfs:
		return false
	}
	return true
}
