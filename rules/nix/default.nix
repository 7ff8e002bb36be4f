# Functions that turn a Sheaf package and its lock into derivations. They use nothing of nixpkgs: docs/nix.md.
{
  # A folder with bin/sheaf and bin/sheaf-rt: a derivation, such as that of `fetchSheaf`.
  sheaf ? null,
  system ? builtins.currentSystem,
  # What builders use: a shell, and coreutils, findutils, tar and gzip.
  shell ? "/bin/sh",
  path ? "/usr/bin:/bin",
}:
let
  # A derivation that runs a script.
  run = name: attributes: script:
    derivation ({
      inherit name system;
      builder = shell;
      args = [ "-euc" script ];
      PATH = path;
    } // attributes);

  # A file by its address and SHA-256, in any of Nix's notations.
  fetchFile = { url, sha256, executable ? false }:
    import <nix/fetchurl.nix> { inherit url sha256 executable; };

  platform = {
    x86_64-linux = "linux-x86_64";
    aarch64-linux = "linux-aarch64";
    aarch64-darwin = "macos-aarch64";
  }.${system} or (throw "Sheaf has no compiler for ${system}");

  # The processor that all machines of the platform have.
  processor = if system == "x86_64-linux" then "x86-64-v3" else "aarch64";

  readLock = lock:
    if builtins.pathExists lock then builtins.fromTOML (builtins.readFile lock) else { };

  # The sources of one package of a lock, whose hash the lock has.
  fetchPackage = package:
    let
      isRegistry = builtins.match "registry[+].*" package.source != null;
      git = builtins.match "git[+]([^?]*)([?].*)?" package.source;
      url =
        if isRegistry then package.repository
        else if git != null then builtins.head git
        else throw "${package.name} ${package.version} is of ${package.source}, which is no source to fetch";
      repository = builtins.fetchGit ({
        inherit url;
        rev = package.commit;
      } // (if package ? ref then { inherit (package) ref; } else { allRefs = true; }));
    in
    run "sheaf-${package.name}-${package.version}" {
      outputHashMode = "recursive";
      outputHashAlgo = "sha256";
      outputHash = package.tree;
      # Files of a package are read-only and have no other attributes.
      tree = repository + (if package ? folder then "/${package.folder}" else "");
    } ''
      cp -R "$tree" "$out"
    '';
in
rec {
  # An archive with `sheaf` and `sheaf-rt`, unpacked.
  fetchSheaf = { url, sha256 }:
    run "sheaf" { archive = fetchFile { inherit url sha256; }; } ''
      mkdir -p "$out/bin" unpacked
      tar -xf "$archive" -C unpacked
      for tool in sheaf sheaf-rt; do
        cp "$(find unpacked -type f -name "$tool")" "$out/bin/$tool"
        chmod 755 "$out/bin/$tool"
      done
    '';

  # The compiler, from a file that `sheaf toolchain bundle` wrote: its digests are built into `sheaf`, which checks each file.
  fetchCompiler = { url, sha256 }:
    run "sheaf-compiler" { archive = fetchFile { inherit url sha256; }; } ''
      cp "$archive" compiler.tar.gz
      SHEAF_HOME="$out" ${sheaf}/bin/sheaf toolchain install ./compiler.tar.gz --offline
    '';

  # The packages of a lock as archives, as `sheaf vendor` writes them. There is no hash to keep: the lock has one for each package.
  fetchSheafDeps = { lock }:
    let
      packages = builtins.filter (package: builtins.match "path[+].*" package.source == null)
        ((readLock lock).package or [ ]);
    in
    run "sheaf-deps" {
      names = map (package: "${package.name}-${package.version}") packages;
      trees = map fetchPackage packages;
    } ''
      mkdir "$out"
      set -- $names
      for tree in $trees; do
        (cd "$tree" && find . -mindepth 1 -printf '%P\n' | LC_ALL=C sort |
          tar --no-recursion --owner=0 --group=0 --mtime=@1 --format=gnu -cf - -T -) | gzip -n > "$out/$1.tar.gz"
        shift
      done
    '';

  # A program with its functions compiled: $out/bin/NAME runs it on `sheaf-rt`, and $out/share/sheaf/NAME is a bundle.
  buildSheafPackage =
    { src
    , pname ? (builtins.fromTOML (builtins.readFile (src + "/Sheaf.toml"))).package.name
    , compiler
    , main ? "src/main.shf"
    , shapes ? "shapes.json"
    , cpu ? processor
      # Devices besides the processor, such as "cuda:sm_89".
    , devices ? [ ]
      # Patterns of files that the program reads.
    , data ? [ ]
    , frozenShapes ? false
    }:
    run pname {
      inherit src pname main shapes cpu devices data;
      deps = fetchSheafDeps { lock = src + "/Sheaf.lock"; };
      options = if frozenShapes then "--frozen-shapes" else "";
    } ''
      sheaf=${sheaf}/bin/sheaf
      export SHEAF_HOME="$PWD/home"
      cp -R "$src" source
      chmod -R u+w source
      cd source
      rm -rf __sheaf__ vendor
      [ -z "$(ls "$deps")" ] || cp -R "$deps" vendor

      folders= files=
      lower() {
        folder=../lowered/$1
        shift
        "$sheaf" step lower "$main" --shapes "$shapes" --frozen --output "$folder" "$@"
        folders="$folders $folder"
        for lowered in $(ls "$folder" | grep -v calls.json | sort -n); do
          stem=$folder/''${lowered%.json}
          "$sheaf" step compile "$folder/$lowered" --program "$stem.vmfb" --claim "$stem.claim" --compiler "${compiler}/data"
          files="$files --program $stem.vmfb --claim $stem.claim"
        done
      }
      lower cpu --cpu "$cpu"
      for device in $devices; do
        lower "$device" --device "$device"
      done
      "$sheaf" step link $folders $files --output ../programs

      set -f # patterns are the command's
      patterns=
      for pattern in $data; do
        patterns="$patterns --data $pattern"
      done
      mkdir -p "$out/bin" "$out/share/sheaf"
      "$sheaf" bundle "$main" --frozen --offline --programs ../programs --runtime ${sheaf}/bin/sheaf-rt $patterns $options \
        --output "$out/share/sheaf/$pname"
      printf '#!${shell}\nexec "%s" "$@"\n' "$out/share/sheaf/$pname/sheaf-rt" > "$out/bin/$pname"
      chmod 755 "$out/bin/$pname"
    '';

  # A shell in which `sheaf` compiles with that compiler.
  devShell = { compiler, name ? "sheaf-shell" }:
    run name {
      PATH = "${sheaf}/bin:${path}";
      inherit compiler;
      # `nix develop` reads it; a user's own caches stay the user's.
      shellHook = ''
        export SHEAF_HOME="''${SHEAF_HOME:-$HOME/.sheaf-nix}"
        mkdir -p "$SHEAF_HOME/data"
        ln -sfn "$compiler/data/toolchains" "$SHEAF_HOME/data/toolchains"
      '';
    } ''
      mkdir "$out"
    '';
}
