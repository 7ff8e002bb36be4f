//! Regions, traced separately: the body of a loop, the branches of a conditional.

use std::rc::Rc;

use super::interp::Interp;
use super::signal::{Differing, Eval, Reason, Signal, Stop};
use super::tree::{KeyPath, Tree, first_difference, flatten, map_trees, unflatten};
use crate::program::{Origin, Tensor, Trace, Value};
use sheaf_graph::graph::{Graph, prune};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::TensorType;
use sheaf_syntax::Span;

/// A region of the program as a graph.
pub(super) struct Region {
    /// Its parameters are those of the region, then its captures.
    pub graph: Graph,
    /// The captured outer tensors.
    pub captures: Vec<Tensor>,
}

/// The state of a loop: tensors and numbers vary, other values are constant.
pub(super) struct State {
    tree: Tree,
    leaves: Vec<Leaf>,
}

enum Leaf {
    Varying(Tensor),
    Fixed(Value),
}

/// The next state compared with the state.
pub(super) enum Step {
    /// The next state has the same types.
    Fits(Vec<Tensor>),
    /// The state must start with other dtypes.
    Adapted(State),
    /// The structure, a shape or a dtype changes, so it cannot be a loop.
    Differs(Difference),
}

/// The first difference of two values in type, and both there.
pub(super) struct Difference {
    path: KeyPath,
    values: [String; 2],
}

impl Difference {
    /// Two leaves that differ in type, or two values of different structure.
    pub fn at(path: &KeyPath, a: &Value, b: &Value) -> Difference {
        let kind = |value: &Value| match value {
            Value::Int(_) | Value::Float(_) => "a number".into(),
            Value::Tensor(t) if t.ty().weak => "a number".into(),
            Value::Bool(_) => "a truth value".into(),
            other => other.describe(),
        };
        let (a, mut b) = (kind(a), kind(b));
        if a == b {
            b = format!("another than {b}");
        }
        Difference { path: path.clone(), values: [a, b] }
    }

    /// The difference in the structure of two values.
    pub fn in_structure(a: &Value, b: &Value) -> Difference {
        let root = (KeyPath::default(), a, b);
        let (path, a, b) = first_difference(a, b).unwrap_or(root);
        Difference::at(&path, a, b)
    }

    /// The difference as one between the second items of two pairs.
    pub fn in_second(self) -> Difference {
        Difference { path: self.path.below_first(), ..self }
    }

    fn place(&self) -> String {
        if self.path.is_root() { String::new() } else { format!(" at {}", self.path) }
    }

    /// The difference of conditional branches at these spans.
    pub fn of_branches(self, places: [Span; 2]) -> Box<Differing> {
        let at = self.place();
        let [yes, no] = self.values;
        let without = self.path.is_root() && (yes == "nil" || no == "nil");
        Box::new(Differing {
            clause: format!(
                "the branches of a condition that depends on the data differ{at}: {yes} and {no}"
            ),
            places: vec![(places[0], format!("gives {yes}{at}")), (places[1], format!("gives {no}{at}"))],
            remedy: if without {
                "let all branches give the same structure, shapes and dtypes; if, case and cond give nil where they have \
                 no branch for what is left"
            } else {
                "let both branches give the same structure, shapes and dtypes, or choose between tensors that broadcast \
                 with (where condition a b)"
            },
        })
    }

    /// The difference of a loop state; the spans are those of the initial state and the body, if known.
    pub fn of_state(self, places: Option<[Span; 2]>) -> Box<Differing> {
        let at = self.place();
        let [before, after] = self.values;
        let labels = |[init, body]: [Span; 2]| {
            vec![(init, format!("begins as {before}{at}")), (body, format!("gives {after}{at}"))]
        };
        Box::new(Differing {
            clause: format!("the state of a loop changes its type{at}: from {before} to {after}"),
            places: places.map_or_else(Vec::new, labels),
            remedy: "begin with the structure, shapes and dtypes that the body gives: (cast x :f32) has another dtype, \
                     and (index-update xs i x) fills a tensor made before the loop",
        })
    }
}

