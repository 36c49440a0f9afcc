# The front door. Every target installs what it lacks (Debian: apt-get, as root or through sudo).

PREFIX ?= /usr/local
export DESTDIR

.PHONY: help tour test conformance bench lab install clean

help:
	@echo 'make tour      see Interlock at work: a handful of small programs, explained'
	@echo 'make test      build and test with gcc, clang, ASan+UBSan, TSan and the verifier'
	@echo 'make conformance  run the same Win32 programs under Wine and with Interlock, and compare'
	@echo 'make bench     measure'
	@echo 'make lab       run the scenarios and the known bugs under the explorer'
	@echo 'make install   install below PREFIX=$(PREFIX), staged below DESTDIR if that is set'
	@echo 'make clean     remove everything that was built'

tour:
	@scripts/ensure-deps build
	@scripts/tour

test:
	@scripts/ensure-deps build test tools
	@scripts/test

conformance:
	@scripts/ensure-deps build test conformance
	@scripts/conformance

bench:
	@scripts/ensure-deps build
	@scripts/bench

lab:
	@scripts/ensure-deps build
	@scripts/lab

install:
	@scripts/ensure-deps build
	@scripts/configure build/install --prefix='$(PREFIX)' -Dtests=disabled
	@meson install -C build/install
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

clean:
	rm -rf build
