//! `log_plus_one`: `log(1 + x)`, exact for small `x`.

use super::{UnaryRule, elementary};
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::stablehlo::{Lowering, quirks};
use crate::tensor::{DType, Data};

/// Element-wise `log(1 + x)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Log1p;

impl UnaryRule for Log1p {
    const NAME: &'static str = "log1p";
    const OPERATION: &'static str = "stablehlo.log_plus_one";
    const STEEP: bool = true;

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; single(a) => elementary::ln_1p(a), F64(a) => a.ln_1p())
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        if to.is_for_processor() {
            to.typed(Self::OPERATION, "");
        } else {
            quirks::log_plus_one(to);
        }
    }

    fn partial(self, b: &mut Builder, x: Var, _: Var, t: Var) -> Option<Var> {
        let one = b.full_like(x, 1.0);
        let sum = b.add(x, one);
        Some(b.div(t, sum))
    }
}
