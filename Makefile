# Everything a person runs on a working tree. `make demo` and `make check` need a Debian 12 or 13, or
# Ubuntu 24.04 machine and nothing else: they install packages, build, and fill .venv themselves.
# Not as root, `sudo` is used for the packages and for what runs in the lab.

.DEFAULT_GOAL := help
.PHONY: help demo check check-all build native man packages lint format clean

BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -E)
GIVE_BACK = [ "$$(id -u)" = 0 ] || sudo chown -R "$$(id -u):$$(id -g)" out

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: build ## start a real program wide, four ways, on a cluster in a box: table and figure
	@mkdir -p out/demo
	@status=0; $(SUDO) $(BIN)/python bench/startup.py --demo || status=$$?; $(GIVE_BACK); exit $$status

check: build ## lint and all tests; ends with the counts
	@$(BIN)/python tools/check.py

check-all: build ## make check, and the tests that take long
	@$(BIN)/python tools/check.py --all

build: packages ## .venv with Brigade in it, as a user would install it
	@tools/bootstrap

native: packages ## only the native parts, into build/native, for development
	@cmake -S . -B build -G Ninja >/dev/null
	@cmake --build build

man: build ## the manual pages, into build/man
	@$(BIN)/python tools/man.py build/man

lint: build ## formatter, linter and types, without changing anything
	@$(BIN)/python tools/check.py lint

format: build ## format every C and Python file in place
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix-only .
	@find src include examples tests bench -name '*.[ch]' | xargs -r $(BIN)/clang-format -i

packages: ## install the Debian packages of tools/packages.txt that are missing
	@tools/packages

clean: ## remove .venv and everything built
	rm -rf .venv build
