"""`sheaf_library`: modules that programs use."""

load(":providers.bzl", "SheafInfo")

def collect(ctx):
    """Sources and data of a target with those of its dependencies.

    Args:
      ctx: the context of a rule with `srcs`, `deps` and `data`.

    Returns:
      a SheafInfo.
    """
    deps = [dep[SheafInfo] for dep in ctx.attr.deps]
    return SheafInfo(
        sources = depset(ctx.files.srcs, transitive = [dep.sources for dep in deps]),
        data = depset(ctx.files.data, transitive = [dep.data for dep in deps]),
    )

SOURCE_ATTRS = {
    "srcs": attr.label_list(
        doc = "Modules, and the Sheaf.toml and Sheaf.lock of their package.",
        allow_files = [".shf", ".toml", ".lock"],
    ),
    "deps": attr.label_list(
        doc = "Libraries whose modules these use.",
        providers = [SheafInfo],
    ),
    "data": attr.label_list(
        doc = "Files that are read when the program runs.",
        allow_files = True,
    ),
}

def _sheaf_library_impl(ctx):
    info = collect(ctx)
    return [DefaultInfo(files = info.sources), info]

sheaf_library = rule(
    implementation = _sheaf_library_impl,
    doc = "Modules of Sheaf that programs and other libraries use.",
    attrs = SOURCE_ATTRS,
    provides = [SheafInfo],
)
