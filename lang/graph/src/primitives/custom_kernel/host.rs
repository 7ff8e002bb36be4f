//! The kernels on the host, by the library `nalgebra`, in `f64`.

use nalgebra::{DMatrix, DVector};
use smallvec::SmallVec;

use super::Kernel;
use crate::tensor::{DType, Data, HostTensor, Shape, TensorType, element_count};

type Matrix = DMatrix<f64>;

/// Maximum iterations of a singular value decomposition for each row: some two are enough.
const ITERATIONS: usize = 100;

/// The results, `None` for other dtypes than `f32` and `f64`, for empty matrices, and where an operand or a result is not finite, which
/// the function gives as it does when compiled.
pub(super) fn evaluate(kernel: Kernel, args: &[&HostTensor]) -> Option<SmallVec<[HostTensor; 2]>> {
    let types: Vec<TensorType> = args.iter().map(|x| x.ty()).collect();
    let shapes = kernel.results(&types.iter().collect::<Vec<_>>())?;
    let dtype = types[0].dtype;
    if types.iter().any(|ty| ty.count() == 0) {
        return None;
    }
    let operands = args.iter().zip(&types).map(|(x, ty)| items(x, &ty.shape)).collect::<Option<Vec<_>>>()?;
    let mut results: Vec<Vec<f64>> =
        shapes.iter().map(|shape| Vec::with_capacity(element_count(shape))).collect();
    for item in 0..operands[0].len() {
        let made = of_matrices(kernel, &operands[0][item], operands.get(1).map(|b| &b[item]))?;
        for (result, matrix) in results.iter_mut().zip(made) {
            result.extend(matrix.transpose().iter());
        }
    }
    results.iter().flatten().all(|x| x.is_finite()).then(|| {
        let tensor = |(shape, data): (&Shape, Vec<f64>)| match dtype {
            DType::F32 => HostTensor::new(shape.clone(), data.iter().map(|x| *x as f32).collect::<Vec<f32>>()),
            _ => HostTensor::new(shape.clone(), data),
        };
        shapes.iter().zip(results).map(tensor).collect()
    })
}

/// The matrices of a tensor.
fn items(x: &HostTensor, shape: &[usize]) -> Option<Vec<Matrix>> {
    let [.., rows, columns] = shape[..] else { return None };
    let elements: Vec<f64> = match x.data() {
        Data::F32(elements) => elements.iter().copied().map(f64::from).collect(),
        Data::F64(elements) => elements.to_vec(),
        _ => return None,
    };
    let is_finite = elements.iter().all(|x| x.is_finite());
    is_finite.then(|| elements.chunks(rows * columns).map(|x| Matrix::from_row_slice(rows, columns, x)).collect())
}

fn of_matrices(kernel: Kernel, a: &Matrix, b: Option<&Matrix>) -> Option<Vec<Matrix>> {
    let (n, m) = a.shape();
    match kernel {
        Kernel::Cholesky => Some(vec![a.clone().cholesky()?.l()]),
        Kernel::Lu => {
            let factors = a.clone().lu();
            let mut order = DVector::from_fn(n, |i, _| i as f64);
            factors.p().permute_rows(&mut order);
            Some(vec![factors.lu_internal().clone(), Matrix::from_column_slice(n, 1, order.as_slice())])
        }
        Kernel::Qr => {
            let (q, r) = reflected(a);
            Some(vec![q, r])
        }
        Kernel::Substitution => Some(vec![a.solve_lower_triangular(b?)?]),
        Kernel::BackSubstitution => Some(vec![a.tr_solve_lower_triangular(b?)?]),
        Kernel::Rotations if n == m => {
            // The rows of s v' are those of a, turned by u'.
            let factors = a.clone().try_svd(true, true, f64::EPSILON, ITERATIONS * n)?;
            let rows = Matrix::from_diagonal(&factors.singular_values) * factors.v_t?;
            Some(vec![rows, factors.u?.transpose()])
        }
        Kernel::Rotations => None,
    }
}

/// Orthonormal columns q and the upper triangle r of a tall matrix, by reflections with the signs of LAPACK: none of a column that is
/// zero below the diagonal. The library makes the diagonal of r positive.
fn reflected(a: &Matrix) -> (Matrix, Matrix) {
    let (n, m) = a.shape();
    let mut r = a.clone();
    let mut reflections = Vec::new();
    for k in 0..m.min(n - 1) {
        let mut v = r.view((k, k), (n - k, 1)).into_owned();
        let first = v[0];
        if v.rows(1, n - k - 1).iter().all(|x| *x == 0.0) {
            continue;
        }
        let diagonal = -v.norm().copysign(first);
        v[0] = first - diagonal;
        let scale = -1.0 / (diagonal * v[0]);
        reflect(&mut r, k, &v, scale);
        reflections.push((k, v, scale));
    }
    let mut q = Matrix::identity(n, m);
    for (k, v, scale) in reflections.iter().rev() {
        reflect(&mut q, *k, v, *scale);
    }
    let r = r.rows(0, m).upper_triangle();
    (q, r)
}

/// `x` from row and column `k` on, less `scale` v v' x.
fn reflect(x: &mut Matrix, k: usize, v: &Matrix, scale: f64) {
    let (n, m) = x.shape();
    let mut part = x.view_mut((k, k), (n - k, m - k));
    let along = v.tr_mul(&part);
    part.gemm(-scale, v, &along, 1.0);
}
