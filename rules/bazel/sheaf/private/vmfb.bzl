"""`sheaf_vmfb`: the compiled functions of a program for one device."""

load(":compile.bzl", "CALL_ATTRS", "TOOLCHAIN", "compile_calls")
load(":library.bzl", "SOURCE_ATTRS", "collect")
load(":providers.bzl", "SheafProgramsInfo")

def _sheaf_vmfb_impl(ctx):
    info = collect(ctx, [ctx.file.main])
    folder = compile_calls(ctx, info, [ctx.attr.target])
    return [
        DefaultInfo(files = depset([folder])),
        SheafProgramsInfo(main = ctx.file.main, folder = folder, info = info),
    ]

sheaf_vmfb = rule(
    implementation = _sheaf_vmfb_impl,
    doc = "The functions that a recorded run called, compiled for one device. The result is a folder as `__sheaf__` is.",
    attrs = dict(
        target = attr.string(
            doc = "The device: `cpu:x86-64-v3`, `cpu:aarch64`, `cuda:sm_89`, `vulkan` or `metal`.",
            default = "cpu:x86-64-v3",
        ),
        **dict(CALL_ATTRS, **SOURCE_ATTRS)
    ),
    provides = [SheafProgramsInfo],
    toolchains = [TOOLCHAIN],
)
