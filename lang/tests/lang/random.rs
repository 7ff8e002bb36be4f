//! Random numbers against JAX 0.10.2 (`jax.random`, default configuration). Each golden value names the call that
//! produced it, with `u32(x)` for `np.asarray(x).view(np.uint32).ravel()` and `key(s)` for `jax.random.PRNGKey(s)`.

use crate::support::{World, check, run};
use sheaf_graph::tensor::{Data, HostTensor};
use sheaf_lang::eval::{Interp, Options};
use sheaf_lang::program::Value;

fn tensor(program: &str) -> HostTensor {
    let mut interp = Interp::new(Box::new(World::default()), None, Options::default());
    match interp.run_program("test.shf", program) {
        Ok(Value::Tensor(t)) => t.concrete().expect("a value").host().expect("on the host").clone(),
        other => panic!("{program}: {other:?}"),
    }
}

/// The elements as 32-bit words.
fn words(x: &HostTensor) -> Vec<u32> {
    match x.data() {
        Data::F32(v) => v.iter().map(|x| x.to_bits()).collect(),
        Data::U32(v) => v.to_vec(),
        Data::I32(v) => v.iter().map(|x| *x as u32).collect(),
        other => panic!("{other:?}"),
    }
}

fn pick(words: &[u32], positions: &[usize]) -> Vec<u32> {
    positions.iter().map(|i| words[*i]).collect()
}

fn within_ulps(found: &[u32], wanted: &[u32], ulps: u32) {
    assert_eq!(found.len(), wanted.len());
    for (f, w) in found.iter().zip(wanted) {
        assert!(f.abs_diff(*w) <= ulps, "{} and {}", f32::from_bits(*f), f32::from_bits(*w));
    }
}

/// `u32(key(seed))`
#[test]
fn keys() {
    for (seed, key) in [
        ("0", [0, 0]),
        ("42", [0, 42]),
        ("123456789", [0, 123_456_789]),
        ("-1", [0, 4_294_967_295]),
        ("2147483648", [0, 2_147_483_648]),
        ("4294967301", [0, 5]),
    ] {
        let program = format!("(random-key {seed})");
        assert_eq!(words(&tensor(&program)), key, "{program}");
    }
}

#[test]
fn splits() {
    // u32(jax.random.split(key(42)))
    let two = [1_832_780_943, 270_669_613, 64_467_757, 2_916_123_636];
    assert_eq!(words(&tensor("(random-split (random-key 42))")), two);
    assert_eq!(words(&tensor("(let [[a b] (random-split (random-key 42))] b)")), two[2..]);
    // u32(jax.random.split(key(0), 3))
    let three = [1_797_259_609, 2_579_123_966, 928_981_903, 3_453_687_069, 4_146_024_105, 2_718_843_009];
    assert_eq!(words(&tensor("(random-split (random-key 0) 3)")), three);
}

/// `u32(jax.random.uniform(key(s), shape))`, and with `minval=-2., maxval=3.`. There XLA contracts the product with the
/// width and the sum with the lower bound to an FMA, which rounds once, and so must the host.
#[test]
fn uniforms() {
    let cases: [(u32, &str, &[u32], &[u32]); 3] = [
        (
            0,
            "'[4]",
            &[1_064_475_214, 1_064_993_846, 1_051_337_244, 1_055_913_296],
            &[1_076_838_626, 1_077_486_916, 3_199_030_644, 1_051_708_048],
        ),
        (
            42,
            "'[2 3]",
            &[1_056_585_764, 1_059_981_104, 1_058_915_320, 1_057_988_288, 1_055_308_516, 1_058_405_198],
            &[1_055_070_388, 1_068_700_152, 1_066_035_692, 1_062_083_008, 1_048_684_148, 1_064_167_558],
        ),
        (7, "'[]", &[1_059_885_352], &[1_068_460_772]),
    ];
    for (seed, shape, plain, scaled) in cases {
        assert_eq!(words(&tensor(&format!("(random-uniform (random-key {seed}) {shape})"))), plain);
        for bounds in [":low -2 :high 3", ":low (sum [-2]) :high 3.0"] {
            let program = format!("(random-uniform (random-key {seed}) {shape} {bounds})");
            assert_eq!(words(&tensor(&program)), scaled, "{program}");
        }
    }
}

/// `u32(jax.random.normal(key(s), shape))`
#[test]
fn normals() {
    let cases: [(u32, &str, &[u32]); 3] = [
        (0, "4", &[1_070_576_317, 1_073_847_792, 3_202_220_055, 3_181_445_666]),
        (
            42,
            "[2 3]",
            &[3_169_312_533, 1_055_861_736, 1_050_109_537, 1_042_103_076, 3_187_541_227, 1_046_356_250],
        ),
        (7, "'[]", &[1_055_328_331]),
    ];
    for (seed, shape, wanted) in cases {
        within_ulps(&words(&tensor(&format!("(random-normal (random-key {seed}) {shape})"))), wanted, 4);
    }
}