impl Interp {
    /// Traces `f` for parameters of these types; `f` gives a value for the caller and the results of the graph.
    /// Loop-invariant code is recorded outside.
    pub(super) fn region<T>(
        &mut self,
        types: &[TensorType],
        f: impl FnOnce(&mut Interp, Vec<Tensor>) -> Eval<(T, Vec<Tensor>)>,
    ) -> Eval<(T, Region)> {
        let trace = self.tracing.trace(self.tracing.level + 1);
        let parameters =
            types.iter().map(|ty| trace.input(ty.clone(), None, self.span.map(Origin::Made))).collect();
        self.region_of(trace, |interp| f(interp, parameters))
    }

    /// [`Interp::region`] for a region that may not run at all, or runs again: all its computations stay inside.
    pub(super) fn closed_region<T>(
        &mut self,
        types: &[TensorType],
        f: impl FnOnce(&mut Interp, Vec<Tensor>) -> Eval<(T, Vec<Tensor>)>,
    ) -> Eval<(T, Region)> {
        let trace = self.tracing.trace(self.tracing.level + 1);
        let parameters =
            types.iter().map(|ty| trace.input(ty.clone(), None, self.span.map(Origin::Made))).collect();
        self.tracing.regions.borrow_mut().closed.push(Rc::clone(&trace));
        self.region_of(trace, |interp| {
            let result = f(interp, parameters);
            interp.tracing.regions.borrow_mut().closed.pop();
            result
        })
    }

    fn region_of<T>(
        &mut self,
        trace: Rc<Trace>,
        f: impl FnOnce(&mut Interp) -> Eval<(T, Vec<Tensor>)>,
    ) -> Eval<(T, Region)> {
        self.tracing.level += 1;
        self.tracing.staging += 1;
        self.tracing.regions.borrow_mut().all.push(Rc::clone(&trace));
        let result = f(self);
        self.tracing.regions.borrow_mut().all.pop();
        self.tracing.staging -= 1;
        self.tracing.level -= 1;
        let (value, results) = result.map_err(|signal| trace.outer_request(signal))?;
        let results = results.iter().map(|t| trace.lift(t)).collect::<Eval<Vec<_>>>()?;
        let (graph, captures) = trace.finish(results);
        Ok((value, Region { graph: prune(graph), captures }))
    }

    /// The difference that made a region ask for a value, if that is the reason.
    pub(super) fn differing_in(signal: &Signal) -> Option<Box<Differing>> {
        match &**signal {
            Stop::Trace(stop) => stop.differing.clone(),
            Stop::Error(_) => None,
        }
    }

    /// True if a signal asks for a value, or for a loop too long to unroll: a loop recorded as one operation may need
    /// neither.
    pub(super) fn asks_here(signal: &Signal) -> bool {
        matches!(&**signal, Stop::Trace(stop)
            if matches!(stop.reason, Reason::Value { .. } | Reason::Elements { .. } | Reason::Loop | Reason::Reads))
    }

