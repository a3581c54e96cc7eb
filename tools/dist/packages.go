package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// writePackage writes the package of a format, "deb" or "rpm".
func (t *target) writePackage(format string) (err error) {
	info, err := t.describePackage(format)
	if err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(t.out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return packager.Package(info, f)
}

// describePackage reads packaging/nfpm.yaml for this target.
func (t *target) describePackage(format string) (*nfpm.Info, error) {
	values := map[string]string{"ARCH": t.arch, "VERSION": t.version, "STAGE": t.stage}
	config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(t.root, "packaging", "nfpm.yaml"), func(key string) string { return values[key] })
	if err != nil {
		return nil, err
	}
	info, err := config.Get(format)
	if err != nil {
		return nil, err
	}
	// Relative sources in the file are relative to the repository.
	place := func(name *string) {
		if *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(t.root, *name)
		}
	}
	for _, c := range info.Contents {
		c.Source = strings.ReplaceAll(c.Source, "${STAGE}", t.stage)
		place(&c.Source)
		if c.FileInfo != nil {
			c.FileInfo.MTime = t.epoch
		}
	}
	for _, script := range []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove, &info.Scripts.PostRemove} {
		place(script)
	}
	info.MTime = t.epoch
	nfpm.WithDefaults(info)
	return info, nfpm.PrepareForPackager(info, format)
}
