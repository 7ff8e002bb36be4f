//! `checkpoint` rematerializes in the backward pass, and so takes less memory.

use sheaf_runtime::{ElementType, Runtime, Target, Vmfb};
use sheaf_tests::Sandbox;

/// Twenty-five layers of 1 MB each, all needed by the backward pass: stored, or recomputed five at a time.
const PROGRAM: &str = "
(def ws (* 0.1 (random-normal (random-key 1) '[5 5 64 64])))
(def x (random-normal (random-key 2) '[4096 64]))
(defn layers [h ws] (reduce (fn [h w] (tanh (@ h w))) h ws))
(defn kept-loss [ws x] (sum (reduce layers x ws)))
(defn again-loss [ws x] (sum (reduce (checkpoint layers) x ws)))
(defn kept [ws x] ((grad kept-loss) ws x))
(defn again [ws x] ((grad again-loss) ws x))
(print (< (max (abs (- (kept ws x) (again ws x)))) 1e-5))
";

const LAYER_BYTES: usize = 4096 * 64 * 4;

#[test]
fn memory_is_traded_for_work() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("deep.shf", PROGRAM);
    assert_eq!(sandbox.run(&["deep.shf", "--jit", "always"]).compiled(), "true\n");
    let (kept, again) = (peak(&sandbox, "kept"), peak(&sandbox, "again"));
    println!("peak of the gradient: {kept} bytes with all layers kept, {again} with checkpoints");
    // Twenty-five layers, against five stored and five recomputed.
    assert!(kept > 25 * LAYER_BYTES, "{kept}");
    assert!(again < 16 * LAYER_BYTES, "{again} of {kept}");
}

/// Peak bytes of the buffers of a function's program in one call.
fn peak(sandbox: &Sandbox, function: &str) -> usize {
    let folder = sandbox.path("__sheaf__");
    let manifest = std::fs::read(folder.join("manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    let entry = manifest["entries"]
        .as_array()
        .and_then(|entries| entries.iter().find(|e| e["function"] == function))
        .expect("an entry of the function");
    let bytes = std::fs::read(folder.join(entry["file"].as_str().expect("a file"))).expect("the program");
    let digest = sheaf_runtime::sha256(&bytes);
    let vmfb = Vmfb::verify(bytes, &digest).expect("its own digest");
    let device = Runtime::new().and_then(|runtime| runtime.device(Target::LocalSync)).expect("a device");
    let program = device.load(&vmfb).expect("a program");
    let mut frame = program.call_frame().expect("a frame");
    for (i, input) in entry["inputs"].as_array().expect("inputs").iter().enumerate() {
        let shape: Vec<usize> = serde_json::from_value(input["shape"].clone()).expect("a shape");
        let zeros = vec![0; shape.iter().product::<usize>() * 4];
        let argument = device.upload(ElementType::F32, &shape, &zeros).expect("an argument");
        frame.set(i, &argument).expect("an argument");
    }
    frame.invoke().expect("a call");
    device.memory().peak
}
