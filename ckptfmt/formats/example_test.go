package formats_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/formats"
)

// A file is read whatever its format.
func ExampleFind() {
	file, err := formats.Find("../../fixtures/keras/model.keras")
	if err != nil {
		log.Fatal(err)
	}
	r, err := file.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	fmt.Println(file.Kind)
	for t, err := range r.Tensors() {
		if err != nil {
			log.Fatal(err)
		}
		if strings.HasPrefix(t.Name, "head/") {
			fmt.Println(t.Name, dtype.Name(t.DType), t.Shape)
		}
	}
	t, err := r.Lookup("optimizer/learning_rate")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ckptfmt.Values[float32](t))
	// Output:
	// a model of Keras 3 (.keras)
	// head/bias float32 [2]
	// head/kernel float32 [4 2]
	// [0.001] <nil>
}
