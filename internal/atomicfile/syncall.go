package atomicfile

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/trainerd/trainerd/internal/parallel"
)

// fewFiles are synced one by one: syncing a whole file system waits for what other
// programs have written, too.
const fewFiles = 8

// SyncAll makes the bytes of files durable that were written and closed. Many of them take little
// longer than one: if that is as safe, their file system is synced as a whole.
func SyncAll(names []string) error {
	if len(names) > fewFiles {
		rest, err := syncFileSystem(names)
		if err != nil {
			return err
		}
		names = rest
	}
	var mu sync.Mutex
	var failed []error
	parallel.Each(context.Background(), len(names), func(i int) {
		if err := syncFile(names[i]); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
		}
	})
	return errors.Join(failed...)
}

func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0) // Windows syncs no file that is open for reading
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
