//! Lists and dictionaries against vectors and hash tables of the standard library, over random operations; and memory
//! of programs that grow them.

use crate::support::{World, compiling, run_with};
use allocation_counter::{AllocationInfo, measure};
use indexmap::IndexMap;
use proptest::prelude::*;
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::program::{Dict, Items, Key, Value};

/// Numbers, and lists, which have a different drop path.
fn value(n: i64) -> Value {
    if n % 3 == 0 { Value::list(vec![Value::Int(n)]) } else { Value::Int(n) }
}

fn show(values: impl Iterator<Item = Value>) -> Vec<String> {
    values.map(|value| sheaf_lang::builtins::repr(&value)).collect()
}

#[derive(Clone, Debug)]
enum OnList {
    And(Vec<i64>),
    After(i64),
    Set(prop::sample::Index, i64),
    Part(prop::sample::Index, prop::sample::Index),
    /// Continues from an earlier version.
    Back(prop::sample::Index),
}

fn on_list() -> impl Strategy<Value = OnList> {
    prop_oneof![
        4 => prop::collection::vec(any::<i64>(), 0..40).prop_map(OnList::And),
        3 => any::<i64>().prop_map(OnList::After),
        3 => (any::<prop::sample::Index>(), any::<i64>()).prop_map(|(i, n)| OnList::Set(i, n)),
        1 => (any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(|(i, j)| OnList::Part(i, j)),
        1 => any::<prop::sample::Index>().prop_map(OnList::Back),
    ]
}

#[derive(Clone, Debug)]
enum OnDict {
    Insert(u8, bool, i64),
    Remove(u8),
    Back(prop::sample::Index),
}

fn on_dict() -> impl Strategy<Value = OnDict> {
    prop_oneof![
        6 => (any::<u8>(), any::<bool>(), any::<i64>()).prop_map(|(k, quoted, n)| OnDict::Insert(k, quoted, n)),
        2 => any::<u8>().prop_map(OnDict::Remove),
        1 => any::<prop::sample::Index>().prop_map(OnDict::Back),
    ]
}

fn key(name: u8, quoted: bool) -> Key {
    let key = Key::quoted(&format!("k {name}"));
    if quoted { key } else { Key::from(key.name) }
}

proptest! {
    /// Versions of a list are immutable, with few items or many.
    #[test]
    fn items_are_those_of_a_vector(start in 0..150_i64, ops in prop::collection::vec(on_list(), 1..60)) {
        let mut model: Vec<i64> = (0..start).collect();
        let mut items: Items = model.iter().copied().map(value).collect();
        let mut versions = vec![(items.clone(), model.clone())];
        for op in ops {
            match op {
                OnList::And(others) => {
                    items = items.and(&others.iter().copied().map(value).collect::<Vec<_>>());
                    model.extend(others);
                }
                OnList::After(first) => {
                    items = items.after(value(first));
                    model.insert(0, first);
                }
                OnList::Set(i, n) if !model.is_empty() => {
                    let i = i.index(model.len());
                    items.set(i, value(n));
                    model[i] = n;
                }
                OnList::Set(..) => {}
                OnList::Part(i, j) => {
                    let (i, j) = (i.index(model.len() + 1), j.index(model.len() + 1));
                    items = items.part(i.min(j)..i.max(j));
                    model = model[i.min(j)..i.max(j)].to_vec();
                }
                OnList::Back(i) => (items, model) = versions[i.index(versions.len())].clone(),
            }
            versions.push((items.clone(), model.clone()));
        }
        for (items, model) in &versions {
            let wanted = show(model.iter().copied().map(value));
            prop_assert_eq!(items.len(), model.len());
            prop_assert_eq!(&show(items.iter().cloned()), &wanted);
            prop_assert_eq!(&show((0..model.len()).map(|i| items[i].clone())), &wanted);
            prop_assert_eq!(&show(items.to_vec().into_iter()), &wanted);
            prop_assert!(items.get(model.len()).is_none());
        }
    }

    /// Versions of a dictionary are immutable, in insertion order, with the syntax of their first keys.
    #[test]
    fn entries_are_those_of_a_table(start in 0..120_u8, ops in prop::collection::vec(on_dict(), 1..150)) {
        let mut model: IndexMap<String, (bool, i64)> = IndexMap::new();
        let mut dict = Dict::default();
        let mut versions = Vec::new();
        let first = (0..start).map(|k| OnDict::Insert(k, k % 5 == 0, i64::from(k)));
        for op in first.chain(ops) {
            match op {
                OnDict::Insert(name, quoted, n) => {
                    let before = dict.insert(key(name, quoted), value(n)).is_some();
                    let known = model.get(&*key(name, quoted).name).map(|(quoted, _)| *quoted);
                    prop_assert_eq!(before, known.is_some());
                    model.insert(key(name, quoted).name.to_string(), (known.unwrap_or(quoted), n));
                }
                OnDict::Remove(name) => {
                    dict.remove(&key(name, false).name);
                    model.shift_remove(&*key(name, false).name);
                }
                OnDict::Back(i) if !versions.is_empty() => {
                    (dict, model) = Clone::clone(&versions[i.index(versions.len())]);
                }
                OnDict::Back(_) => {}
            }
            versions.push((dict.clone(), model.clone()));
        }
        for (dict, model) in versions.iter().step_by(7).chain(versions.last()) {
            let entries = |entries: &mut dyn Iterator<Item = (Key, &Value)>| -> Vec<(String, bool, Vec<String>)> {
                entries.map(|(k, v)| (k.to_string(), k.quoted, show(std::iter::once(v.clone())))).collect()
            };
            let wanted: Vec<_> =
                model.iter().map(|(k, (q, n))| (k.clone(), *q, show(std::iter::once(value(*n))))).collect();
            prop_assert_eq!(dict.len(), model.len());
            prop_assert_eq!(&entries(&mut dict.iter()), &wanted);
            let mut by_position = (0..model.len()).map(|i| dict.get_index(i).expect("an entry"));
            prop_assert_eq!(&entries(&mut by_position), &wanted);
            prop_assert_eq!(dict.keys().count(), dict.values().count());
            for name in 0..=u8::MAX {
                let (key, known) = (key(name, false).name, model.get(&*key(name, false).name));
                prop_assert_eq!(dict.contains_key(&key), known.is_some());
                let found = dict.get(&key).map(|v| show(std::iter::once(v.clone())));
                prop_assert_eq!(found, known.map(|(_, n)| show(std::iter::once(value(*n)))));
            }
            let sorted: Vec<String> = dict.sorted().iter().map(|(_, key, _)| key.to_string()).collect();
            prop_assert!(sorted.is_sorted());
        }
    }
}

/// Bytes and blocks that a program allocates, with or without a device.
fn taken(program: &str, jit: Jit) -> AllocationInfo {
    let (mut interp, world) = if jit == Jit::Never {
        let world = World::default();
        (Interp::new(Box::new(world.clone()), None, Options::default()), world)
    } else {
        let (interp, world, _) = compiling(jit);
        (interp, world)
    };
    let mut result = String::new();
    let info = measure(|| result = run_with(&mut interp, &world, program));
    assert!(result.starts_with("=> "), "{result}");
    info
}

/// Four times the iterations take about four times the memory; copying would take sixteen times.
#[test]
fn what_grows_in_a_loop_is_not_copied() {
    const PROGRAMS: [&str; 11] = [
        "(len (reduce (fn [xs i] (append xs i)) '[] (range N)))",
        "(len (repeat [i N] [xs '[]] (append xs (* i 2))))",
        "(len (repeat [i N] [xs '[]] (append xs (list i))))",
        "(def x [1 2 3]) (len (repeat [i N] [history '[]] (append history (sum x))))",
        "(len (reduce (fn [xs i] (cons i xs)) '[] (range N)))",
        "(len (reduce (fn [xs i] (concat xs (list i))) '[] (range N)))",
        "(len (repeat [i N] [xs (map identity (range N))] (assoc xs i 1)))",
        "(len (while (> (len xs) 1) [xs (map identity (range N))] (rest xs)))",
        "(len (reduce (fn [d i] (assoc d (str \"k\" i) i)) {} (range N)))",
        "(len (repeat [i N] [d (zipmap (map str (range N)) (map list (range N)))] (merge (update d \"7\" append i) {:a i})))",
        "(len (repeat [i N] [d (zipmap (map str (range N)) (range N))] (dissoc d (str i))))",
    ];
    for program in PROGRAMS {
        for jit in [Jit::Never, Jit::Auto] {
            let of = |n: usize| taken(&program.replace('N', &n.to_string()), jit);
            let (few, many) = (of(1_000), of(4_000));
            let growth = |f: fn(&AllocationInfo) -> u64| f(&many) as f64 / f(&few) as f64;
            let (bytes, count) = (growth(|info| info.bytes_total), growth(|info| info.count_total));
            assert!(bytes < 6.0 && count < 6.0, "{program}: {few:?}, {many:?}");
        }
    }
}
