"""`sheaf_packages`: the packages of a Sheaf.lock."""

def _sheaf_packages_impl(rctx):
    # The repository is made again when one of them changes.
    rctx.file("project/Sheaf.toml", rctx.read(rctx.path(rctx.attr.manifest)))
    rctx.file("project/Sheaf.lock", rctx.read(rctx.path(rctx.attr.lock)))
    environment = {"SHEAF_HOME": str(rctx.path("home"))}
    result = rctx.execute(
        [rctx.path(rctx.attr.sheaf), "vendor", "--locked"],
        environment = environment,
        timeout = 1200,
        working_directory = "project",
    )
    if result.return_code != 0:
        fail("the packages of %s cannot be fetched:\n%s" % (rctx.attr.lock, result.stderr))
    rctx.delete("home")
    rctx.file("BUILD.bazel", """filegroup(
    name = "packages",
    srcs = glob(["project/vendor/*.tar.gz"]),
    visibility = ["//visibility:public"],
)
""")

sheaf_packages = repository_rule(
    implementation = _sheaf_packages_impl,
    doc = "Fetches the packages of a Sheaf.lock, in parallel and compared with its hashes: `@NAME//:packages`.",
    attrs = {
        "lock": attr.label(
            doc = "The Sheaf.lock.",
            allow_single_file = True,
            mandatory = True,
        ),
        "manifest": attr.label(
            doc = "The Sheaf.toml that it answers.",
            allow_single_file = True,
            mandatory = True,
        ),
        "sheaf": attr.label(
            doc = "The command; by default that of `sheaf_register_toolchains`.",
            default = "@sheaf_toolchain//:bin/sheaf",
            allow_single_file = True,
        ),
    },
)
