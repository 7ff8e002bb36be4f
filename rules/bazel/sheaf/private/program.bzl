"""`sheaf_binary` and `sheaf_test`: programs that run on compiled functions, without a compiler."""

load(":bundle.bzl", "make_bundle")
load(":compile.bzl", "CALL_ATTRS", "TOOLCHAIN", "compile_calls")
load(":library.bzl", "SOURCE_ATTRS", "collect")
load(":providers.bzl", "SheafProgramsInfo")

# A program finds its data in the bundle, and what it writes goes to the current folder: that of the user, or a test's own.
_LAUNCHER = """#!/bin/sh
set -eu
if [ -z "${{RUNFILES_DIR:-}}" ]; then
    if [ -d "$0.runfiles" ]; then RUNFILES_DIR=$0.runfiles; else RUNFILES_DIR=${{0%%.runfiles/*}}.runfiles; fi
fi
bundle=$(cd "$RUNFILES_DIR/{workspace}/{bundle}" && pwd)
cd "${{TEST_TMPDIR:-${{BUILD_WORKING_DIRECTORY:-.}}}}"
exec "$bundle/sheaf-rt" -- {arguments} "$@"
"""

def _quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"

def _program_impl(ctx):
    info = collect(ctx, [ctx.file.main])
    program = SheafProgramsInfo(
        main = ctx.file.main,
        folder = compile_calls(ctx, info, ctx.attr.targets),
        info = info,
    )
    bundle = ctx.actions.declare_directory(ctx.label.name + ".bundle")
    make_bundle(ctx, program, bundle, frozen_shapes = ctx.attr.frozen_shapes)
    launcher = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        launcher,
        _LAUNCHER.format(
            workspace = ctx.workspace_name,
            bundle = bundle.short_path,
            arguments = " ".join([_quoted(argument) for argument in ctx.attr.arguments]),
        ),
        is_executable = True,
    )
    return [
        DefaultInfo(executable = launcher, runfiles = ctx.runfiles(files = [bundle])),
        program,
        OutputGroupInfo(programs = depset([program.folder])),
    ]

_ATTRS = dict(
    targets = attr.string_list(
        doc = "The devices to compile for.",
        default = ["cpu:x86-64-v3"],
        allow_empty = False,
    ),
    frozen_shapes = attr.bool(
        doc = "A call with shapes that were not recorded is an error, not an interpretation.",
    ),
    arguments = attr.string_list(
        doc = "Arguments of the program, before those of the command line.",
    ),
    **dict(CALL_ATTRS, **SOURCE_ATTRS)
)

sheaf_binary = rule(
    implementation = _program_impl,
    doc = "A program for `bazel run`, with the functions that a recorded run called compiled. It is a bundle, and runs in the current folder.",
    attrs = _ATTRS,
    provides = [SheafProgramsInfo],
    executable = True,
    toolchains = [TOOLCHAIN],
)

sheaf_test = rule(
    implementation = _program_impl,
    doc = "A program that passes if it ends without an error, as `assert` and `error` raise them.",
    attrs = _ATTRS,
    provides = [SheafProgramsInfo],
    test = True,
    toolchains = [TOOLCHAIN],
)
