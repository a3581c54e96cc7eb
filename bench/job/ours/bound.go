//go:build unix

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/trainerd/trainerd/bench/measure"
)

// kills are the times of the kills, from the begin of a run: those of a Poisson
// process, the same for the same seed.
type kills struct {
	random *rand.Rand
	mean   float64 // seconds
	at     time.Duration
}

func newKills(seed uint64, mean float64) *kills {
	return &kills{random: rand.New(rand.NewPCG(seed, 0)), mean: mean}
}

func (k *kills) next() time.Duration {
	k.at += time.Duration(k.random.ExpFloat64() * k.mean * float64(time.Second))
	return k.at
}

// bound is what is left to a supervisor that adds nothing: the program's own start,
// its saves at the best interval, and the steps since the last of them. Its share is
// Daly's expectation with -supervisor daly, and else that of the very kills of the
// race, or with -supervisor none all of the time.
func bound(_ context.Context, o *options) (*measure.Result, error) {
	c, err := readCalibration(o.data)
	if err != nil {
		return nil, err
	}
	a := c.ideal(newKills(o.seed, c.Mean))
	switch o.supervisor {
	case "daly":
		a.progress = a.wall * c.daly()
	case "none":
		a = account{wall: a.progress, progress: a.progress, reached: c.Steps}
	}
	return &measure.Result{Work: fmt.Sprintf("%d steps", c.Steps), Seconds: a.wall, Metrics: map[string]float64{
		"ettr": a.share(), "in_steps": a.share(), "lost_seconds": a.wall - a.progress, "lost_steps": float64(a.lost), "same_bits": 1, "below_bound": 0, "restart_seconds": 0,
	}}, nil
}

// daly returns the share of the time that advances the model where failures come at
// random, at any moment, by J. T. Daly, A higher order estimate of
// the optimum checkpoint interval for restart dumps (2006), at the best interval.
func (c *calibration) daly() float64 {
	mean, best := c.Mean, 0.
	for every := 1; every <= c.Steps; every++ {
		interval := float64(every) * c.Step
		wall := mean * math.Exp(c.Start/mean) * math.Expm1((interval+c.Save)/mean)
		best = max(best, interval/wall)
	}
	return best
}

// ideal goes through a run by calculation.
func (c *calibration) ideal(k *kills) account {
	kill := k.next().Seconds()
	a := account{reached: c.Steps}
	saved, now := 0, 0.
	for saved < c.Steps {
		now += c.Start
		at := saved
		for now <= kill && at < c.Steps {
			if now += c.Step; now > kill {
				break
			}
			if at++; at%c.Every == 0 {
				now += c.Save
			}
			if now <= kill && at%c.Every == 0 {
				saved = at
			}
		}
		if now <= kill {
			break
		}
		a.lost += at - saved
		now = kill
		kill = k.next().Seconds()
	}
	a.wall = now
	a.progress = float64(c.Steps) * c.Step
	return a
}
