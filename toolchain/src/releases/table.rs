// Written by scripts/pin-compiler; run it to change the pin.

use super::{Member, Platform, Release};

/// The wheels of the pinned compiler, iree-base-compiler 3.13.0.
pub const COMPILER: [Release<'static>; 4] = [
    Release {
        version: "3.13.0",
        platform: Platform::LinuxX86_64,
        wheel: "iree_base_compiler-3.13.0-cp312-abi3-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        size: 83_634_623,
        sha256: "d09d2ebd8955d3eeeab5677007c3d26830c8585c61a0e0ccdfc020b63c129e6f",
        library: Member { path: "iree/compiler/_mlir_libs/libIREECompiler.so", size: 335_774_656 },
        linker: Member { path: "iree/compiler/_mlir_libs/iree-lld", size: 16_408 },
        notice: "iree_base_compiler-3.13.0.dist-info/METADATA",
    },
    Release {
        version: "3.13.0",
        platform: Platform::LinuxAarch64,
        wheel: "iree_base_compiler-3.13.0-cp312-abi3-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl",
        size: 84_974_273,
        sha256: "230aec9b5d63c49f3f1ba228c35a7ce950075ce7b7780b786c85fa6fb0be3dbb",
        library: Member { path: "iree/compiler/_mlir_libs/libIREECompiler.so", size: 342_743_752 },
        linker: Member { path: "iree/compiler/_mlir_libs/iree-lld", size: 8_104 },
        notice: "iree_base_compiler-3.13.0.dist-info/METADATA",
    },
    Release {
        version: "3.13.0",
        platform: Platform::MacOsUniversal,
        wheel: "iree_base_compiler-3.13.0-cp312-abi3-macosx_13_0_universal2.whl",
        size: 68_153_284,
        sha256: "31143d2b12736b37e3ad197aeb65bb18ef42baa18eb78db1243f2d882c1e46ec",
        library: Member { path: "iree/compiler/_mlir_libs/libIREECompiler.dylib", size: 283_071_608 },
        linker: Member { path: "iree/compiler/_mlir_libs/iree-lld", size: 33_464 },
        notice: "iree_base_compiler-3.13.0.dist-info/METADATA",
    },
    Release {
        version: "3.13.0",
        platform: Platform::WindowsX86_64,
        wheel: "iree_base_compiler-3.13.0-cp312-abi3-win_amd64.whl",
        size: 62_501_131,
        sha256: "0b3dfcacef9e889e97365d94f2751893371ae92396fb8b27a790cfb8b2c14d8b",
        library: Member { path: "iree/compiler/_mlir_libs/IREECompiler.dll", size: 178_233_344 },
        linker: Member { path: "iree/compiler/_mlir_libs/iree-lld.exe", size: 10_752 },
        notice: "iree_base_compiler-3.13.0.dist-info/METADATA",
    },
];
