"""Rules for Sheaf programs: `load("@rules_sheaf//sheaf:defs.bzl", "sheaf_binary")`."""

load("//sheaf/private:bundle.bzl", _sheaf_bundle = "sheaf_bundle")
load("//sheaf/private:library.bzl", _sheaf_library = "sheaf_library")
load("//sheaf/private:program.bzl", _sheaf_binary = "sheaf_binary", _sheaf_test = "sheaf_test")
load("//sheaf/private:providers.bzl", _SheafInfo = "SheafInfo", _SheafProgramsInfo = "SheafProgramsInfo")
load("//sheaf/private:toolchain.bzl", _sheaf_toolchain = "sheaf_toolchain")
load("//sheaf/private:vmfb.bzl", _sheaf_vmfb = "sheaf_vmfb")

SheafInfo = _SheafInfo
SheafProgramsInfo = _SheafProgramsInfo
sheaf_binary = _sheaf_binary
sheaf_bundle = _sheaf_bundle
sheaf_library = _sheaf_library
sheaf_test = _sheaf_test
sheaf_toolchain = _sheaf_toolchain
sheaf_vmfb = _sheaf_vmfb
