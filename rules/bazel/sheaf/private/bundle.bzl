"""`sheaf_bundle`: a program with its compiled functions and the runtime, as one archive."""

load(":compile.bzl", "TOOLCHAIN")
load(":providers.bzl", "SheafProgramsInfo")

# The inputs of an action may be links out of its folder, and a bundle follows none. Paths of data start where the program is.
_COMMAND = """
set -eu
root=$PWD
sheaf=$root/$1 programs=$root/$2 runtime=$root/$3 output=$root/$4 main=$5 files=$6
shift 6
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
while [ "$files" -gt 0 ]; do
    mkdir -p "$stage/$(dirname "$1")"
    cp -L "$1" "$stage/$1"
    files=$((files - 1))
    shift
done
cd "$stage/$(dirname "$main")"
"$sheaf" bundle "$(basename "$main")" --offline --programs "$programs" --runtime "$runtime" --output "$output" "$@"
"""

def _sheaf_bundle_impl(ctx):
    tools = ctx.toolchains[TOOLCHAIN]
    program = ctx.attr.program[SheafProgramsInfo]
    runtime = ctx.executable.runtime if ctx.attr.runtime else tools.runtime
    place = program.main.dirname
    output = ctx.actions.declare_file(ctx.label.name + ("" if ctx.attr.single_file else ".tar.gz"))
    files = depset(transitive = [program.sources, program.data]).to_list()
    options = []
    for file in program.data.to_list():
        if not place or file.path.startswith(place + "/"):
            options += ["--data", file.path[len(place) + 1:] if place else file.path]
    if ctx.attr.single_file:
        options.append("--single-file")
    if ctx.attr.frozen_shapes:
        options.append("--frozen-shapes")
    if ctx.attr.platform:
        options += ["--platform", ctx.attr.platform]

    ctx.actions.run_shell(
        command = _COMMAND,
        arguments = [tools.sheaf.path, program.folder.path, runtime.path, output.path, program.main.path, str(len(files))] +
                    [file.path for file in files] + options,
        inputs = [program.folder, runtime] + files,
        tools = [tools.sheaf],
        outputs = [output],
        env = {"SHEAF_HOME": "/nonexistent"},
        mnemonic = "SheafBundle",
        progress_message = "Bundling %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([output]), executable = output if ctx.attr.single_file else None)]

sheaf_bundle = rule(
    implementation = _sheaf_bundle_impl,
    doc = "A program, its compiled functions, data and runtime as a `.tar.gz`, or one executable, that needs nothing of the machine it runs on.",
    attrs = {
        "program": attr.label(
            doc = "A `sheaf_binary`, `sheaf_test` or `sheaf_vmfb`.",
            providers = [SheafProgramsInfo],
            mandatory = True,
        ),
        "platform": attr.string(
            doc = "The platform to run on, such as `linux-aarch64`; by default that of the build.",
        ),
        "runtime": attr.label(
            doc = "The runtime for the platform; by default that of the toolchain.",
            allow_single_file = True,
            executable = True,
            cfg = "target",
        ),
        "single_file": attr.bool(doc = "One executable instead of an archive."),
        "frozen_shapes": attr.bool(doc = "A call with shapes that were not recorded is an error."),
    },
    toolchains = [TOOLCHAIN],
)
