//! Pieces of a program that are traced by themselves: the body of a loop, the branches of a conditional.

use std::rc::Rc;

use super::interp::Interp;
use super::signal::{Differing, Eval, Reason, Signal, Stop};
use super::tensor::{Origin, Tensor, Trace};
use super::tree::{KeyPath, Tree, first_difference, flatten, map_trees, unflatten};
use super::value::Value;
use crate::graph::{Graph, prune};
use crate::primitives as p;
use crate::syntax::Span;
use crate::tensor::TensorType;

/// Pieces within each other beyond this are taken for a recursion that only a known condition ends.
const MAX_LEVELS: u32 = 24;

/// A piece of program as a graph.
pub(super) struct Region {
    /// Its parameters are those of the piece, then what it reads from outside.
    pub graph: Graph,
    /// What it reads from outside.
    pub captures: Vec<Tensor>,
}

/// The state of a loop: tensors and numbers move, anything else stays as it is.
pub(super) struct State {
    tree: Tree,
    leaves: Vec<Leaf>,
}

enum Leaf {
    Moving(Tensor),
    Fixed(Value),
}

/// What a step makes of a state, compared with the state.
pub(super) enum Step {
    /// The next state, of the types of this one.
    Fits(Vec<Tensor>),
    /// The state has to begin with other dtypes.
    Adapted(State),
    /// There is no loop of this: the structure, a shape or a dtype changes.
    Differs(Difference),
}

