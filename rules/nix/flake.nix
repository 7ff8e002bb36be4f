{
  description = "Sheaf packages as derivations";

  outputs = { self }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" ];
      forAll = of: builtins.listToAttrs (map (name: { inherit name; value = of name; }) systems);
    in
    {
      # `lib.forSystem { system = "x86_64-linux"; sheaf = ...; }` has the functions of ./default.nix.
      lib.forSystem = arguments: import ./default.nix arguments;

      # For users of nixpkgs: `sheafRules { sheaf = ...; }`, whose builders use the tools of nixpkgs.
      overlays.default = final: prev: {
        sheafRules = arguments: import ./default.nix ({
          system = final.stdenv.hostPlatform.system;
          shell = "${final.bash}/bin/bash";
          path = final.lib.makeBinPath [ final.coreutils final.findutils final.gnutar final.gzip final.gnugrep ];
        } // arguments);
      };

      # The lock of a project without dependencies gives an empty folder.
      checks = forAll (system: {
        empty-lock = (import ./default.nix { inherit system; }).fetchSheafDeps { lock = ./no-lock; };
      });
    };
}
