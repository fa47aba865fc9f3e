# muster: one Makefile, not recursive.  "make help" lists the targets.
#
# Sources are found by folder: every common/*/*.c goes into libmuster.a, every
# file of a program's folder but main.c into that program's archive (so that
# unit tests and fuzzers link against the very objects that ship).  A variant
# (release, asan, fuzz) builds below build/VARIANT and shares nothing.

VERSION := $(shell cat VERSION)
VARIANT ?= release
B       := build/$(VARIANT)
PREFIX  ?= /usr
DESTDIR ?=
DEPS    ?= yes
V       ?= 0
Q       := $(if $(filter 1,$(V)),,@)

PROGRAMS := proxyd nodeagent clusterctl

# ---- flags --------------------------------------------------------------

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wwrite-strings -Wformat=2 -Wvla -Werror
CPPFLAGS += -D_GNU_SOURCE -I. -I$(B)/gen -DMUSTER_VERSION='"$(VERSION)"'
HARDEN_C := -fPIE -fstack-protector-strong -fno-plt
HARDEN_L := -pie -Wl,-z,relro,-z,now,-z,noexecstack,--as-needed
FUZZER   := -fsanitize=fuzzer-no-link,address,undefined

CFLAGS_release := -O2 -g -D_FORTIFY_SOURCE=2 $(HARDEN_C)
LDFLAGS_release := $(HARDEN_L)
CFLAGS_asan := -O1 -g -fno-omit-frame-pointer \
	-fsanitize=address,undefined -fno-sanitize-recover=all $(HARDEN_C)
LDFLAGS_asan := -fsanitize=address,undefined -pie
CFLAGS_fuzz := -O1 -g -fno-omit-frame-pointer $(FUZZER) \
	-fno-sanitize-recover=all -DMUSTER_FUZZ
LDFLAGS_fuzz := -fsanitize=address,undefined
CC_fuzz := clang

CC      := $(or $(CC_$(VARIANT)),$(if $(filter default,$(origin CC)),gcc,$(CC)))
CFLAGS_ALL  = -std=gnu17 $(WARN) $(CFLAGS_$(VARIANT)) $(CFLAGS)
LDFLAGS_ALL = $(LDFLAGS_$(VARIANT)) $(LDFLAGS)

LIBS_common     := -lsqlite3 -ljansson -lsodium -levent_core -levent_extra
LIBS_proxyd     := -lssl -lcrypto -lm -lz -lbrotlienc
LIBS_nodeagent  :=
LIBS_clusterctl :=
# What only tests need: to undo what the proxy compresses.
LIBS_test       := -lcmocka -lbrotlidec

# ---- sources ------------------------------------------------------------

SRC_common := $(sort $(wildcard common/*/*.c))
SRC_all_of  = $(sort $(wildcard $(1)/*.c $(1)/*/*.c))
SRC_of      = $(filter-out $(1)/main.c,$(call SRC_all_of,$(1)))
OBJ         = $(patsubst %.c,$(B)/o/%.o,$(1))

