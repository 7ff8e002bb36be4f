//! Properties of data files: what is saved is loaded alike, whatever the format, dtype and tree; and what damage does to a
//! file ends in a value or in a message.

#![allow(clippy::disallowed_methods, reason = "the tests read golden files from the repository")]

use std::rc::Rc;

use proptest::prelude::*;

use crate::support::World;
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_lang::builtins::show;
use sheaf_lang::eval::{Interp, Options};
use sheaf_lang::program::{Dict, Key, Tensor, Value};
use sheaf_syntax::render::render;

/// A tensor of any dtype and of a few elements, of any bits.
fn tensors() -> impl Strategy<Value = HostTensor> {
    let shape = prop::collection::vec(0..4_usize, 0..4);
    (prop::sample::select(&DType::ALL[..]), shape, any::<u64>()).prop_map(|(dtype, shape, seed)| {
        let ty = TensorType::new(dtype, shape.as_slice());
        let mut bits = seed;
        let mut byte = || {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let byte = (bits >> 56) as u8;
            if dtype == DType::Bool { byte & 1 } else { byte }
        };
        let bytes: Vec<u8> = (0..ty.count() * dtype.byte_width()).map(|_| byte()).collect();
        HostTensor::from_bytes(&ty, &bytes).expect("as many as it has")
    })
}

fn leaves() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => tensors().prop_map(|t| Value::Tensor(Tensor::host(t))),
        1 => any::<i64>().prop_map(Value::Int),
        1 => any::<f64>().prop_map(Value::Float),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => Just(Value::Nil),
        1 => "\\PC{0,8}".prop_map(Value::text),
        1 => "[a-z]{1,4}".prop_map(|name| Value::Keyword(name.as_str().into())),
        1 => "[a-z]{1,4}".prop_map(|name| Value::Symbol(name.as_str().into())),
    ]
}

fn keys() -> impl Strategy<Value = Key> {
    ("[a-z0-9 _\"\\\\é]{0,4}", any::<bool>())
        .prop_map(|(name, quoted)| Key { name: name.as_str().into(), quoted })
}

/// Nested lists and dictionaries over those leaves.
fn trees() -> impl Strategy<Value = Value> {
    let nested = leaves().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::list),
            prop::collection::vec((keys(), inner), 0..4)
                .prop_map(|entries| Value::Dict(Rc::new(entries.into_iter().collect::<Dict>()))),
        ]
    });
    prop_oneof![
        prop::collection::vec(nested.clone(), 0..4).prop_map(Value::list),
        prop::collection::vec((keys(), nested), 0..4)
            .prop_map(|entries| Value::Dict(Rc::new(entries.into_iter().collect::<Dict>()))),
    ]
}

