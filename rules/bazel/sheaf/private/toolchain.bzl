"""The toolchain: `sheaf`, its runtime, and the pinned compiler."""

def _sheaf_toolchain_impl(ctx):
    return [platform_common.ToolchainInfo(
        sheaf = ctx.executable.sheaf,
        runtime = ctx.executable.runtime,
        compiler = ctx.files.compiler,
        marker = ctx.file.marker,
        store = ctx.attr.store,
    )]

sheaf_toolchain = rule(
    implementation = _sheaf_toolchain_impl,
    doc = "A toolchain of Sheaf; `sheaf_register_toolchains` makes them.",
    attrs = {
        "sheaf": attr.label(
            doc = "The command `sheaf`.",
            allow_single_file = True,
            executable = True,
            cfg = "exec",
            mandatory = True,
        ),
        "runtime": attr.label(
            doc = "`sheaf-rt`, which runs programs and bundles.",
            allow_single_file = True,
            executable = True,
            cfg = "target",
            mandatory = True,
        ),
        "compiler": attr.label(
            doc = "The files of the installed compiler.",
            allow_files = True,
            mandatory = True,
        ),
        "store": attr.string(doc = "A store of compiled programs on the machine."),
        "marker": attr.label(
            doc = "A file at the root of the folder of data in which the compiler is installed.",
            allow_single_file = True,
            mandatory = True,
        ),
    },
)
