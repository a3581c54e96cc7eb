# Everything a user or a developer does. `make` alone lists the targets.
# All of it needs Go only; test and interop use python3 when it is there.

BIN     := bin
PREFIX  ?= /usr/local
INTEROP ?= auto
FUZZTIME ?= 30s
PKG     ?= ./...
COUNT   ?= 6
STEPS   ?= 300000
JOB     ?= examples/digits/digits.toml
# Intervals for many more steps than the example has. TensorBoard shows 1,000 points of a curve at most, and 100
# histograms.
LONG    := --set supervisor.save_model_steps=20000 --set supervisor.save_summaries_steps=4000 --set supervisor.save_summaries_secs=0.25 --set train.eval_steps=10000
AREA    ?= events ckpt loop train
BENCH   ?= -short
CUTS    ?= 40
KILLS   ?= 10
DEPTH   := ./internal/atomicfile ./ckptfmt/ckptdir ./ckptfmt/integrity ./ckptfmt/layout ./ckptfmt/manifest ./ckptfmt/retention ./trainerd/checkpoint ./trainerd/coord
# Its tests ask what a file system can do, as one in memory cannot.
ONDISK  := ./internal/atomicfile
PLANTED = $(if $(filter ./...,$(PKG)),$(DEPTH),$(PKG))
COVERED := $(DEPTH) ./ckptfmt ./tfevents ./trainerd/child,./trainerd/child/found ./trainerd/child/system
TRAINERS_VENV ?= $(BIN)/trainers-venv
FOR     ?= 1h
export INTEROP RETRY

.DEFAULT_GOAL := help
.PHONY: help build run test race interop lint fuzz bench microbench proto asm golden opdefs install soak restarts world planted prove mutants cover trainers planted-trainers systemd slurm crash powercut cluster arm64 cross config package package-test reproducible clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

build: ## build the commands into bin/
	CGO_ENABLED=0 go build -trimpath -o $(BIN)/ ./cmd/...

run: ## the main job: train on the digits for some 20 seconds; kill it and run it again, it resumes (STEPS=300000)
	@CGO_ENABLED=0 go build -trimpath -o $(BIN)/ ./cmd/trainerd ./cmd/ckpt
	@echo "Training for some 20 seconds. Press Ctrl-C, or kill -9 it, and type 'make run' again: it resumes."
	$(BIN)/trainerd run examples/digits/digits.toml --set train.steps=$(STEPS) $(LONG)

cluster: build ## train the digits on TensorFlow servers of this machine (JOB=examples/cluster/graph.toml; CLUSTER='--set cluster.sync=true')
	@interop/venv
	@.venv/bin/python interop/cluster.py --trainerd $(BIN)/trainerd $(JOB) $(CLUSTER)

test: build ## Go tests, then the interop suite (INTEROP=required: leave nothing out)
	@echo "test: Go tests, a line for each package as it ends; minutes the first time, while they are built" >&2
	@.ci/go-test
	@command -v python3 >/dev/null || echo "test: left out the pages of doc/ that run python3" >&2
	@$(MAKE) --no-print-directory interop

race: ## Go tests under the race detector (needs a C compiler)
	go test -timeout 30m -race -short -shuffle=on $(PKG)

interop: build ## check our files against real TensorFlow and TensorBoard (PYTEST='-k name' picks tests)
	@TRAINERD_BIN_DIR="$(CURDIR)/$(BIN)" interop/run

