//go:build unix

package world

import (
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	forTime = flag.Duration("for", 0, "how long to look for histories that break a rule, with new seeds; each world takes its part")
	oneSeed = flag.Uint64("seed", 0, "the only seed to run, with its story")
	keep    = flag.Bool("keep", false, "leave the folders of the histories where they are")
	only    = flag.String("only", "", "what of the seed's options and lives to keep, by name and number; default: all")
)

// A history is made of a plan of some world, D being what may be planted there.
type worldPlan[P, D any] interface {
	fmt.Stringer
	run(t *testing.T, planted D, story *slog.Logger) (outcome, error)
	smaller() []P
	kept() string
	keepOnly(words []string) P
}

// world looks for histories that break a rule.
type world[P worldPlan[P, D], D any] struct {
	make  func(seed uint64) P
	found []era[P] // seeds that broke a rule once
	n     uint64   // seeds that are tried each time
	share int      // of the time for new ones, in percent; two worlds have a process
}

// An era is a time in which a seed made the plan that it did then.
type era[P any] struct {
	make  func(seed uint64) P
	seeds []uint64
}

// TestWorld runs trainings with the library.
func TestWorld(t *testing.T) {
	// found are:
	//
	//	7254331493762463110   a save budget without anything to save kept a processor busy
	//	13005572666249880941  at a power cut points were lost that a checkpoint had outlived
	//	18181119427545362970  a damaged checkpoint sent a Saver that keeps all back to the one
	//	                      it had begun with; one of V1 in several files was not moved aside
	//	17361603699315917564  a disk that was full at a resume dropped START, and with it the
	//	                      rule which points are overtaken
	//	1198887570938123795   a rewind that failed after the state file was replaced was taken
	//	                      for a lost checkpoint
	//	8405219822929804391   a rewind to a checkpoint that no state file listed, and that was
	//	                      damaged, continued from the one after the fault
	w := world[*plan, *defect]{make: newPlan, n: 12, share: 50}
	w.found = []era[*plan]{
		{firstPlan, []uint64{7254331493762463110, 13005572666249880941, 18181119427545362970, 17361603699315917564}},
		{newPlan, []uint64{1198887570938123795, 8405219822929804391}},
	}
	w.test(t)
}

// TestDaemonWorld runs jobs as the daemon reads them.
func TestDaemonWorld(t *testing.T) {
	// found are:
	//
	//	11495629950936648693  what a killed run had left in best/ stayed there
	//	16861446189175316451  a job that had stopped early made a step more when its files
	//	                      could not be read at once
	//	1951387300354397661   a write that was cut short ended a run with the exit code of
	//	                      errors that nobody knows
	//	5224379915299657710   one of the two files of a V1 checkpoint was verified as a whole
	//
	// and with later events:
	//
	//	4547132903489279305   an overtaken point of a tag that was not written again stayed in
	//	                      the data server
	//	16716485725861338687  one error of the disk at the best checkpoint ended the training
	//	16319857531643532039  a remade logdir had no START, so that of the next resume was ignored
	//	17304490905938049240  a START in a remade logdir dropped a point that came before it
	//	9236296282553467120   of two equal evaluations the later one was better, by a rounding error
	//	12488699654858543662  an events file that a full disk had ended was lost with the power, and
	//	                      with it the START
	//	8781556554727892317   a checkpoint was deleted while it was pinned
	//	13934450382606602696  the last life was too short for a point of the speed, and the world
	//	                      wanted the data server to drop the one before
	//	5943364355993162892   the logdir was deleted during the save of the last step, and what
	//	                      early stopping goes by was lost with it
	//	15168728311377182376  a checkpoint came between a step and its summaries, and a kill then
	//	                      took those
	//	15168728311377180907  a disk that never took a best model
	w := world[*daemonPlan, *daemonDefect]{make: newDaemonPlan, n: 6, share: 50}
	w.found = []era[*daemonPlan]{
		{firstDaemonPlan, []uint64{11495629950936648693, 16861446189175316451, 5224379915299657710, 1951387300354397661}},
		{laterDaemonPlan, []uint64{4547132903489279305, 16716485725861338687, 16319857531643532039, 17304490905938049240, 9236296282553467120, 12488699654858543662, 8781556554727892317}},
		{newDaemonPlan, []uint64{13934450382606602696, 5943364355993162892, 2503641210982407648, 15168728311377182376, 15168728311377180907, 5700523288973871053, 73944721763394722}},
	}
	w.test(t)
}