/// The kinds, types and bits of all that is in a value, as text.
fn bits(value: &Value) -> String {
    match value {
        Value::Tensor(t) => {
            let host = t.concrete().expect("elements").host().expect("elements");
            format!("{} {:?} {}", t.ty(), host.copied_bytes(), t.ty().weak)
        }
        Value::Float(x) => format!("float {:x}", x.to_bits()),
        Value::List(list) => format!("[{}]", list.items.iter().map(bits).collect::<Vec<_>>().join(", ")),
        Value::Dict(dict) => {
            let entries: Vec<String> =
                dict.iter().map(|(key, value)| format!("{key:?} {}", bits(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        other => format!("{other:?}"),
    }
}

/// Saves a value under a name, and loads it.
fn there_and_back(value: &Value, path: &str, hint: &str) -> Result<Value, String> {
    let world = World::default();
    let mut interp = Interp::new(Box::new(world), None, Options::default());
    let module = Interp::program("test.shf");
    let text =
        format!("(defn save [x] (io \"save\" {path:?} x)) (defn back [] (io \"load\" {path:?} {hint}))");
    let shown = |interp: &Interp, errors: Vec<_>| {
        errors.iter().map(|d| render(&interp.sources, d, false)).collect::<String>()
    };
    interp.run_text(&module, "test.shf", &text).map_err(|errors| shown(&interp, errors))?;
    let site = interp.call_site("test");
    let mut call = |name: &str, args: Vec<Value>| {
        let function = Interp::definition(&module, name).map_err(|d| d.message)?;
        interp.apply(&function, args.into(), site).map_err(|errors| shown(&interp, errors))
    };
    call("save", vec![value.clone()])?;
    call("back", Vec::new())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trees_come_back_from_safetensors(tree in trees()) {
        let back = there_and_back(&tree, "x.safetensors", "").map_err(TestCaseError::fail)?;
        prop_assert_eq!(bits(&back), bits(&tree));
    }

    #[test]
    fn tensors_come_back_from_every_format(tensor in tensors()) {
        let value = Value::Tensor(Tensor::host(tensor.clone()));
        if tensor.dtype() != DType::BF16 {
            let back = there_and_back(&value, "x.npy", "").map_err(TestCaseError::fail)?;
            prop_assert_eq!(bits(&back), bits(&value));
            let entry = Value::Dict(Rc::new([(Key { quoted: false, ..Key::quoted("a.b") }, value.clone())].into_iter().collect::<Dict>()));
            prop_assert!(there_and_back(&entry, "x.npz", "").is_err(), "the key has a dot");
            let entry = Value::Dict(Rc::new([(Key { quoted: false, ..Key::quoted("a") }, value.clone())].into_iter().collect::<Dict>()));
            let back = there_and_back(&entry, "x.npz", "").map_err(TestCaseError::fail)?;
            prop_assert_eq!(bits(&back), bits(&entry));
        }
        let flat = Value::Tensor(Tensor::host(tensor.reshaped([tensor.count()].as_slice())));
        let back = there_and_back(&flat, "x.bin", &format!(":{}", tensor.dtype())).map_err(TestCaseError::fail)?;
        let Value::Handle(handle) = back else { return Err(TestCaseError::fail("no handle")) };
        prop_assert_eq!(handle.text(), format!("<handle {}[{}] x.bin>", tensor.dtype(), tensor.count()));
    }

    #[test]
    fn columns_come_back_from_csv(
        numbers in prop::collection::vec(any::<f32>().prop_filter("finite", |x| x.is_finite()), 1..6),
        words in prop::collection::vec("[a-z,\"' \\n;é]{0,6}[a-z]", 1..6),
    ) {
        let n = numbers.len().min(words.len());
        let words: Vec<Value> = words[..n].iter().map(|word| Value::text(word.trim())).collect();
        let columns = [
            (Key::quoted("x"), Value::Tensor(Tensor::host(HostTensor::new([n].as_slice(), numbers[..n].to_vec())))),
            (Key::quoted("name"), Value::list(words.clone())),
        ];
        // Words such as `inf` are numbers.
        prop_assume!(words.iter().any(|word| show(word).parse::<f64>().is_err()));
        let table = Value::Dict(Rc::new(columns.into_iter().collect::<Dict>()));
        let back = there_and_back(&table, "x.csv", "").map_err(TestCaseError::fail)?;
        prop_assert_eq!(bits(&back), bits(&table));
    }

    #[test]
    fn json_comes_back(text in "\\PC{0,12}", n in any::<i32>(), x in any::<f32>().prop_filter("finite", |x| x.is_finite())) {
        let entries = [
            (Key::quoted("text"), Value::text(&text)),
            (Key::quoted(&text), Value::Int(n.into())),
            (Key::quoted("list"), Value::list(vec![Value::Float(x.into()), Value::text("x"), Value::Nil, Value::Bool(true)])),
        ];
        let value = Value::Dict(Rc::new(entries.into_iter().collect::<Dict>()));
        let back = there_and_back(&value, "x.json", "").map_err(TestCaseError::fail)?;
        prop_assert_eq!(show(&back), show(&value));
        let lines = Value::list(vec![value.clone(), Value::Int(7)]);
        let Value::Handle(_) = there_and_back(&lines, "x.jsonl", "").map_err(TestCaseError::fail)? else {
            return Err(TestCaseError::fail("no handle"));
        };
    }
}

/// Files of every format.
fn golden() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data");
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let mut golden: Vec<(String, Vec<u8>)> = files
        .filter(|path| path.extension().is_some_and(|e| e != "py"))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("a golden file"))
        })
        .collect();
    let world = World::default();
    let saved = crate::support::run_in(
        &world,
        "(io \"save\" \"a.safetensors\" {:a [1 2] :l (list 1 \"x\") :d {:k (zeros '[2 2] :bf16)}})
         (io \"save\" \"a.json\" {:a [1 2] :b '[1 :x nil]}) (io \"save\" \"a.jsonl\" '[1 \"x\" {:a 2}])
         (io \"save\" \"a.csv\" {:a [1 2] :b '[\"x\" \"y\"]})",
    );
    assert_eq!(saved, "");
    golden.extend(world.files.take());
    golden.sort();
    golden
}

#[test]
fn damage_is_a_value_or_a_message() {
    let golden = golden();
    assert!(golden.len() > 30, "the golden files are there");
    let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        (bits % below.max(1) as u64) as usize
    };
    let count = if std::env::var_os("SHEAF_NIGHTLY").is_some() { 60 } else { 15 };
    for (name, bytes) in &golden {
        let cases: Vec<(String, Vec<u8>)> = (0..count)
            .map(|case| {
                let mut damaged = bytes.clone();
                for _ in 0..=random(4) {
                    let at = random(damaged.len());
                    match random(4) {
                        0 if !damaged.is_empty() => damaged[at] = random(256) as u8,
                        1 => damaged.truncate(at),
                        2 => damaged.insert(at, random(256) as u8),
                        _ if !damaged.is_empty() => damaged[at] ^= 1 << random(8),
                        _ => {}
                    }
                }
                (format!("{case}-{name}"), damaged)
            })
            .collect();
        let named: Vec<(&str, &Vec<u8>)> = cases.iter().map(|(name, bytes)| (name.as_str(), bytes)).collect();
        let world = World::with(&named);
        for (name, _) in &cases {
            crate::support::run_in(&world, &format!("(str (io \"load\" {name:?}))"));
        }
    }
}