UNIT_SRC  := $(sort $(wildcard tests/unit/*/test_*.c))
UNIT_BIN  := $(patsubst %.c,$(B)/%,$(UNIT_SRC))
FUZZ_SRC  := $(sort $(wildcard tests/fuzz/*/fuzz_*.c))
FUZZ_BIN  := $(patsubst %.c,$(B)/%,$(FUZZ_SRC))
BINARIES  := $(addprefix $(B)/,$(PROGRAMS))
TOOL_SRC  := $(sort $(wildcard tests/bench/*.c tests/integration/*.c))
TOOL_BIN  := $(patsubst %.c,$(B)/%,$(TOOL_SRC))

SCHEMA_SQL := $(sort $(wildcard schema/[0-9]*.sql))

.PHONY: all binaries units tools check unit integration asan fuzz fuzzers lint \
	bench demo install uninstall deb clean help format \
	deps-build deps-demo deps-test deps-lint deps-bench
.DEFAULT_GOAL := all
.SECONDARY:

all: binaries

binaries: $(BINARIES)
units: $(UNIT_BIN)
tools: $(TOOL_BIN)
fuzzers: $(FUZZ_BIN)

# ---- rules --------------------------------------------------------------

define archive_rule
$(B)/$(1).a: $(call OBJ,$(2))
	$(Q)rm -f $$@
	$(Q)$(AR) rcs $$@ $$^
endef
$(eval $(call archive_rule,libmuster,$(SRC_common)))
$(foreach p,$(PROGRAMS),$(eval $(call archive_rule,$(p),$(call SRC_of,$(p)))))

define program_rule
$(B)/$(1): $(B)/o/$(1)/main.o $(B)/$(1).a $(B)/libmuster.a
	@mkdir -p $$(@D)
	@printf '  LD    %s\n' $$@
	$(Q)$$(CC) $$(CFLAGS_ALL) $$(LDFLAGS_ALL) -o $$@ $$^ \
	    $(LIBS_$(1)) $(LIBS_common)
endef
$(foreach p,$(PROGRAMS),$(eval $(call program_rule,$(p))))

# A test in tests/unit/FOO links with program FOO's archive (FOO = common:
# none), so that it exercises the objects that ship.
define unit_rule
$(B)/tests/unit/$(1)/%: $(B)/o/tests/unit/$(1)/%.o $(2) $(B)/libmuster.a
	@mkdir -p $$(@D)
	@printf '  LD    %s\n' $$@
	$(Q)$$(CC) $$(CFLAGS_ALL) $$(LDFLAGS_ALL) -o $$@ $$^ $(LIBS_test) \
	    $(LIBS_$(1)) $(LIBS_common)
$(B)/tests/fuzz/$(1)/%: $(B)/o/tests/fuzz/$(1)/%.o $(2) $(B)/libmuster.a
	@mkdir -p $$(@D)
	@printf '  LD    %s\n' $$@
	$(Q)$$(CC) $$(CFLAGS_ALL) $$(LDFLAGS_ALL) -fsanitize=fuzzer -o $$@ $$^ \
	    $(LIBS_test) $(LIBS_$(1)) $(LIBS_common)
endef
$(eval $(call unit_rule,common,))
$(foreach p,$(PROGRAMS),$(eval $(call unit_rule,$(p),$(B)/$(p).a)))

$(B)/tests/bench/%: $(B)/o/tests/bench/%.o $(B)/libmuster.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -lssl -lcrypto $(LIBS_common)
$(B)/tests/integration/%: $(B)/o/tests/integration/%.o $(B)/libmuster.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_common)

$(B)/o/%.o: %.c Makefile | deps-build
	@mkdir -p $(@D)
	@printf '  CC    %s\n' $<
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# The migrations are built into the binaries: one C string a file.
$(B)/gen/schema_sql.h: $(SCHEMA_SQL) Makefile
	@mkdir -p $(@D)
	$(Q){ echo '/* Generated from schema/. */'; \
	for f in $(SCHEMA_SQL); do \
		echo "{ \"$$f\","; \
		sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$$/\\n"/' $$f; \
		echo '},'; done; } > $@.tmp && mv $@.tmp $@
$(call OBJ,$(wildcard common/registry/*.c)): $(B)/gen/schema_sql.h

-include $(shell find $(B) -name '*.d' 2>/dev/null)

# ---- dependencies, tests, packaging -------------------------------------

deps-build deps-demo deps-test deps-lint deps-bench:
	@[ "$(DEPS)" = no ] || tests/deps.sh $(patsubst deps-%,%,$@)

check: deps-test
	@tests/check.sh

unit: units
	@tests/run_units.sh $(UNIT_BIN)

integration: binaries tools
	@tests/run_integration.sh

asan: deps-test
	@tests/asan.sh

fuzz: deps-lint
	@tests/fuzz.sh

lint: deps-lint
	@tests/lint.sh

bench: deps-bench
	@tests/bench.sh

demo: deps-demo binaries $(B)/tests/integration/origin
	@tests/demo.sh

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

install: binaries
	@VERSION=$(VERSION) B=$(B) DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) \
	    packaging/install.sh

uninstall:
	@DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) packaging/install.sh --remove

deb: binaries
	@packaging/deb.sh $(VERSION)

clean:
	rm -rf build

help:
	@sed -n 's/^##H //p' Makefile
##H make            build the three programs (release, hardened) into build/release
##H make demo       build, start a small cluster on loopback, show what it does
##H make check      build and run every test (installs what is missing; DEPS=no skips)
##H make asan       the same under AddressSanitizer and UBSan
##H make fuzz       run every fuzzer (FUZZ_SECONDS=120 each)
##H make lint       clang-tidy, cppcheck, format, house rules
##H make bench      measure against the peers, side by side
##H make install    into DESTDIR/PREFIX; make deb builds a Debian package