# go fix without stringsbuilder, since += is plainer where a text is short.
lint: ## formatting, vet, modern Go, staticcheck, unused functions, known vulnerabilities, tidy modules, generated code up to date
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo "gofmt: the files above are not formatted" >&2; exit 1; }
	go vet ./...
	go fix -stringsbuilder=false -diff ./...
	cd tools && go vet ./...
	cd tools && go build -o ../$(BIN)/tools/staticcheck honnef.co/go/tools/cmd/staticcheck
	$(BIN)/tools/staticcheck ./...
	cd tools && go build -o ../$(BIN)/tools/deadcode golang.org/x/tools/cmd/deadcode
	@test -z "$$($(BIN)/tools/deadcode -test ./... | tee /dev/stderr)" || { echo "deadcode: nothing uses the functions above" >&2; exit 1; }
	cd tools && go build -o ../$(BIN)/tools/govulncheck golang.org/x/vuln/cmd/govulncheck
	@out=$$($(BIN)/tools/govulncheck ./... 2>&1) || case "$$out" in \
	  *"fetching vulnerabilities"*) echo "govulncheck: its database cannot be reached, so nothing was checked" >&2;; \
	  *) echo "$$out" >&2; exit 1;; esac
	go mod tidy -diff
	cd tools && go mod tidy -diff
	cd tools && go test ./...
	@$(MAKE) --no-print-directory asm
	@git diff --exit-code --stat -- internal/blas internal/crc32c internal/jpeg internal/parallel internal/vec trainerd/runtime/internal/philox || { echo "asm: the assembly differs from its generator; commit what 'make asm' wrote" >&2; exit 1; }
	@$(MAKE) --no-print-directory proto
	@git diff --exit-code --stat -- proto || { echo "proto: the generated code differs from the .proto files; commit what 'make proto' wrote" >&2; exit 1; }

arm64: ## run the tests of the assembly and the recorded programs as arm64 programs (needs qemu-user on other processors)
	@.ci/arm64 $(ARM64)

cross: ## vet code and tests for macOS and Windows (some minutes the first time)
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go vet ./...
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go vet ./...

fuzz: ## run every fuzz target for FUZZTIME (30s each; PKG=./ckptfmt TARGET=State pick some)
	@.ci/fuzz $(FUZZTIME) $(PKG)

bench: ## race against TensorFlow, TensorBoard and others, short form (AREA='events ckpt' picks; BENCH= for the full form)
	@interop/venv
	go run ./bench $(BENCH) -python .venv/bin/python $(AREA)

microbench: ## run the Go benchmarks COUNT times each (6) and summarise them with benchstat
	@mkdir -p $(BIN)/tools
	cd tools && go build -o ../$(BIN)/tools/benchstat golang.org/x/perf/cmd/benchstat
	go test -run '^$$' -bench . -benchmem -count $(COUNT) $(PKG) > $(BIN)/bench.txt
	$(BIN)/tools/benchstat $(BIN)/bench.txt

proto: ## regenerate the Go code of proto/*.proto
	cd tools && go run ./protogen ..

asm: ## regenerate the assembly of internal/blas, internal/crc32c, internal/jpeg, internal/parallel, internal/vec and philox
	cd tools && go run ./asmgen ..

golden: ## make the fixtures again that real TensorFlow writes, and show what changed
	@interop/golden
	git diff --stat -- fixtures internal

opdefs: ## write the tables of TensorFlow's ops and of the types they run on, and doc/ops.md
	@interop/venv
	@for script in internal/opdef/make_*.py; do TF_CPP_MIN_LOG_LEVEL=3 PYTHONDONTWRITEBYTECODE=1 .venv/bin/python $$script || exit 1; done
	go test ./trainerd/runtime -run TestOpsPage -update
	git diff --stat -- internal/opdef doc

install: build ## install the commands, man pages and completions under PREFIX (/usr/local)
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 0755 $(BIN)/trainerd $(BIN)/ckpt $(BIN)/tfevents $(DESTDIR)$(PREFIX)/bin
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	@for c in trainerd ckpt tfevents; do \
	  $(BIN)/$$c man > $(DESTDIR)$(PREFIX)/share/man/man1/$$c.1; \
	  $(BIN)/$$c completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$c; \
	  $(BIN)/$$c completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$c; \
	  $(BIN)/$$c completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$c.fish; \
	done

soak: build ## random jobs as real processes, killed, frozen, stopped, starved; TensorFlow judges (until Ctrl-C, or FOR=1h; SEED=, KIND=)
	@interop/venv
	go test -c -o $(BIN)/world.test ./trainerd/world
	.venv/bin/python interop/soak --bin $(BIN) --keep $(BIN)/soak $(if $(filter-out file,$(origin FOR)),--for $(FOR)) $(if $(SEED),--seed $(SEED)) $(if $(KIND),--kind $(KIND))

restarts: ## ten thousand power cuts and restarts, and two hundred kills, of a library's training (half an hour)
	go test ./trainerd -run TestRestarts -restarts -timeout 60m

world: ## run trainings in a simulated world of random faults for FOR (1h): days pass in milliseconds
	@.ci/world $(FOR)

