//! Buffers without programs: every element type, odd shapes, wrong lengths.

use sheaf_runtime::{ElementType, Error, Runtime, Target};

use crate::support::{call, load, on_each_target};

#[test]
fn bytes_of_every_type_come_back_as_they_were() {
    on_each_target(|device, target| {
        for element in ElementType::ALL {
            for shape in [&[][..], &[3], &[2, 0, 5], &[2, 3, 4]] {
                let length = shape.iter().product::<usize>() * element.byte_width();
                let bytes: Vec<u8> = (0..length).map(|i| (i % 2) as u8).collect();
                let buffer = device.upload(element, shape, &bytes).unwrap();
                assert_eq!(buffer.element_type(), element);
                assert_eq!(buffer.shape(), shape);
                assert_eq!(buffer.byte_len(), length);
                assert_eq!(buffer.read().unwrap(), bytes, "{element}{shape:?} on {target}");
            }
        }
    });
}

#[test]
fn programs_take_and_give_every_type() {
    // Each argument is returned changed, so that its bytes passed through a kernel.
    const TYPES: [(ElementType, &str); 12] = [
        (ElementType::F32, "f32"),
        (ElementType::F64, "f64"),
        (ElementType::F16, "f16"),
        (ElementType::Bf16, "bf16"),
        (ElementType::I8, "i8"),
        (ElementType::I16, "i16"),
        (ElementType::I32, "i32"),
        (ElementType::I64, "i64"),
        (ElementType::U8, "ui8"),
        (ElementType::U16, "ui16"),
        (ElementType::U32, "ui32"),
        (ElementType::U64, "ui64"),
    ];
    let types = TYPES.map(|(_, mlir)| format!("tensor<3x{mlir}>"));
    let arguments: Vec<_> = types.iter().enumerate().map(|(i, ty)| format!("%a{i}: {ty}")).collect();
    let sums = types.iter().enumerate().map(|(i, ty)| format!("%s{i} = stablehlo.add %a{i}, %a{i} : {ty}\n"));
    let names: Vec<_> = (0..types.len()).map(|i| format!("%s{i}")).collect();
    let mlir = format!(
        "module @sheaf {{ func.func @main({}) -> ({types}) {{\n{} return {} : {types} }} }}",
        arguments.join(", "),
        sums.collect::<String>(),
        names.join(", "),
        types = types.join(", "),
    );
    // One and two as bytes of each type; 1 + 1 = 2 holds even if the bytes are a denormal number.
    let ones = |element: ElementType| -> (Vec<u8>, Vec<u8>) {
        let (one, two): (&[u8], &[u8]) = match element {
            ElementType::F32 => (&1_f32.to_ne_bytes(), &2_f32.to_ne_bytes()),
            ElementType::F64 => (&1_f64.to_ne_bytes(), &2_f64.to_ne_bytes()),
            ElementType::F16 => (&0x3c00_u16.to_ne_bytes(), &0x4000_u16.to_ne_bytes()),
            ElementType::Bf16 => (&0x3f80_u16.to_ne_bytes(), &0x4000_u16.to_ne_bytes()),
            ElementType::I8 | ElementType::U8 | ElementType::Bool => (&[1], &[2]),
            ElementType::I16 | ElementType::U16 => (&1_u16.to_ne_bytes(), &2_u16.to_ne_bytes()),
            ElementType::I32 | ElementType::U32 => (&1_u32.to_ne_bytes(), &2_u32.to_ne_bytes()),
            ElementType::I64 | ElementType::U64 => (&1_u64.to_ne_bytes(), &2_u64.to_ne_bytes()),
        };
        (one.repeat(3), two.repeat(3))
    };
    on_each_target(|device, target| {
        let Some(program) = load(device, &mlir) else { return };
        let arguments = TYPES.map(|(element, _)| device.upload(element, &[3], &ones(element).0).unwrap());
        let results = call(&program, &arguments.each_ref()).unwrap();
        for ((element, _), result) in TYPES.into_iter().zip(results) {
            assert_eq!(result.element_type(), element, "{target}");
            assert_eq!(result.read().unwrap(), ones(element).1, "{element} on {target}");
        }
    });
}

#[test]
fn a_wrong_number_of_bytes_is_refused() {
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let error = device.upload(ElementType::Bf16, &[2, 3], &[0; 6]).unwrap_err();
    assert!(matches!(error, Error::ByteLength { expected: 12, actual: 6, .. }));
    insta::assert_snapshot!(error, @"bf16[2, 3] takes 12 bytes, but 6 were given");

    let buffer = device.upload(ElementType::U8, &[2], &[1, 2]).unwrap();
    assert!(matches!(buffer.read_into(&mut [0; 3]), Err(Error::ByteLength { .. })));
    let mut bytes = [0; 2];
    buffer.read_into(&mut bytes).unwrap();
    assert_eq!(bytes, [1, 2]);
}

#[test]
fn a_shape_beyond_all_memory_is_refused() {
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let error = device.upload(ElementType::F32, &[usize::MAX, 2], &[]).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }));
    insta::assert_snapshot!(error, @"a buffer f32[18446744073709551615, 2] is too large to address on this machine");
}
