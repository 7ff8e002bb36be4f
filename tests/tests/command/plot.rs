//! `(plot ...)`: the files that a program draws, and what is said of what cannot be drawn.

use std::fs;

use sheaf_tests::Sandbox;

/// Draws each kind, in both formats.
const DRAWN: &str = "(def xs (arange 40))
(def curves {:training (exp (* -0.1 xs)) :validation (+ 0.1 (exp (* -0.08 xs)))})
(def numbers (random-normal (random-key 0) [500]))
(def images (reshape (/ (arange 128) 127) [8 4 4]))
(defn draw [end]
  (plot (str \"curve\" end) curves :title \"Loss\" :x-label \"step\" :y-label \"loss\")
  (plot (str \"log\" end) curves :log-y)
  (plot (str \"points\" end) (sin xs) :x (cos xs) :kind :points)
  (plot (str \"histogram\" end) {:a numbers :b (+ 1 numbers)} :kind :histogram :bins 20)
  (plot (str \"images\" end) images :columns 4 :title \"Digits\")
  (plot (str \"sized\" end) [3 1 2] :width 320 :height 200))
(draw \".png\")
(print (draw \".SVG\"))
";

/// Width and height of a PNG.
fn size(png: &[u8]) -> (u32, u32) {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

#[test]
fn each_kind_is_drawn_as_png_and_svg() {
    let sandbox = Sandbox::new();
    sandbox.write("draw.shf", DRAWN);
    assert_eq!(sandbox.run(&["draw.shf", "--no-jit"]).silent(), "nil\n");
    let sizes = [
        ("curve", (800, 500)),
        ("log", (800, 500)),
        ("points", (800, 500)),
        ("histogram", (800, 500)),
        ("sized", (320, 200)),
    ];
    for (name, expected) in sizes {
        assert_eq!(size(&fs::read(sandbox.path(&format!("{name}.png"))).expect("a PNG")), expected, "{name}");
        let svg = fs::read_to_string(sandbox.path(&format!("{name}.SVG"))).expect("an SVG");
        let (width, height) = expected;
        assert!(svg.starts_with(&format!("<svg width=\"{width}\" height=\"{height}\"")), "{name}: {svg}");
    }
    let (width, height) = size(&fs::read(sandbox.path("images.png")).expect("a PNG"));
    let svg = fs::read_to_string(sandbox.path("images.SVG")).expect("an SVG");
    assert!(svg.contains(&format!("width=\"{width}\" height=\"{height}\"")), "{svg}");
    assert!(svg.contains("data:image/png;base64,"), "{svg}");
    // A picture that is there is replaced.
    assert_eq!(sandbox.run(&["draw.shf", "--no-jit"]).silent(), "nil\n");
}

/// The shapes of a picture, as text.
#[test]
fn a_curve_and_a_histogram_as_svg() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "draw.shf",
        "(plot \"curve.svg\" {:a [1 2 4 8] :b [8 4 (/ 0 0.0) 1]} :title \"a < b & c\" :x-label \"step\" :y-label \"loss\" :width 400 :height 300)\n\
         (plot \"counts.svg\" [1 2 2 3 3 3 4 4 5] :kind :histogram :bins 5 :width 300 :height 200)\n",
    );
    assert_eq!(sandbox.run(&["draw.shf", "--no-jit"]).silent(), "");
    for name in ["curve", "counts"] {
        let svg = fs::read_to_string(sandbox.path(&format!("{name}.svg"))).expect("an SVG");
        insta::assert_snapshot!(name, svg);
    }
}

#[test]
fn what_cannot_be_drawn_is_said() {
    let sandbox = Sandbox::new();
    let mut said = String::new();
    sandbox.write("nowhere.txt", "a file");
    for code in [
        "(plot \"loss\" [1 2])",
        "(plot [1 2] \"loss.png\")",
        "(plot \"a.png\" [1 2] :kind :pie)",
        "(plot \"a.png\" {:a [1 2] :b [1 2 3]} :x [0 1])",
        "(plot \"a.png\" (zeros [2 3]) :kind :curve)",
        "(plot \"a.png\" (zeros [2 3 4 5]))",
        "(plot \"a.png\" ['a \"b\"])",
        "(plot \"a.png\" {})",
        "(plot \"a.png\" [(/ 0 0.0)] :kind :histogram)",
        "(plot \"a.png\" [1 2] :kind :histogram :bins 0)",
        "(plot \"a.png\" [1 2] :width 20000)",
        "(plot \"a.png\" [1 2] :title 3)",
        "(plot \"a.png\" [1 2] :colour \"red\")",
        "(plot \"nowhere.txt/a.png\" [1 2])",
    ] {
        let output = sandbox.run(&["-c", code, "--no-jit"]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output}");
        said += &format!("{output}\n");
        assert!(!sandbox.path("a.png").exists(), "{code}");
    }
    insta::assert_snapshot!("refused", said);
}
