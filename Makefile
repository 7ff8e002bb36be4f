# The commands of the project. Each does all of its own set-up and may be repeated: what is there is not made again.
.PHONY: help run test nightly oracle oracle-nightly runtime bench benchmarks nanogpt gpt2 deny clean

target := $(abspath $(or $(CARGO_TARGET_DIR),target))
sheaf := $(target)/release/sheaf

# Folder of the pinned compiler for tests: the data folder of a SHEAF_HOME of theirs.
test_home := $(target)/test-home
test nightly oracle oracle-nightly: export SHEAF_TEST_HOME := $(test_home)/data

help: ## List these commands
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 16

run: ## Build sheaf, train the examples, show what was compiled for them
	scripts/bootstrap
	cargo build --locked --release -p sheaf
	scripts/fetch-digits
	cd examples/xor && $(sheaf) train.shf --jit always
	cd examples/digits && $(sheaf) train.shf
	scripts/show-artifacts examples/xor examples/digits

# Lints as part of the compilation: a pass of `cargo clippy` besides it would check all dependencies once more. The second variable is
# that which `cargo clippy -- -D warnings` sets.
test nightly: export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/scripts/test-compiler
test nightly: export CLIPPY_ARGS := -D__CLIPPY_HACKERY__warnings
# Backtraces without lines (an assertion names its own): they are a sixth of the compilation of `sheaf-graph` without optimisation.
test nightly: export CARGO_PROFILE_DEV_DEBUG := false
# Cases of each property (proptest's own default is 256).
test: export PROPTEST_CASES := 64
nightly: export PROPTEST_CASES := 2560

test: ## Check and test everything
	scripts/bootstrap
	scripts/check-tree
	cargo fmt --all --check
	scripts/check-dependencies --if-installed
	scripts/side-by-side "scripts/fetch-for-tests && scripts/remote-servers && { scripts/jax-python || true; }" \
		"cargo build --locked --workspace --lib --bins --tests --examples"
	SHEAF_HOME=$(test_home) $(target)/debug/sheaf toolchain install || echo "NO COMPILER: tests that want it are skipped" >&2
	scripts/side-by-side scripts/oracle-samples "cargo test --locked --workspace --no-fail-fast"

nightly: test ## What takes long besides: all samples, at least twenty times the random cases, 20,000 programs beside JAX
	cargo build --locked --workspace --benches
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps
	SHEAF_NIGHTLY=1 cargo test --locked --workspace -- --include-ignored
	$(MAKE) oracle-nightly

oracle: ## Compare every builtin, sampler and 500 random programs with JAX (SEED=n for others)
	cargo build --locked --release -p sheaf
	SHEAF=$(sheaf) scripts/oracle $(if $(SEED),--seed $(SEED)) --table $(target)/scale.md

oracle-nightly: ## The same with 20,000 random programs and a new seed
	cargo build --locked --release -p sheaf
	SHEAF=$(sheaf) scripts/oracle --programs 20000 --seed $(or $(SEED),$(shell date +%Y%m%d))

runtime: ## Build sheaf-rt, linked statically, as bundles take it: target/TRIPLE/runtime/sheaf-rt (TRIPLE=x86_64-unknown-linux-musl, aarch64-unknown-linux-gnu; FEATURES=text,plot)
	scripts/bootstrap
	TRIPLE=$(TRIPLE) FEATURES=$(FEATURES) scripts/build-runtime

bench: ## Measure speed, against the figures in benches/
	scripts/bootstrap
	cargo build --locked --release -p sheaf # which one of them runs
	cargo bench --locked -p sheaf-benches

benchmarks: ## Time Sheaf beside JAX and PyTorch (5 GB, installed under target/), and write docs/benchmarks.md (GENERATION=1 with GPT-2)
	scripts/bootstrap
	cargo build --locked --release -p sheaf
	python=$$(scripts/jax-python) && torch=$$(scripts/torch-python) && $$python benches/peers/report.py --sheaf $(sheaf) --torch $$torch \
		$(if $(GENERATION),--generation)

nanogpt: ## Train a small GPT on Shakespeare for 1,000 steps, and the same in JAX; losses within 1 %
	scripts/bootstrap
	scripts/fetch-shakespeare
	cargo build --locked --release -p sheaf
	python=$$(scripts/jax-python) && cd examples/nanogpt && \
		$(sheaf) train.shf | tee training.log && \
		$$python ../../tests/nanogpt/train.py shakespeare.txt training.log

gpt2: ## Train a GPT of GPT-2's size for ten steps beside JAX: time, memory, losses (LAYERS=n for a smaller one)
	scripts/bootstrap
	cargo build --locked --release -p sheaf
	python=$$(scripts/jax-python) && $$python tests/nanogpt/gpt2.py --sheaf $(sheaf) $(if $(LAYERS),--layers $(LAYERS))

deny: ## Check the dependencies: licences, sources, bans, advisories
	scripts/check-dependencies

clean: ## Remove what the other commands made in this folder
	cargo clean
	rm -rf .tools examples/*/__sheaf__ examples/digits/digits.csv* examples/nanogpt/shakespeare.txt* examples/nanogpt/training.log benches/tokens/cl100k_base.tiktoken*
