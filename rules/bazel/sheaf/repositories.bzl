"""Repositories for a WORKSPACE: toolchains, packages, and the calls of shapes files."""

load("//sheaf/private:packages.bzl", _sheaf_packages = "sheaf_packages")
load("//sheaf/private:shapes.bzl", _sheaf_shapes = "sheaf_shapes")
load("//sheaf/private:toolchain_repository.bzl", "sheaf_toolchain_repository")

sheaf_packages = _sheaf_packages
sheaf_shapes = _sheaf_shapes

def sheaf_register_toolchains(name = "sheaf_toolchain", **kwargs):
    """Fetches `sheaf` and its compiler, and registers them as a toolchain.

    Args:
      name: of the repository.
      **kwargs: attributes of `sheaf_toolchain_repository`.
    """
    sheaf_toolchain_repository(name = name, **kwargs)
    native.register_toolchains("@%s//:toolchain" % name)