/// Where two values are not of one type, and what they are there.
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

    /// As what a conditional meets, whose branches are at these places.
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

    /// As what a loop meets, whose first state and body are at these places, if they are.
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
    /// Whether a piece of the program may be traced by itself here: inside another trace.
    pub(super) fn traces_regions(&self) -> bool {
        (1..MAX_LEVELS).contains(&self.level)
    }

    /// Traces `f` for parameters of these types; `f` gives a value for the caller and the results of the graph. What does
    /// not depend on the parameters is recorded outside: a loop computes it once.
    pub(super) fn region<T>(
        &mut self,
        types: &[TensorType],
        f: impl FnOnce(&mut Interp, Vec<Tensor>) -> Eval<(T, Vec<Tensor>)>,
    ) -> Eval<(T, Region)> {
        let trace = self.trace(self.level + 1);
        let parameters =
            types.iter().map(|ty| trace.input(ty.clone(), None, self.span.map(Origin::Made))).collect();
        self.region_of(trace, |interp| f(interp, parameters))
    }

    /// [`Interp::region`] for a piece that may not run at all, or runs again: all that it computes stays within it.
    pub(super) fn closed_region<T>(
        &mut self,
        types: &[TensorType],
        f: impl FnOnce(&mut Interp, Vec<Tensor>) -> Eval<(T, Vec<Tensor>)>,
    ) -> Eval<(T, Region)> {
        let trace = self.trace(self.level + 1);
        let parameters =
            types.iter().map(|ty| trace.input(ty.clone(), None, self.span.map(Origin::Made))).collect();
        self.open.borrow_mut().closed.push(Rc::clone(&trace));
        self.region_of(trace, |interp| {
            let result = f(interp, parameters);
            interp.open.borrow_mut().closed.pop();
            result
        })
    }

    fn region_of<T>(
        &mut self,
        trace: Rc<Trace>,
        f: impl FnOnce(&mut Interp) -> Eval<(T, Vec<Tensor>)>,
    ) -> Eval<(T, Region)> {
        self.level += 1;
        self.recording += 1;
        self.open.borrow_mut().all.push(Rc::clone(&trace));
        let result = f(self);
        self.open.borrow_mut().all.pop();
        self.recording -= 1;
        self.level -= 1;
        let (value, results) = result.map_err(|signal| trace.outer_request(signal))?;
        let results = results.iter().map(|t| trace.lift(t)).collect::<Eval<Vec<_>>>()?;
        let (graph, captures) = trace.finish(results);
        Ok((value, Region { graph: prune(graph), captures }))
    }

    /// Whether a signal asks for a value inside of a region that would be traced here: the region cannot be.
    pub(super) fn asks_inside(&self, signal: &Signal) -> bool {
        match &**signal {
            Stop::Trace(stop) => match stop.reason {
                Reason::Value { level, .. } | Reason::Elements { level, .. } => level > self.level,
                Reason::Loop | Reason::Irreversible(_) => true,
                Reason::Effect(_) | Reason::Unrun(_) => false,
            },
            Stop::Error(_) => false,
        }
    }

    /// What kept a piece of program from being one operation, where that is why a value is asked for.
    pub(super) fn differing_in(signal: &Signal) -> Option<Box<Differing>> {
        match &**signal {
            Stop::Trace(stop) => stop.differing.clone(),
            Stop::Error(_) => None,
        }
    }

    /// Whether a signal asks for a value, or says that a loop is too long to be unrolled: a loop recorded as one may do
    /// without.
    pub(super) fn asks_here(signal: &Signal) -> bool {
        matches!(&**signal, Stop::Trace(stop)
            if matches!(stop.reason, Reason::Value { .. } | Reason::Elements { .. } | Reason::Loop))
    }

    /// A number, a truth value or a tensor as a tensor; nothing for other values.
    pub(super) fn moving_leaf(&mut self, leaf: &Value) -> Eval<Option<Tensor>> {
        match leaf {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Tensor(_) => {
                self.tensor(leaf).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// `value` as the first state of a loop.
    pub(super) fn state(&mut self, value: &Value) -> Eval<State> {
        let mut leaves = Vec::new();
        for leaf in flatten(value) {
            leaves.push(match self.moving_leaf(&leaf)? {
                Some(tensor) => Leaf::Moving(tensor),
                None => Leaf::Fixed(leaf),
            });
        }
        Ok(State { tree: Tree::of(value), leaves })
    }

    /// What a step made of a state: `before` is the state as the step saw it.
    pub(super) fn step_of(&mut self, state: &State, before: &Value, next: &Value) -> Eval<Step> {
        let mut tensors = Vec::new();
        let mut wanted = Vec::new();
        let mut differs = None;
        let mut leaves = state.leaves.iter();
        let walked = map_trees(&[before.clone(), next.clone()], &mut |path, pair| {
            let Some(leaf) = leaves.next() else { return Ok(Value::Nil) };
            let next = self.moving_leaf(&pair[1])?;
            let difference = || Difference::at(path, &pair[0], &pair[1]);
            let (from, to) = match (leaf, next) {
                (Leaf::Fixed(value), None) if same(value, &pair[1])? => return Ok(Value::Nil),
                (Leaf::Moving(from), Some(to)) => (from.ty().clone(), to),
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
                // A weak number becomes what the state is.
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
        let moving =
            || state.leaves.iter().filter_map(|l| if let Leaf::Moving(t) = l { Some(t) } else { None });
        if moving().zip(&wanted).all(|(t, ty)| t.ty() == ty) {
            return Ok(Step::Fits(tensors));
        }
        let mut wanted = wanted.into_iter();
        let mut adapted = Vec::new();
        for leaf in &state.leaves {
            adapted.push(match leaf {
                Leaf::Fixed(value) => Leaf::Fixed(value.clone()),
                Leaf::Moving(t) => {
                    let ty = wanted.next().expect("a type for each");
                    let op = p::Convert { dtype: ty.dtype, weak: ty.weak };
                    Leaf::Moving(if *t.ty() == ty { t.clone() } else { self.op(op, &[t])? })
                }
            });
        }
        Ok(Step::Adapted(State { tree: state.tree.clone(), leaves: adapted }))
    }
}

/// Whether a value that no tensor holds stayed the same.
pub(super) fn same(a: &Value, b: &Value) -> Eval<bool> {
    match (a, b) {
        (Value::Function(a), Value::Function(b)) => Ok(Rc::ptr_eq(a, b)),
        (Value::Function(_), _) | (_, Value::Function(_)) => Ok(false),
        (a, b) => crate::builtins::structurally_equal(a, b),
    }
}

impl State {
    /// The tensors that move.
    pub fn tensors(&self) -> Vec<Tensor> {
        let moving = self.leaves.iter().filter_map(|l| if let Leaf::Moving(t) = l { Some(t) } else { None });
        moving.cloned().collect()
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
            Leaf::Moving(_) => Value::from(tensors.next().expect("a tensor for each").clone()),
        });
        unflatten(&self.tree, &mut leaves)
    }
}
