"""`sheaf_bundle`: a program with its compiled functions and the runtime, as one archive."""

load(":compile.bzl", "TOOLCHAIN")
load(":providers.bzl", "SheafProgramsInfo")
load(":stage.bzl", "run_staged")

# Paths of data in a bundle start where the program is. Bazel has made the folder of a result already.
_COMMAND = """
sheaf=$root/$1 programs=$root/$2 runtime=$root/$3 output=$root/$4 name=$5 folder=$6 main=$7
shift 7
cd "$stage/source/$folder"
"$sheaf" bundle "$main" --frozen --offline --programs "$programs" --runtime "$runtime" --output "$stage/$name" "$@" > "$stage/said"
if [ -d "$output" ]; then cp -R "$stage/$name/." "$output"; else cp "$stage/$name" "$output"; fi
"""

def make_bundle(ctx, program, output, runtime = None, single_file = False, frozen_shapes = False, platform = ""):
    """Makes a bundle.

    Args:
      ctx: the context of the rule.
      program: a SheafProgramsInfo.
      output: a folder, an archive whose name ends in `.tar.gz`, or an executable.
      runtime: the runtime, if it is not that of the toolchain.
      single_file: true for an executable.
      frozen_shapes: true if calls that were not recorded are errors.
      platform: the platform, if it is not that of the build.
    """
    tools = ctx.toolchains[TOOLCHAIN]
    runtime = runtime or tools.runtime
    folder, _, main = program.main.short_path.rpartition("/")
    options = []
    for file in program.info.data.to_list():
        if not folder:
            options += ["--data", file.short_path]
        elif file.short_path.startswith(folder + "/"):
            options += ["--data", file.short_path[len(folder) + 1:]]
        else:
            fail("%s is read by %s, and lies outside of its folder" % (file.short_path, program.main.short_path))
    if single_file:
        options.append("--single-file")
    if frozen_shapes:
        options.append("--frozen-shapes")
    if platform:
        options += ["--platform", platform]
    run_staged(
        ctx,
        program.info,
        command = _COMMAND,
        arguments = [tools.sheaf, program.folder.path, runtime, output.path, output.basename, folder or ".", main] + options,
        inputs = [program.folder, runtime],
        tools = [tools.sheaf],
        outputs = [output],
        mnemonic = "SheafBundle",
        progress_message = "Bundling %s" % ctx.label,
    )

def _sheaf_bundle_impl(ctx):
    name = ctx.label.name + ("" if ctx.attr.single_file else ".tar.gz")
    output = ctx.actions.declare_file(name)
    make_bundle(
        ctx,
        ctx.attr.program[SheafProgramsInfo],
        output,
        runtime = ctx.executable.runtime,
        single_file = ctx.attr.single_file,
        frozen_shapes = ctx.attr.frozen_shapes,
        platform = ctx.attr.platform,
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
