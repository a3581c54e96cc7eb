package runtime_test

import (
	"testing"

	"github.com/trainerd/trainerd/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