    /// A number, a boolean or a tensor as a tensor; `None` for other values.
    pub(super) fn dynamic_leaf(&mut self, leaf: &Value) -> Eval<Option<Tensor>> {
        match leaf {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Tensor(_) => {
                self.tensor(leaf).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// `value` as the initial state of a loop.
    pub(super) fn state(&mut self, value: &Value) -> Eval<State> {
        let mut leaves = Vec::new();
        for leaf in flatten(value) {
            leaves.push(match self.dynamic_leaf(&leaf)? {
                Some(tensor) => Leaf::Varying(tensor),
                None => Leaf::Fixed(leaf),
            });
        }
        Ok(State { tree: Tree::of(value), leaves })
    }

    /// Compares the result of a step with the state; `before` is the state as traced in the step.
    pub(super) fn step_of(&mut self, state: &State, before: &Value, next: &Value) -> Eval<Step> {
        let mut tensors = Vec::new();
        let mut wanted = Vec::new();
        let mut differs = None;
        let mut leaves = state.leaves.iter();
        let walked = map_trees(&[before.clone(), next.clone()], &mut |path, pair| {
            let Some(leaf) = leaves.next() else { return Ok(Value::Nil) };
            let next = self.dynamic_leaf(&pair[1])?;
            let difference = || Difference::at(path, &pair[0], &pair[1]);
            let (from, to) = match (leaf, next) {
                (Leaf::Fixed(value), None) if same(value, &pair[1])? => return Ok(Value::Nil),
                (Leaf::Varying(from), Some(to)) => (from.ty().clone(), to),
                _ => {
                    differs.get_or_insert_with(difference);
                    return Ok(Value::Nil);
                }
            };
            let ty = to.ty().clone();
            if from == ty {
                tensors.push(to);
                wanted.push(ty);
            } else if from.shape != ty.shape {
                differs.get_or_insert_with(difference);
            } else if from.weak && (!ty.weak || ty.dtype.kind() > from.dtype.kind()) {
                tensors.push(to);
                wanted.push(ty);
            } else if ty.weak {
                // A weak number takes the state's type.
                tensors.push(self.op(p::Convert { dtype: from.dtype, weak: from.weak }, &[&to])?);
                wanted.push(from);
            } else {
                differs.get_or_insert_with(difference);
            }
            Ok(Value::Nil)
        });
        if let Err(signal) = walked {
            return match *signal {
                Stop::Error(_) => Ok(Step::Differs(Difference::in_structure(before, next))),
                stop @ Stop::Trace(_) => Err(Box::new(stop)),
            };
        }
        if let Some(difference) = differs {
            return Ok(Step::Differs(difference));
        }
        let varying =
            || state.leaves.iter().filter_map(|l| if let Leaf::Varying(t) = l { Some(t) } else { None });
        if varying().zip(&wanted).all(|(t, ty)| t.ty() == ty) {
            return Ok(Step::Fits(tensors));
        }
        let mut wanted = wanted.into_iter();
        let mut adapted = Vec::new();
        for leaf in &state.leaves {
            adapted.push(match leaf {
                Leaf::Fixed(value) => Leaf::Fixed(value.clone()),
                Leaf::Varying(t) => {
                    let ty = wanted.next().expect("a type for each");
                    let op = p::Convert { dtype: ty.dtype, weak: ty.weak };
                    Leaf::Varying(if *t.ty() == ty { t.clone() } else { self.op(op, &[t])? })
                }
            });
        }
        Ok(Step::Adapted(State { tree: state.tree.clone(), leaves: adapted }))
    }
}

/// True if two non-tensor values are the same.
pub(super) fn same(a: &Value, b: &Value) -> Eval<bool> {
    match (a, b) {
        (Value::Function(a), Value::Function(b)) => Ok(Rc::ptr_eq(a, b)),
        (Value::Function(_), _) | (_, Value::Function(_)) => Ok(false),
        (a, b) => crate::builtins::structurally_equal(a, b),
    }
}

impl State {
    /// The varying tensors.
    pub fn tensors(&self) -> Vec<Tensor> {
        let varying =
            self.leaves.iter().filter_map(|l| if let Leaf::Varying(t) = l { Some(t) } else { None });
        varying.cloned().collect()
    }

    /// Their types.
    pub fn types(&self) -> Vec<TensorType> {
        self.tensors().iter().map(|t| t.ty().clone()).collect()
    }

    /// The state with these tensors in it.
    pub fn with(&self, tensors: &[Tensor]) -> Eval<Value> {
        let mut tensors = tensors.iter();
        let mut leaves = self.leaves.iter().map(|leaf| match leaf {
            Leaf::Fixed(value) => value.clone(),
            Leaf::Varying(_) => Value::from(tensors.next().expect("a tensor for each").clone()),
        });
        unflatten(&self.tree, &mut leaves)
    }
}