// TestClusterWorld runs jobs on servers.
func TestClusterWorld(t *testing.T) {
	// found are:
	//
	//	1    summaries of a step that takes more gradients than there are workers came twice
	//	111  a replica whose local step was set just before the model advanced waited for
	//	     an update that lacked its own gradients
	//	557  a replica whose token came as it gave up waiting for it waited without end for
	//	     the next
	//	328  a model that had not advanced was evaluated again, and had two points of a step
	//	125  a worker that started when its chief was about to end had exit code 75
	//	13060240631737458783  the connection broke while the chief put in the first tokens,
	//	                      and its next session waited without end for a gradient
	//	1911104763476638095   a server was lost after the end of the job, and the world had
	//	                      a worker wait for it
	//	2748610928925176750   saves by the servers took longer than their interval, and left
	//	                      the training a step between two of them
	//
	// and with later events:
	//
	//	121  a chief came back to a logdir that was made again without the ID of the run, and
	//	     put an older checkpoint over the model on the servers
	//	173  and a worker did not find the model of its run
	//	11641921424788747055  a chief evaluated for longer than the patience of its workers
	//	818691309682070713    a worker that was stopped before it replaced a lost session had
	//	                      the exit code of an error
	//	12606189120823173191  a checkpoint was announced that was deleted with its logdir while
	//	                      it was saved
	//	2742673788477940558   a save that waited for lost servers kept the logdir locked for the
	//	                      session that replaced the lost one
	//
	// and with two things at once:
	//
	//	11641425289243614751  what an earlier training had left was taken out at a second attempt,
	//	                      and the gradients of the next one were dropped
	//	9103737768474715603   a last save could not be given up while it asked a silent server which
	//	                      variables there are
	//	6142082866258281938   a checkpoint was announced that was deleted with its logdir while
	//	                      its save deleted the one before
	//	1329064503389714789   a worker made the last step while the chief saved, and the world
	//	                      went by the name of the checkpoint
	//	13027511294531821749  a logdir that was removed did not keep a second chief out, before
	//	                      the first had made it again
	//	16133911589881215219  the state file of a logdir that was made again during the first save
	//	                      named that alone, so no start found a checkpoint
	//	17930632338834007361  a worker waited for the last step, which was saved under the name of
	//	                      an earlier one
	//	17930632338834010966  a worker was amid a step when a chief that knew of no model began
	w := world[*clusterPlan, *clusterDefect]{make: newClusterPlan, n: 3, share: 50}
	w.found = []era[*clusterPlan]{
		{firstClusterPlan, []uint64{1, 111, 125, 328, 557, 13060240631737458783, 1911104763476638095, 2748610928925176750}},
		{laterClusterPlan, []uint64{121, 173, 11641921424788747055, 818691309682070713, 12606189120823173191, 2742673788477940558}},
		{newClusterPlan, []uint64{11641425289243614751, 9103737768474715603, 6142082866258281938, 1329064503389714789, 15881525532408900616, 13027511294531821749, 16133911589881215219, 17930632338834007361, 17930632338834010966}},
	}
	w.test(t)
}

// TestChildWorld runs programs of others.
func TestChildWorld(t *testing.T) {
	// found are:
	//
	//	13439358809629938880  the rule for rewinds looked for a checkpoint in a folder of the
	//	                      logdir in the logdir itself
	//	6212175027445376851   a program left its first folder without some of its files on a
	//	                      full disk, and that was announced
	//	9299443719176728879   steps that a program made after the save that it was asked for at
	//	                      a stop, before that was seen, were taken for a lost save
	//	8596851949820640637   a later start of the program ended well, and its first folder,
	//	                      which an earlier one had left in part, was announced
	//
	// and with later events:
	//
	//	6738766847186297841   a power cut gave a damaged file another time, so that it was taken
	//	                      for one that the program had written again
	//	10638095759973890713  of many folders without records, those that a power cut had left
	//	                      in part were taken for whole
	//
	// and with several nodes:
	//
	//	14783019315925155939  a chief whose disk did not take that a start had ended began the
	//	                      next one beside the parts of that on other nodes
	//	5697956288649952788   a chief that was stopped while it waited for the other nodes lost
	//	                      what they had reported
	//	87                    a planted defect of rewinds, see code_defects_test.go
	//
	// and with second names:
	//
	//	2024  a link gave a damaged file another time, so that it was taken for one that the
	//	      program had written again
	//
	// and with disks that are full for hours:
	//
	//	5908366695999718033  a program was started again without a pause, thousands of times
	//	2252796542723272692  the logdir was deleted before a start had reported, and a stop then
	//	                     said that nothing was lost
	//	9642952205785274491  a worker whose disk had been full began a start that was over on
	//	                     the chief
	//	1487812589677206144  a power cut took the points that a node had passed on before a
	//	                     checkpoint was announced
	//	2895347766580894459  steps that a program made after it had saved a folder at a stop,
	//	                     before enough looks had found that, were taken for a lost save
	//	14782788061653780526  a chief that took over a job that was complete left a checkpoint
	//	                     more than are to stay
	//	15471892830549813625  what a part of the program reported after another had failed was
	//	                     taken for lost by a stop
	//	12364302395217954026  a disk on which no folder could be made left a damaged checkpoint to
	//	                     a program that takes the newest
	//	7568604998802363047  steps that were lost because the program was killed were taken for lost
	//	                     by the stop that came in the same moment
	//	17415081335861659976  a machine could not lose its power while the disk was full
	//
	// and with names in turn on several nodes:
	//
	//	7355440162117142891  the copy of a name, from when it was the only one, looked newer than
	//	                     what was saved since
	//	7355440162117144308  what another node had reported at the first save came while that was
	//	                     verified, and was never known
	//	10290580494099620811  a save that did not count was the only one to show that names take
	//	                      turns
	//	15273722397835775882  what was written again, after a full disk, was taken for another
	//	                      writer's
	//	15273722397835776007  names of an earlier start, which looked like steps, hid that those
	//	                      of this one take turns
	w := world[*childPlan, *childDefect]{make: newChildPlan, n: 6, share: 50}
	w.found = []era[*childPlan]{
		{firstChildPlan, []uint64{13439358809629938880, 6212175027445376851, 9299443719176728879, 8596851949820640637}},
		{laterChildPlan, []uint64{6738766847186297841, 10638095759973890713}},
		{nodesChildPlan, []uint64{14783019315925155939, 5697956288649952788, 87}},
		{loudChildPlan, []uint64{2024, 5908366695999718033, 2252796542723272692, 9642952205785274491, 1487812589677206144, 14806681570396370016, 10882080613326252956, 5569815108241387682, 2895347766580894459, 14782788061653780526, 15471892830549813625, 12364302395217954026, 18226638146022973731, 1255019052764393553, 11990372989962002167, 7568604998802363047, 17415081335861659976}},
		{newChildPlan, []uint64{7355440162117142891, 7355440162117144308, 10290580494099620811, 15273722397835775882, 15273722397835776007, 12744480731990457528, 16727060413770479291, 10196165264719049629}},
	}
	w.test(t)
}