/// More than 2^16 elements: `u = jax.random.uniform(key(1), (70001,))`, `z = jax.random.normal(key(1), (70001,))`.
#[test]
fn many() {
    const POSITIONS: [usize; 8] = [0, 1, 32_767, 32_768, 65_535, 65_536, 65_537, 70_000];
    let u = words(&tensor("(random-uniform (random-key 1) 70001)"));
    let wanted = [
        1_054_905_456,
        1_057_530_888,
        1_054_834_672,
        1_061_714_054,
        1_037_385_936,
        1_060_505_828,
        1_064_062_836,
        1_063_495_936,
    ];
    assert_eq!(pick(&u, &POSITIONS), wanted);
    // u32(u).astype(np.uint64).sum()
    assert_eq!(u.iter().map(|w| u64::from(*w)).sum::<u64>(), 73_696_557_726_798);
    let z = words(&tensor("(random-normal (random-key 1) 70001)"));
    let wanted = [
        3_189_646_536,
        1_034_779_394,
        3_190_005_802,
        1_061_706_995,
        3_215_004_297,
        1_057_912_901,
        1_068_928_017,
        1_067_222_204,
    ];
    within_ulps(&pick(&z, &POSITIONS), &wanted, 4);
    // jax.random.uniform(key(1), (300, 250)): positions count in row-major order.
    let square = words(&tensor("(random-uniform (random-key 1) 300 250)"));
    assert_eq!(
        pick(&square, &[0, 249, 250, 65_535, 65_536, 74_999]),
        [1_054_905_456, 1_059_219_566, 1_058_300_550, 1_037_385_936, 1_060_505_828, 1_054_669_852]
    );
}

#[test]
fn permutations() {
    check(&[
        // jax.random.permutation(key(0), 5), of (key(42), 10), (key(3), 1) and (key(3), 0)
        ("(random-permutation (random-key 0) 5)", "=> tensor i32[5] = [0 1 4 3 2]"),
        ("(random-permutation (random-key 42) 10)", "=> tensor i32[10] = [7 4 2 5 3 6 8 9 0 1]"),
        ("(random-permutation (random-key 3) 1)", "=> tensor i32[1] = [0]"),
        ("(shape (random-permutation (random-key 3) 0))", "=> '[0]"),
        // jax.random.permutation(key(2), jnp.arange(8).reshape(4, 2))
        (
            "(random-permutation (random-key 2) (reshape (arange 8) 4 2))",
            "=> tensor i32[4x2] = [[4 5]\n [2 3]\n [6 7]\n [0 1]]",
        ),
    ]);
    // p = jax.random.permutation(key(5), 70001), two rounds of sorting
    let p = words(&tensor("(random-permutation (random-key 5) 70001)"));
    assert_eq!(p[..8], [31_155, 51_323, 52_034, 57_084, 24_896, 54_770, 14_806, 62_090]);
    // (p.astype(np.int64) * np.arange(70001)).sum()
    let sum: u64 = p.iter().zip(0..).map(|(p, i)| u64::from(*p) * i).sum();
    assert_eq!(sum, 85_408_169_999_913);
}

/// `u32(jax.random.fold_in(key(s), n))`
#[test]
fn folded_keys() {
    for (program, key) in [
        ("(fold-in (random-key 0) 7)", [2_716_826_189, 292_468_403]),
        ("(fold-in (random-key 42) 0)", [1_832_780_943, 270_669_613]),
        // n = 2^32 - 1
        ("(fold-in (random-key 1) -1)", [1_173_147_676, 4_026_309_821]),
    ] {
        assert_eq!(words(&tensor(program)), key, "{program}");
    }
}

/// The sum of the elements, and their sum weighted by position.
fn sums(program: &str) -> (i64, i64) {
    let x = tensor(program);
    let elements: Vec<i64> = (0..x.count()).map(|i| x.element_i64(i)).collect();
    (elements.iter().sum(), (0..).zip(&elements).map(|(i, x)| i * x).sum())
}

/// With `x = np.asarray(call).astype(np.int64)`: `x.sum(), (x * np.arange(len(x))).sum()`. Small calls are in
/// `tests/corpus/random`.
#[test]
fn many_draws() {
    for (program, wanted) in [
        // jax.random.randint(key(11), (70001,), -1000, 1000)
        ("(random-randint (random-key 11) 70001 -1000 1000)", (-147_456, -5_388_765_910)),
        // jax.random.bernoulli(key(14), .3, (20000,))
        ("(random-bernoulli (random-key 14) 0.3 20000)", (6_095, 60_697_724)),
        // jax.random.choice(key(13), 100, (20000,), p=jnp.arange(1., 101.) / 5050)
        ("(choice (random-key 13) 100 20000 :p (/ (arange 1 101) 5050))", (1_324_686, 13_274_144_258)),
        // jax.random.choice(key(15), 1000, (1000,), replace=False, p=jnp.arange(1., 1001.) / 500500)
        (
            "(choice (random-key 15) 1000 1000 :replace false :p (/ (arange 1 1001) 500500))",
            (499_500, 203_963_552),
        ),
        // jax.random.categorical(key(12), jnp.array([0., .5, 1., -1.]), shape=(20000,))
        ("(random-categorical (random-key 12) [0 0.5 1 -1] :shape 20000)", (28_633, 286_506_824)),
    ] {
        assert_eq!(sums(program), wanted, "{program}");
    }
}

#[test]
fn misuse() {
    check(&[
        ("(random-normal 42 '[2])", "error: expected a key, got the number 42"),
        ("(random-key 1.5)", "error: the seed must be a whole number"),
        ("(random-split (random-key 1) -1)", "error: the number of keys must not be negative"),
        ("(random-normal (random-key 1) '[-2])", "error: an extent must not be negative"),
        ("(random-uniform (random-key 1) 3 :low [1 2])", "error: a bound is a number, not a tensor f32[2]"),
        (
            "(random-uniform (random-key 1) 3 :dtype :i32)",
            "error: these random numbers are f32, f16 or bf16, not i32",
        ),
        ("(random-uniform (random-key 1) :low)", "error: :low wants a value after it"),
        ("(random-normal (random-key 1) 100000 100000 100000)", "error: "),
    ]);
    assert!(!run("(random-normal (random-key 1) [1000000 1000000])").contains("panic"));
}
