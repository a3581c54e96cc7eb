// Command serve serves the embedded runtime on a loopback port, which it
// prints as a master string, until its standard input ends.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"github.com/trainerd/trainerd/trainerd/master"
)

func main() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := master.New(&master.Options{AllowReset: true})
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	fmt.Printf("grpc://%s\n", ln.Addr())
	io.Copy(io.Discard, os.Stdin)
	server.Close()
	if err := <-served; err != nil {
		log.Fatal(err)
	}
}
