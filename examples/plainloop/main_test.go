package main

import (
	"testing"

	"github.com/trainerd/trainerd/examples/internal/killtest"
)

func TestMain(m *testing.M) { killtest.Main(m, main) }

func TestKillAndResume(t *testing.T) { killtest.Run(t, 50000, 120000) }