func (w *world[P, D]) test(t *testing.T) {
	if *oneSeed != 0 {
		w.tell(t, *oneSeed)
		return
	}
	var all outcome
	failures := 0
	try := func(seed uint64) {
		o, ok := w.try(t, seed)
		all.add(o)
		if !ok {
			failures++
		}
	}
	for _, seed := range w.foundSeeds() {
		try(seed)
	}
	n := w.n // the same each time: what is new is looked for with -for
	if testing.Short() {
		n /= 3
	}
	first, began, share := uint64(1), time.Now(), *forTime*time.Duration(w.share)/100
	enough := 1
	if share > 0 {
		first, n, enough = rand.Uint64(), 1<<62, 10 // one failure in an hour may hide another
	}
	count := uint64(0)
	for ; count < n && failures < enough && (share == 0 || time.Since(began) < share); count++ {
		try(first + count)
	}
	t.Logf("%.1f days of training in %v, %d configurations, %d faults and requests, %d failures; %d seeds from %d",
		all.trained.Hours()/24, time.Since(began).Round(time.Second), count+uint64(len(w.foundSeeds())), all.faults, failures, count, first)
}

func (o *outcome) add(p outcome) {
	o.trained += p.trained
	o.faults += p.faults
}

// plan returns that of a seed.
func (w *world[P, D]) plan(seed uint64) P {
	for _, e := range w.found {
		if slices.Contains(e.seeds, seed) {
			return e.make(seed)
		}
	}
	return w.make(seed)
}

func (w *world[P, D]) foundSeeds() (all []uint64) {
	for _, e := range w.found {
		all = append(all, e.seeds...)
	}
	return all
}

// tell runs one seed, with its story.
func (w *world[P, D]) tell(t *testing.T, seed uint64) {
	p := w.plan(seed)
	if *only != "" {
		p = p.keepOnly(strings.Fields(*only))
	}
	t.Log(p)
	var none D
	if _, err := p.run(t, none, slog.New(slog.NewTextHandler(os.Stdout, nil))); err != nil {
		t.Error(err)
	}
}

// try runs one seed, and reports whether it kept the rules. If not, it prints the
// smallest history that breaks them.
func (w *world[P, D]) try(t *testing.T, seed uint64) (outcome, bool) {
	var none D
	p := w.plan(seed)
	slow := time.AfterFunc(time.Minute/4, func() { fmt.Fprintf(os.Stderr, "this history takes long: %v\n", p) })
	defer slow.Stop()
	o, err := p.run(t, none, nil)
	if err == nil {
		return o, true
	}
	t.Logf("%v\n%v", p, err)
	small, err := shrink(p, err, P.smaller, func(q P) error { _, err := q.run(t, none, nil); return err })
	t.Errorf("the smallest of it: %v\n%v\nrepeat with: go test ./trainerd/world -run %s -v -seed %d -only '%s'", small, err, t.Name(), seed, small.kept())
	return o, false
}
