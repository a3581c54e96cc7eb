// Demo is a contestant that measures nothing: it prints the seconds and the
// work that it is told, with the CPUs that it may use as a metric.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

func main() {
	seconds := flag.String("seconds", "1", "what to print")
	work := flag.String("work", "done", "what to print")
	status := flag.Int("status", 0, "exit with it")
	data := flag.String("data", "", "folder in which the file rounds grows by a byte")
	n := flag.String("n", "", "appended to the work")
	flag.Parse()
	if *status != 0 {
		fmt.Fprintln(os.Stderr, "demo: told to fail")
		os.Exit(*status)
	}
	size := int64(0)
	if *data != "" {
		size = grow(filepath.Join(*data, "rounds"))
	}
	fmt.Println("words before the result")
	fmt.Printf(`{"work":"%s%s","seconds":%s,"metrics":{"cpus":%d,"runs":%d}}`+"\n", *work, *n, *seconds, runtime.NumCPU(), size)
}

func grow(name string) int64 {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString("x"); err != nil {
		panic(err)
	}
	info, err := f.Stat()
	if err != nil {
		panic(err)
	}
	return info.Size()
}
