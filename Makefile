# Every target installs the packages that it needs (Debian: apt-get, as root or through sudo).

PREFIX ?= /usr/local
export DESTDIR

.PHONY: help tour test conformance cross bench lab proof mutate fuzz fuzz-readers soak chaos clients reference amalgamation uses deb rpm dist
.PHONY: install clean

help:
	@echo 'make tour      run and explain a dozen small programs'
	@echo 'make test      build and test with gcc, clang, ASan+UBSan, TSan and the verifier'
	@echo 'make conformance  run the same Win32 programs under Wine and with Interlock, and compare'
	@echo 'make cross     build for aarch64, riscv64 and musl, and run the tests there'
	@echo 'make bench     compare Interlock with other libraries (FULL=1: everything; ROWS=pattern: some rows)'
	@echo 'make lab       run the scenarios and the known bugs under the explorer, count cache lines (MINUTES=10)'
	@echo 'make proof     check the models with spin and the cores with GenMC, explore every primitive, write docs/proof.md (MINUTES=30)'
	@echo 'make mutate    break the library in one place at a time and report which mutants the tests detect (MUTANTS=n per file)'
	@echo 'make fuzz      compare random calls by several threads with a model, under ASan (MINUTES=1)'
	@echo 'make fuzz-readers  fuzz the debugger with damaged input, under ASan (MINUTES=1)'
	@echo 'make chaos     kill processes that share objects, a hundred per second, and audit the survivors (MINUTES=1)'
	@echo 'make soak      run all primitives at once under ASan and TSan, with terminated threads, forks, failed allocations (MINUTES=10)'
	@echo 'make clients   build Windows sources with interlock cc and run their tests (CLIENTS="zstd sqlite")'
	@echo 'make reference generate docs/api.md from the comments of the public headers'
	@echo 'make amalgamation  write the library as two files, build/amalgamation/interlock.c and .h (PREFIX_SYMBOLS=il_)'
	@echo 'make uses      test in full every way to use it: CMake, Meson, amalgamation, musl-gcc, examples under memcheck'
	@echo 'make deb       build the Debian packages from the last commit'
	@echo 'make rpm       build RPM packages from the last commit'
	@echo 'make dist      write the release tarball and its checksum from the last commit'
	@echo 'make install   install below PREFIX=$(PREFIX), staged below DESTDIR if that is set'
	@echo 'make clean     remove all build results'

tour:
	@scripts/ensure-deps build
	@scripts/ensure-deps debugger
	@scripts/tour

test:
	@scripts/ensure-deps build test tools
	@scripts/test

conformance:
	@scripts/ensure-deps build test conformance
	@scripts/conformance

cross:
	@scripts/ensure-deps build cross
	@scripts/cross

bench:
	@scripts/ensure-deps build
	@scripts/ensure-deps bench
	@scripts/bench $(if $(FULL),--full) $(if $(ROWS),--rows '$(ROWS)') $(BENCH_OPTIONS)

lab:
	@scripts/ensure-deps build lab
	@scripts/lab $(if $(MINUTES),--minutes $(MINUTES))

proof:
	@scripts/ensure-deps build proof
	@scripts/proof $(if $(MINUTES),--minutes $(MINUTES)) $(PROOF_OPTIONS)

mutate:
	@scripts/ensure-deps build test
	@scripts/mutate --survey --table $(if $(MUTANTS),--sample $(MUTANTS))

fuzz:
	@scripts/ensure-deps build test
	@scripts/fuzz $(or $(MINUTES),1) $(FUZZ_OPTIONS)

fuzz-readers:
	@scripts/ensure-deps build test tools
	@scripts/fuzz --readers $(or $(MINUTES),1) $(FUZZ_OPTIONS)

soak:
	@scripts/ensure-deps build test tools
	@scripts/soak $(if $(MINUTES),--minutes $(MINUTES)) $(SOAK_OPTIONS)

clients:
	@scripts/ensure-deps build clients
	@scripts/clients $(CLIENTS)

chaos:
	@scripts/ensure-deps build test
	@scripts/chaos $(or $(MINUTES),1)

reference:
	@scripts/reference.py

amalgamation:
	@scripts/ensure-deps build
	@scripts/amalgamation $(if $(PREFIX_SYMBOLS),--prefix $(PREFIX_SYMBOLS))

uses:
	@scripts/ensure-deps build test tools
	@scripts/uses

deb:
	@scripts/ensure-deps build tools package
	@scripts/package

rpm:
	@scripts/ensure-deps build tools rpm
	@scripts/rpm

dist:
	@scripts/ensure-deps build
	@scripts/configure build/dist -Dtests=disabled -Dbench=disabled
	@meson dist -C build/dist --no-tests
	@cd build/dist/meson-dist && sha256sum --check *.sha256sum

install:
	@scripts/ensure-deps build debugger
	@scripts/configure build/install --prefix='$(PREFIX)' -Dwerror=false -Dtests=disabled -Dbench=disabled
	@meson install -C build/install
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

clean:
	rm -rf build
