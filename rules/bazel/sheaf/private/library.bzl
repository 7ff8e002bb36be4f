"""`sheaf_library`: modules that programs use."""

load(":providers.bzl", "SheafInfo")

def collect(ctx, main = []):
    """Sources, data and packages of a target with those of its dependencies.

    Args:
      ctx: the context of a rule with SOURCE_ATTRS.
      main: sources besides `srcs`.

    Returns:
      a SheafInfo.
    """
    deps = [dep[SheafInfo] for dep in ctx.attr.deps]
    return SheafInfo(
        sources = depset(main + ctx.files.srcs, transitive = [dep.sources for dep in deps]),
        data = depset(ctx.files.data, transitive = [dep.data for dep in deps]),
        packages = depset(ctx.files.packages, transitive = [dep.packages for dep in deps]),
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
    "packages": attr.label_list(
        doc = "The packages of Sheaf.lock: `@NAME//:packages` of the repository that `sheaf_packages` makes.",
        allow_files = [".tar.gz"],
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
