"""A module extension for bzlmod. **Untested**: the tests run a Bazel without modules.

    sheaf = use_extension("@rules_sheaf//sheaf:extensions.bzl", "sheaf")
    sheaf.toolchain(sheaf = {"linux-x86_64": "https://..."}, sha256 = {"linux-x86_64": "..."})
    sheaf.shapes(name = "shapes", files = ["//digits:shapes.json"])
    use_repo(sheaf, "sheaf_toolchain", "shapes")
    register_toolchains("@sheaf_toolchain//:toolchain")
"""

load("//sheaf/private:packages.bzl", "sheaf_packages")
load("//sheaf/private:shapes.bzl", "sheaf_shapes")
load("//sheaf/private:toolchain_repository.bzl", "sheaf_toolchain_repository")

def _sheaf_impl(module_ctx):
    for module in module_ctx.modules:
        for tag in module.tags.toolchain:
            # The root module decides.
            if module.is_root:
                sheaf_toolchain_repository(
                    name = "sheaf_toolchain",
                    sheaf = tag.sheaf,
                    sha256 = tag.sha256,
                    strip_prefix = tag.strip_prefix,
                    compiler = tag.compiler,
                    compiler_sha256 = tag.compiler_sha256,
                    mirrors = tag.mirrors,
                    store = tag.store,
                )
        for tag in module.tags.shapes:
            sheaf_shapes(name = tag.name, files = tag.files)
        for tag in module.tags.packages:
            sheaf_packages(name = tag.name, lock = tag.lock, manifest = tag.manifest)

sheaf = module_extension(
    implementation = _sheaf_impl,
    tag_classes = {
        "packages": tag_class(attrs = {
            "lock": attr.label(mandatory = True),
            "manifest": attr.label(mandatory = True),
            "name": attr.string(mandatory = True),
        }),
        "shapes": tag_class(attrs = {
            "files": attr.label_list(mandatory = True),
            "name": attr.string(mandatory = True),
        }),
        "toolchain": tag_class(attrs = {
            "compiler": attr.string_dict(),
            "compiler_sha256": attr.string_dict(),
            "mirrors": attr.string_list(),
            "sha256": attr.string_dict(mandatory = True),
            "sheaf": attr.string_dict(mandatory = True),
            "store": attr.string(),
            "strip_prefix": attr.string(),
        }),
    },
)
