# The targets of a developer, from a fresh clone on Debian or Ubuntu: `make test` needs Python 3.11 with venv, gets a Consul,
# and takes three minutes on two cores. `make test-all` runs every other test, and tests/stages.py what CI runs of them.
# PYTHON=… names the interpreter, WORKERS=… the number of tests that run at once.

# Most tests wait for a process or a clock, so there are two workers for each core. Each worker has a Consul of its own,
# so their number has a limit.
WORKERS ?= $(shell n=$$(($$(nproc) * 2)); echo $$((n > 16 ? 16 : n)))
TESTS ?= tests
# Folders with targets of their own.
ELSEWHERE = --ignore=tests/system/programs --ignore=tests/system/machine --ignore=tests/system/applications \
    --ignore=tests/system/packaging --ignore=tests/system/editors --ignore=tests/consul/devagent
PAGE = tests/system/programs/page
# The faults of `make test-cluster` and their order; the seeds of `make simulate`.
SEED ?= 1
SEEDS ?= 1-1000
# --minutes=4: the mutants of new lines first, then others, until that time is over.
MUTANTS ?=
# "--runs=20 reset": only the scenes of `make test-watchdog` with a reset, each so often.
WATCHDOG ?=
# The same for `make test-fence`: "--runs=5 --at-once=1 killed" for its figures.
FENCE ?=
# "--minutes=60", "--faults=100": other figures of `make test-soak` and `-cluster`.
SOAK ?=
CLUSTER ?=
# How often a test that fails is tried again; the summary names it as "rerun". CI uses 1, because its machine may stall.
RERUNS ?= 0
PYTHON ?=
export PYTHON
# pytest keeps the tests that it has compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help help-all setup venv consul lint demo deb test run-tests slowest test-unit test-pythons test-all test-long test-orders test-programs test-page test-devagent test-packaging test-applications test-systemd test-soak test-cluster test-watchdog test-fence simulate answers mutants bench dist zipapp compiler root clean

help:
	@echo "make demo      set up whatever is missing, then watch an election, a failover and a semaphore"
	@echo "make test      set up what is missing, check style and types, run each test of up to some 3 s (3 minutes;"
	@echo "               TESTS=tests/unit/core for some tests, WORKERS=1 for one after the other)"
	@echo "make test-unit the quickest: tests of single modules, which ask no Consul (under a minute)"
	@echo "make test-all  every other test but test-orders, in under an hour; what needs root, as root"
	@echo "make lint      style and types only"
	@echo "make mutants   break each rule of the core and the driver once: its tests must notice (MUTANTS=--minutes=4: fewer)"
	@echo "make bench     measure on this machine: one table, every figure with its limit (one row needs root);"
	@echo "               .venv/bin/python -m bench pacemaker: beside Pacemaker, in booted machines (needs root)"
	@echo "make deb       build the package for Debian 12 and 13 in dist/, as any user; installs nothing"
	@echo "make dist      write a release to dist/: wheel, sdist, single file, requirements with hashes, checksums"
	@echo "make help-all  every other target: the parts of test-all, and some for a change of the core"

help-all: help
	@echo "make setup     .venv and a Consul for the tests, nothing else"
	@echo "make slowest   make test once more: the tests that take three quarters of its processor time"
	@echo "make test-pythons  the tests of make test-unit with every other Python that is found"
	@echo "make test-long the long tests: real outages, many orders of events, sixty seeds of the simulation"
	@echo "make test-orders  every order of events to its end, for a change of the core (hours)"
	@echo "make simulate  ten minutes of several supervisors for each seed, in no time (SEEDS=1-1000, or one for its table)"
	@echo "make test-cluster  break a real cluster: two must never hold (needs root; SEED=7: other faults)"
	@echo "make test-watchdog  virtual machines with a watchdog device: a node that fails is reset in time, no other one"
	@echo "make test-fence  virtual machines with a fence device: another node acts soon, and never beside the former"
	@echo "make test-soak  twice a hundred elections, three minutes of disturbances: memory, descriptors, children stay flat"
	@echo "make test-programs  beside HAProxy, Prometheus, Alertmanager and shells (installs them when root)"
	@echo "make test-page  the status page in a browser (as above)"
	@echo "make test-devagent  the agent of demo and drill answers as Consul does"
	@echo "make test-packaging  wheel, sdist, single file and Debian package on every Python that is found, editors"
	@echo "make test-applications  PostgreSQL, ActiveMQ and others fail over by the files of examples/ (as above)"
	@echo "make test-systemd  in a small Debian that is booted for it (needs root)"
	@echo "make answers   print what each answer of Consul is taken for, by request"
	@echo "make zipapp    write only the single file, dist/consul-supervisor.pyz"
	@echo "make clean     remove whatever the above have made"

setup: venv consul

venv:
	@tests/setup/make_venv.sh

consul: venv
	@.venv/bin/python tests/setup/get_consul.py

lint: venv
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy --strict

test: setup
	@$(MAKE) --no-print-directory -j2 lint run-tests

# Beside lint, of which one program uses one core. In a fresh clone one process compiles the tests, not each worker.
run-tests: venv
	@[ -d tests/__pycache__ ] || .venv/bin/python -m pytest --collect-only -qq $(ELSEWHERE) tests >/dev/null
	.venv/bin/python -m pytest --reruns $(RERUNS) -n $(WORKERS) --dist worksteal -m "not long" $(ELSEWHERE) $(TESTS)

