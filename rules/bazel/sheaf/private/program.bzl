"""`sheaf_binary` and `sheaf_test`: programs that run on compiled functions, without a compiler."""

load(":compile.bzl", "CALL_ATTRS", "TOOLCHAIN", "compile_calls")
load(":library.bzl", "SOURCE_ATTRS", "collect")
load(":providers.bzl", "SheafProgramsInfo")

# The current folder is the program's own, where it finds its data.
_LAUNCHER = """#!/bin/sh
set -eu
if [ -z "${{RUNFILES_DIR:-}}" ]; then
    if [ -d "$0.runfiles" ]; then RUNFILES_DIR=$0.runfiles; else RUNFILES_DIR=${{0%%.runfiles/*}}.runfiles; fi
fi
cd "$RUNFILES_DIR/{workspace}"
runtime=$PWD/{runtime}
cd "./{folder}"
exec "$runtime" {options} {main} -- {arguments} "$@"
"""

def _quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"

def _program_impl(ctx):
    info = collect(ctx)
    runtime = ctx.toolchains[TOOLCHAIN].runtime
    folder = compile_calls(ctx, info, ctx.attr.targets)
    place = ctx.file.main.short_path.rpartition("/")[0]
    launcher = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        launcher,
        _LAUNCHER.format(
            workspace = ctx.workspace_name,
            runtime = runtime.short_path,
            folder = place,
            main = _quoted(ctx.file.main.basename),
            options = "--frozen-shapes" if ctx.attr.frozen_shapes else "",
            arguments = " ".join([_quoted(argument) for argument in ctx.attr.arguments]),
        ),
        is_executable = True,
    )
    sources = depset([ctx.file.main], transitive = [info.sources])
    runfiles = ctx.runfiles(
        files = [runtime],
        transitive_files = depset(transitive = [sources, info.data]),
        symlinks = {(place + "/" if place else "") + "__sheaf__": folder},
    )
    return [
        DefaultInfo(executable = launcher, runfiles = runfiles),
        SheafProgramsInfo(main = ctx.file.main, folder = folder, sources = sources, data = info.data),
        OutputGroupInfo(programs = depset([folder])),
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
    doc = "A program for `bazel run`, with the functions that a recorded run called compiled. It runs on `sheaf-rt`, in the folder of the program.",
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
