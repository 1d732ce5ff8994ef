# zhen's commands: `make help` lists them. Needs GNU make 3.81 or newer, and Python 3.10 to 3.13.
#
# What follows a target goes on to Hydra:      make train model=small trainer.max_epochs=3
# Words that make would keep for itself:       make train ARGS='~callbacks.samples name=${now:%H}'

VENV := .venv
# The Python to make VENV with; empty: the first that will do.
PYTHON ?=

TARGETS := help setup data-check train sweep submit evaluate translate attention compare reproduce \
	corpus bench test test-fast soak lint format clean
.PHONY: $(TARGETS)
# In order even under -j: `make train evaluate` evaluates what was trained.
.NOTPARALLEL:
.DEFAULT_GOAL := help

# Which targets take what. A variable of make's command line that is not listed is an override.
TAKE_OVERRIDES := data-check train sweep submit evaluate translate attention compare reproduce
TAKE_ARGS := $(TAKE_OVERRIDES) corpus bench test test-fast
TAKE_BASE := compare
TAKE_CKPT := evaluate translate attention
TAKE_DRY := submit
TAKE_FILE := translate
TAKE_OUT := data-check translate attention compare
TAKE_RUN := reproduce
TAKE_RUNS := compare
TAKE_SORT := compare
TAKE_TARGET := attention
TAKE_TEXT := translate attention
TAKE_WHERE := compare
SETTINGS := ARGS BASE CKPT DRY FILE OUT RUN RUNS SORT TARGET TEXT WHERE

GIVEN := $(foreach v,$(.VARIABLES),$(if $(filter command,$(origin $v)),$v))
OVERRIDES := $(filter-out $(SETTINGS) PYTHON VENV,$(GIVEN))

# Refuse, before any work, what would be dropped in silence or come up only after the training.
STRAY := $(filter-out $(TARGETS),$(MAKECMDGOALS))
ifneq ($(strip $(STRAY)),)
  $(error $(STRAY): no target (see `make help`) and no key=value. Overrides of other forms go through ARGS, as in: make train ARGS='~key +new=1')
endif
refuse_unless_taken = $(if $(filter $(TAKE_$1),$(MAKECMDGOALS)),,$(error $2: only these targets take it: $(TAKE_$1)))
$(foreach s,$(filter $(SETTINGS),$(GIVEN)),$(call refuse_unless_taken,$s,$s=))
$(if $(OVERRIDES),$(call refuse_unless_taken,OVERRIDES,$(OVERRIDES:%=%=)))

# make would expand each of these for the environment of every recipe: `TEXT='$(5'` would end it, and
# `x='$(shell ...)'` would run. forward.py reads them from MAKEOVERRIDES, where they are as given.
$(foreach v,$(GIVEN),$(eval unexport $v))
export ZHEN_MAKEOVERRIDES = $(MAKEOVERRIDES)

PY = "$(VENV)/bin/python"
UP_TO_DATE = sh scripts/setup.sh "$(VENV)" "$(PYTHON)"
takes = $(foreach k,OVERRIDES $(SETTINGS),$(if $(filter $@,$(TAKE_$k)),$k))
FORWARD = exec $(PY) scripts/forward.py $$PPID "$(takes)" $(PY)

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  Hydra overrides follow the target:  make train model=small trainer.max_epochs=3"
	@echo "  Other forms go through ARGS:        make train ARGS='~key +new=1 name=\$${other}'"
	@echo "  Another Python (3.10 to 3.13):      make setup PYTHON=python3.12"

setup: ## install into .venv what the other commands need (they do it themselves)
	@$(UP_TO_DATE)

data-check: setup ## look a corpus over before training: data=files data.train=path; OUT=folder
	@$(FORWARD) -m zhen.data_check

train: setup ## train, test the best checkpoint, print a summary
	@$(FORWARD) -m zhen.train

sweep: setup ## train many: model=tiny,small seed=range(0,3); sweep=optuna; resume=last
	@$(FORWARD) -m zhen.sweep

submit: setup ## train on a Slurm cluster: lists make a job array; DRY=1 prints the batch script
	@$(FORWARD) -m zhen.submit

evaluate: setup ## score a checkpoint on the test sets: CKPT=path, else the newest run's best
	@$(FORWARD) -m zhen.evaluate

translate: setup ## translate TEXT="..." or FILE=path or standard input; OUT=path, CKPT=path
	@$(FORWARD) -m zhen.translate

attention: setup ## show where each head looks: TEXT="..." TARGET="..."; OUT=folder, CKPT=path
	@$(FORWARD) -m zhen.attention

compare: setup ## runs side by side: RUNS="a/* b/*" WHERE="model=tiny" SORT=key BASE=run OUT=file
	@$(FORWARD) -m zhen.compare

reproduce: setup ## make a run again and compare its scores: RUN=directory, else the newest
	@$(FORWARD) -m zhen.reproduce

corpus: setup ## rebuild the embedded corpus from its grammar, byte for byte
	@$(FORWARD) scripts/phrasebook/build.py

bench: setup ## measure: ARGS='decode CHECKPOINT', 'data --pairs 1000000' or 'train --corpus T'
	@$(FORWARD) scripts/bench.py

# Most tests wait for a process that they started, so two at a time take little more than half as
# long. A file's tests stay together, with the runs that they share.
PARALLEL := --numprocesses=logical --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

test: setup ## run all tests; ARGS='-k name' goes to pytest
	@$(FORWARD) -m pytest $(PARALLEL)

test-fast: setup ## run the tests without the slow ones
	@$(FORWARD) -m pytest $(PARALLEL) -m "not slow"

soak: setup ## kill a training twenty times, and see it end as if nobody had touched it
	@ZHEN_SOAK_KILLS=20 $(FORWARD) -m pytest tests/test_soak.py tests/training/test_checkpoints.py

lint: setup ## check style, format and types
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check .
	@$(PY) -m mypy --no-error-summary

format: setup ## put the code into its format, and mend what ruff can
	@$(PY) -m ruff check --quiet --fix .
	@$(PY) -m ruff format --quiet .

# What `clean` removes, with the kinds of entries in zhen's own cache one by one.
CACHES := .cache/* .cache .pytest_cache .hypothesis .mypy_cache .ruff_cache .coverage build dist src/*.egg-info

clean: ## remove caches and build leftovers, telling their size; runs/, data/ and the environment stay
	@for path in $(CACHES); do [ ! -e "$$path" ] || du -sh "$$path"; done
	@rm -rf $(CACHES)
	@find src scripts tests -name __pycache__ -type d -prune -exec rm -rf {} +