# Where the time goes: the tests that together take three quarters of the processor time.
slowest: setup
	.venv/bin/python -m pytest -q -p tests.slowest -n $(WORKERS) --dist worksteal -m "not long" $(ELSEWHERE) $(TESTS)

test-unit: setup
	.venv/bin/python -m pytest --reruns $(RERUNS) -n $(WORKERS) --dist worksteal -m "not long" tests/unit

# With every other Python that is found, because each is built in another way and has another asyncio.
test-pythons: setup
	@for python in $$(.venv/bin/python -m tests.system.packaging.interpreters); do \
	    venv=.cache/venvs/$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    PYTHON=$$python VENV=$$venv tests/setup/make_venv.sh && \
	    $$venv/bin/python -m pytest --reruns $(RERUNS) -n $(WORKERS) --dist worksteal -m "not long" tests/unit || exit 1; \
	done

# Two targets at a time; tests/stages.toml lists them.
test-all: setup
	@.venv/bin/python -m tests.stages

# Tests that take more than some 3 s. A test that hangs is shown late: some rounds take minutes, and the watchdog
# that prints where a test is has ended a Python that was only busy.
test-long: setup
	.venv/bin/python -m pytest --reruns $(RERUNS) -n $(WORKERS) --dist worksteal -m "long and not orders" -o faulthandler_timeout=2400 $(ELSEWHERE) $(TESTS)

# Not in test-all, because it takes longer than all of that: twenty minutes for some single walks.
test-orders: setup
	.venv/bin/python -m pytest -n $(WORKERS) --dist worksteal -m orders -o faulthandler_timeout=2400 tests/models

test-programs: setup
	@tests/setup/get_programs.sh
	.venv/bin/python -m pytest --reruns $(RERUNS) -n $(WORKERS) --dist worksteal -o faulthandler_timeout=600 --ignore=$(PAGE) tests/system/programs

test-page: setup
	@tests/setup/get_programs.sh
	.venv/bin/python -m pytest --reruns $(RERUNS) -n $(WORKERS) --dist worksteal -o faulthandler_timeout=600 $(PAGE)

test-devagent: setup
	.venv/bin/python -m pytest --reruns $(RERUNS) -n $(WORKERS) --dist worksteal tests/consul/devagent

test-packaging: setup
	@tests/setup/get_language_server.sh
	@tests/setup/get_debhelper.sh
	@[ "$$(id -u)" != 0 ] || tests/setup/get_image_base.sh
	.venv/bin/python -m pytest --reruns $(RERUNS) -n $(WORKERS) --dist loadfile -o faulthandler_timeout=600 tests/system/packaging tests/system/editors

# Two at a time: each is several servers, and some of them are Java's.
test-applications: setup
	@tests/setup/get_applications.sh
	.venv/bin/python -m pytest --reruns $(RERUNS) -n 2 --dist loadfile -o faulthandler_timeout=300 tests/system/applications

test-systemd: root setup
	@tests/system/machine/get_debian.sh
	@tests/setup/get_debhelper.sh
	@tests/setup/get_ansible.sh
	.venv/bin/python -m pytest --reruns $(RERUNS) -n 3 --dist loadfile -o faulthandler_timeout=600 tests/system/machine

test-soak: setup
	.venv/bin/python -m tests.system.soak --seed $(SEED) $(SOAK)

test-cluster: root setup
	.venv/bin/python -m tests.system.cluster --seed $(SEED) $(CLUSTER)
	.venv/bin/python -m tests.system.cluster --room

# qemu emulates the machines, so this needs neither root nor KVM.
test-watchdog: setup
	@tests/setup/get_machines.sh
	.venv/bin/python -m tests.system.watchdog --reruns $(RERUNS) $(WATCHDOG)

# As test-watchdog, with Consul on the machines. Not in test-all, because its times need a host that is not overloaded.
# SHARE=1/5 in the environment: every fifth scene. SILENCE_S=600: outages of Consul that last ten minutes.
test-fence: setup
	@tests/setup/get_machines.sh
	.venv/bin/python -m tests.system.fence --reruns $(RERUNS) $(FENCE)

simulate: setup
	.venv/bin/python -m tests.models.simulation $(SEEDS)

demo: venv
	@.venv/bin/consul-supervisor demo

deb: venv
	@PYTHON=.venv/bin/python debian/build.sh

answers: venv
	@.venv/bin/python -m tests.unit.answers

mutants: setup
	.venv/bin/python -m tests.mutants $(MUTANTS)

bench: compiler setup
	.venv/bin/python -m bench

dist: venv
	.venv/bin/python -m release.addresses
	.venv/bin/python -m build --no-isolation --outdir dist .
	.venv/bin/python -m release.single_file dist
	.venv/bin/python -m release.requirements dist
	cd dist && sha256sum $$(ls | grep -v SHA256SUMS) >SHA256SUMS

zipapp: venv
	.venv/bin/python -m build --no-isolation --wheel --outdir dist .
	.venv/bin/python -m release.single_file dist

root:
	@[ "$$(id -u)" = 0 ] || { echo 'cannot go on: network namespaces and machines need root; run it with sudo.' >&2; exit 1; }

compiler:
	@command -v cc >/dev/null || { echo 'cannot measure: no C compiler for the stamp program; `apt install gcc libc6-dev` brings one.' >&2; exit 1; }

clean:
	rm -rf .venv .cache dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