planted: ## plant defects in the code, and see that the simulated worlds find each (two minutes)
	go test ./trainerd/world -run TestCodeDefectsAreFound -code -count=1 -v

systemd: ## boot a systemd in namespaces and run the service in it: kills, hangs, reboots (needs root)
	go test ./packaging/systemd -systemd -v -count=1

config: ## write doc/config.md, the reference of the config, from the code
	go test ./doc -run TestConfigReference -update

package: ## build .deb, .rpm, images, archives, SBOM and checksums into bin/dist (VERSION=1.2.3, TARGETS=linux/amd64)
	cd tools && go run ./dist $(if $(VERSION),-version $(VERSION)) $(if $(TARGETS),-targets $(TARGETS)) ..

package-test: ## install, upgrade and remove .deb and .rpm on layers above this machine's root, start the image (needs root)
	@packaging/test-packages --check || exit 0; set -ex; \
	  (cd tools && go run ./dist -version 0.0.1 -targets linux/$$(go env GOARCH) -out ../$(BIN)/dist-test/old ..); \
	  (cd tools && go run ./dist -version 0.0.2 -targets linux/$$(go env GOARCH) -out ../$(BIN)/dist-test/new ..); \
	  packaging/test-packages $(BIN)/dist-test/old $(BIN)/dist-test/new

reproducible: ## build all packages twice, in two clones with two build caches, and compare every byte
	packaging/test-reproducible

crash: ## resume from a million states that crashes may leave (a quarter of an hour)
	GOGC=400 go test ./trainerd -run TestCrashStates -crashstates 1000000 -timeout 4h -v

slurm: ## start a Slurm of two nodes and run the batch scripts in it: walltimes, preemption, a lost node, scancel (needs root)
	go test ./packaging/slurm -slurm -v -count=1 -timeout 40m

powercut: ## cut the power of real ext4 and XFS file systems, fill disks (root, loop devices; CUTS=40 in all)
	go test ./bench/faults -count 1 -v -powercuts $(CUTS) $(if $(wildcard .venv/bin/python),-python $(CURDIR)/.venv/bin/python) -timeout 2h

prove: ## prove twelve trainings that resume exactly, and find ten planted bugs in others (needs python3, a minute)
	go test ./cmd/trainerd -run TestProofs -proofs -count=1 -v

mutants: ## plant small mistakes in PKG, and list those that no test of it finds (PKG=./ckptfmt/retention)
	cd tools && go build -o ../$(BIN)/tools/mutate ./mutate
	$(if $(filter-out $(ONDISK),$(PLANTED)),nice -n 15 $(BIN)/tools/mutate . $(filter-out $(ONDISK),$(PLANTED)))
	$(if $(filter $(ONDISK),$(PLANTED)),nice -n 15 $(BIN)/tools/mutate -disk . $(filter $(ONDISK),$(PLANTED)))

cover: ## list the statements of PKG that no test of it runs, but for those excused (PKG=./ckptfmt/retention)
	cd tools && go build -o ../$(BIN)/tools/uncovered ./uncovered
	$(BIN)/tools/uncovered . $(if $(filter ./...,$(PKG)),$(COVERED),$(PKG))

trainers: build $(TRAINERS_VENV)/done ## kill twelve real trainers KILLS times each: PyTorch, transformers, Keras, JAX ... (3 GB of packages; TRAINERS=keras_fit.py picks)
	@interop/venv
	.venv/bin/python interop/trainers/run.py --trainerd $(BIN)/trainerd --python $(TRAINERS_VENV)/bin/python --kills $(KILLS) $(TRAINERS)

planted-trainers: build $(TRAINERS_VENV)/done ## plant bugs of resuming into real trainers, and have `trainerd prove` find each (TRAINERS=keras, TRAINERS=lightning:ema pick)
	@interop/venv
	.venv/bin/python interop/trainers/planted.py --trainerd $(BIN)/trainerd --python $(TRAINERS_VENV)/bin/python $(TRAINERS)

$(TRAINERS_VENV)/done:
	python3 -m venv $(TRAINERS_VENV)
	$(TRAINERS_VENV)/bin/pip install -q -r interop/trainers/requirements.txt
	touch $@

clean: ## remove what was built (never a logdir)
	rm -rf $(BIN) .venv
