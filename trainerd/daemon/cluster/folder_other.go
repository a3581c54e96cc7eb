//go:build !unix

package cluster

func folderNumber(string) string { return "" }
