//! Metrics, progress and plots, as the host gets them.

use crate::support::{World, run_in};

/// The events of a run without errors.
fn followed(text: &str) -> Vec<String> {
    let world = World::default();
    let result = run_in(&world, text);
    assert!(!result.contains("error"), "{result}");
    world.followed.take()
}

#[test]
fn metrics_have_names_steps_and_values() {
    let text = "(log-metric \"loss\" 0.5) (log-metric :n 3 :step 7) (defn f [x] (do (log-metric \"f\" (sum x)) x)) (f [1 2])";
    assert_eq!(followed(text), ["loss is 0.5", "n is 3 at 7", "f is 3"]);
}

#[test]
fn loops_over_marked_sequences_advance_a_bar() {
    let steps = |n: usize| {
        let mut all = vec!["a +1".to_owned(); n];
        all.insert(0, format!("a of {n}"));
        all.push("a ends".into());
        all
    };
    let loops = [
        ("(map inc (progress \"a\" '[1 2 3]))", 3),
        ("(map + (progress \"a\" '[1 2 3]) '[1 2])", 2),
        ("(mapv inc (progress \"a\" [1 2 3]))", 3),
        ("(reduce + 0 (progress \"a\" (range 4)))", 4),
        ("(reduce + (progress \"a\" '[1 2 3]))", 2),
        ("(filter (fn [x] (> x 1)) (progress \"a\" '[1 2 3]))", 3),
        ("(scan (fn [s x] [(+ s x) nil]) 0.0 (progress \"a\" [1 2 3]))", 3),
        ("(repeat [i (progress \"a\" 5)] [x 0.0] (+ x i))", 5),
        ("(def xs '[1 2]) (map inc (progress \"a\" xs))", 2),
        ("(defn f [n] (repeat [i (progress \"a\" n)] [x 0.0] (+ x i))) (f 3)", 3),
        // The copy that is marked is not the sequence itself.
        ("(def xs '[1 2]) (map (fn [x] (map inc xs)) (progress \"a\" xs))", 2),
    ];
    for (text, n) in loops {
        assert_eq!(followed(text), steps(n), "{text}");
    }
    let nested = followed("(map (fn [x] (map inc (progress \"b\" '[1]))) (progress \"a\" '[1 2]))");
    let inner = ["b of 1", "b +1", "b ends", "a +1"];
    assert_eq!(nested, [&["a of 2"][..], &inner, &inner, &["a ends"]].concat());
    for without in [
        "(progress \"a\" '[1 2])",
        "(count (progress \"a\" '[1 2]))",
        "(reduce + 0 (rest (progress \"a\" '[1 2])))",
    ] {
        assert_eq!(followed(without), [""; 0], "{without}");
    }
}

#[test]
fn an_error_ends_the_bar() {
    let world = World::default();
    let result = run_in(&world, "(map (fn [x] (if (> x 1) (error \"stop\") x)) (progress \"a\" '[1 2 3]))");
    assert!(result.contains("error: stop"), "{result}");
    assert_eq!(world.followed.take(), ["a of 3", "a +1", "a ends"]);
}

#[test]
fn plots_are_ready_to_be_drawn() {
    let shown = |text: &str| followed(text).join("\n");
    let curve = shown("(plot \"a.png\" [3 2 1] :title \"loss\" :y-label \"nats\" :log-y :width 320)");
    for part in [
        "a.png: Plot { title: \"loss\", width: Some(320), height: None",
        "points: [(0.0, 3.0), (1.0, 2.0), (2.0, 1.0)]",
        "lines: true, log_y: true, axes: Axes { x: \"\", y: \"nats\" }",
    ] {
        assert!(curve.contains(part), "{curve}");
    }
    let two = shown("(plot \"a.svg\" {:b '[1] :a (list (sum [1 2]) 4)} :kind :points)");
    assert!(two.contains("[Curve { name: \"b\", points: [(0.0, 1.0)] }, Curve { name: \"a\", points: [(0.0, 3.0), (1.0, 4.0)] }]"), "{two}");
    let histogram = shown("(plot \"a.png\" [[0 1] [2 4]] :kind :histogram :bins 2)");
    assert!(histogram.contains("borders: [0.0, 2.0, 4.0], counts: [(\"\", [2, 2])]"), "{histogram}");
    let one = shown("(plot \"a.png\" [5 5] :kind :histogram :bins 3)");
    assert!(one.contains("counts: [(\"\", [0, 2, 0])]"), "{one}");
    let images = [
        (
            "[[0 0.5] [1 (/ 0 0)]]",
            "width: 2, height: 2, channels: 1, columns: 1, pixels: [Some(0), Some(128), Some(255), None]",
        ),
        ("[[-1 0] [1 3]]", "pixels: [Some(0), Some(64), Some(128), Some(255)]"),
        ("(cast [[0 7]] :u8)", "pixels: [Some(0), Some(7)]"),
        ("[[7 7]]", "pixels: [Some(128), Some(128)]"),
        (
            "[[[1 0 0]]]",
            "width: 1, height: 1, channels: 3, columns: 1, pixels: [Some(255), Some(0), Some(0)]",
        ),
        ("(ones 5 2 1)", "width: 1, height: 2, channels: 1, columns: 3"),
        ("(map (fn [i] (ones 2 1)) (range 2))", "width: 1, height: 2, channels: 1, columns: 2"),
        ("(ones 2 2 1 3)", "width: 1, height: 2, channels: 3, columns: 2"),
    ];
    for (data, wanted) in images {
        let found = shown(&format!("(plot \"a.png\" {data})"));
        assert!(found.contains(wanted), "{data}: {found}");
    }
}
