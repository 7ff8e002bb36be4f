//! The code of the steps of a workgroup.

use std::collections::{BTreeMap, HashMap};

use super::form::{Filling, Form, Part, Place};
use super::plan::{Phase, Plan, Region, Store, Target};
use super::product::LANES;
use crate::graph::Var;
use crate::stablehlo::{LoopNest, Tensor};
use crate::tensor::DType;

/// The steps of a workgroup.
pub(super) struct Step<'a> {
    pub plan: &'a Plan,
    places: &'a [Tensor],
    pub weights: &'a [Tensor],
    results: &'a [Tensor],
    pub scratch: &'a Tensor,
    /// The workgroup.
    pub group: &'a str,
    /// Its first row.
    first: String,
    pub zero: String,
}

/// Some columns of a row.
struct At<'a> {
    row: &'a str,
    column: &'a str,
    lanes: usize,
}

impl At<'_> {
    /// The place of these columns in a region, `more` columns behind.
    fn place(&self, nest: &mut LoopNest, region: &Region, more: usize) -> String {
        let stride = nest.index(region.stride());
        let row = nest.binary("arith.muli", self.row, &stride, "index");
        let place = nest.add(&row, self.column);
        nest.offset(&place, region.row(0) + more)
    }
}

impl<'a> Step<'a> {
    /// The steps of workgroup `group` of a kernel with these operands and results.
    pub fn new(
        nest: &mut LoopNest,
        plan: &'a Plan,
        operands: &'a [Tensor],
        written: &'a [Tensor],
        group: &'a str,
    ) -> Step<'a> {
        let (places, weights) = operands.split_at(plan.places.len());
        let (results, scratch) = written.split_at(written.len() - 1);
        let (rows, last) = (nest.index(plan.rows), nest.index(plan.batch - plan.rows));
        let first = nest.binary("arith.muli", group, &rows, "index");
        let first = nest.binary("arith.minui", &first, &last, "index");
        let zero = nest.index(0);
        Step { plan, places, weights, results, scratch: &scratch[0], group, first, zero }
    }

    /// Writes all steps.
    pub fn take_all(&self, nest: &mut LoopNest) {
        let plan = self.plan;
        for (i, [before, _]) in plan.states.iter().enumerate() {
            self.columns(nest, plan.places[i].width, &mut |nest, at| {
                let x = self.read(nest, &plan.places[i], &self.zero, at, 0);
                self.set(nest, before, at, &x);
            });
        }
        let steps = nest.index(plan.length);
        nest.each(&self.zero, &steps, 1, |nest, step| {
            let mut time = step.to_owned();
            if plan.reverse {
                let last = nest.index(plan.length - 1);
                time = nest.binary("arith.subi", &last, step, "index");
            }
            for (i, phase) in plan.phases.iter().enumerate() {
                self.phase(nest, i, phase, &time);
            }
            for (i, [before, after]) in plan.states.iter().enumerate() {
                self.columns(nest, plan.places[i].width, &mut |nest, at| {
                    let x = self.get(nest, after, at, 0);
                    self.set(nest, before, at, &x);
                });
            }
        });
        for (i, [before, _]) in plan.states.iter().enumerate() {
            self.columns(nest, plan.places[i].width, &mut |nest, at| {
                let x = self.get(nest, before, at, 0);
                let row = nest.add(&self.first, at.row);
                self.results[i].set_lanes(nest, &[&row, at.column], &x, at.lanes);
            });
        }
    }

    fn phase(&self, nest: &mut LoopNest, number: usize, phase: &Phase, time: &str) {
        for product in &phase.products {
            self.product(nest, product.weights, &product.left, &product.into);
        }
        let mut by_width: BTreeMap<usize, Vec<&Store>> = BTreeMap::new();
        for store in &phase.stores {
            by_width.entry(store.width).or_default().push(store);
        }
        for (width, stores) in by_width {
            self.columns(nest, width, &mut |nest, at| {
                let mut vectors = Vectors { step: self, phase: number, time, at, known: HashMap::new() };
                for store in &stores {
                    let x = vectors.value(nest, store.value, store.first);
                    match store.target {
                        Target::Memory(region) => self.set(nest, &region, at, &x),
                        Target::Stack(result, first) => {
                            let row = nest.add(&self.first, at.row);
                            let column = nest.offset(at.column, first);
                            self.results[result].set_lanes(nest, &[time, &row, &column], &x, at.lanes);
                        }
                    }
                }
            });
        }
    }

    /// Writes a loop over the vectors of the workgroup's rows; what is left of a row is a shorter vector.
    fn columns(&self, nest: &mut LoopNest, width: usize, write: &mut dyn FnMut(&mut LoopNest, &At<'_>)) {
        let (rows, rest) = (nest.index(self.plan.rows), width % LANES);
        let whole = nest.index(width - rest);
        nest.each(&self.zero, &rows, 1, |nest, row| {
            if width >= LANES {
                nest.each(&self.zero, &whole, LANES, |nest, column| {
                    write(nest, &At { row, column, lanes: LANES });
                });
            }
            if rest > 0 {
                write(nest, &At { row, column: &whole, lanes: rest });
            }
        });
    }

    fn get(&self, nest: &mut LoopNest, region: &Region, at: &At<'_>, more: usize) -> String {
        let place = at.place(nest, region, more);
        self.scratch.get_lanes(nest, &[self.group, &place], at.lanes)
    }

    fn set(&self, nest: &mut LoopNest, region: &Region, at: &At<'_>, x: &str) {
        let place = at.place(nest, region, 0);
        self.scratch.set_lanes(nest, &[self.group, &place], x, at.lanes);
    }

    /// Writes a reading of an operand.
    fn read(&self, nest: &mut LoopNest, place: &Place, time: &str, at: &At<'_>, more: usize) -> String {
        let position = self.plan.places.iter().position(|other| other == place);
        let tensor = &self.places[position.expect("a plan has all places")];
        let row = nest.add(&self.first, at.row);
        let column = if place.width == 1 { self.zero.clone() } else { nest.offset(at.column, more) };
        let axes = [place.by_step.then_some(time), place.by_row.then_some(&row), Some(&column)];
        let indices: Vec<&str> = axes.into_iter().flatten().collect();
        if place.width > 1 {
            return tensor.get_lanes(nest, &indices, at.lanes);
        }
        let x = tensor.get(nest, &indices);
        nest.splat(&x, DType::F32, at.lanes)
    }
}

/// Vectors of values in some columns of a row.
struct Vectors<'a> {
    step: &'a Step<'a>,
    phase: usize,
    time: &'a str,
    at: &'a At<'a>,
    /// Those so far, by the variable and how many columns behind these they are.
    known: HashMap<(Var, usize), String>,
}

impl Vectors<'_> {
    /// Writes the vector of a variable, `more` columns behind these.
    fn value(&mut self, nest: &mut LoopNest, var: Var, more: usize) -> String {
        if let Some(known) = self.known.get(&(var, more)) {
            return known.clone();
        }
        let (step, at) = (self.step, self.at);
        let made = match (step.plan.written(var, self.phase), &step.plan.form(var).form) {
            (Some(region), _) => step.get(nest, &region, at, more),
            (None, Form::Read(place)) => step.read(nest, place, self.time, at, more),
            (None, Form::Number(number)) => nest.repeated(number, DType::F32, at.lanes),
            (None, Form::Columns(of, first)) => self.value(nest, *of, more + first),
            (None, Form::Elementwise(operation, operands)) => {
                let operands: Vec<String> = operands.iter().map(|v| self.value(nest, *v, more)).collect();
                operation.write(nest, &operands, DType::F32, Some(at.lanes))
            }
            (None, Form::Joined(parts)) => self.joined(nest, parts, more),
            (None, Form::State | Form::Product(..)) => unreachable!("these are in memory"),
        };
        self.known.insert((var, more), made.clone());
        made
    }

    /// Writes the vector of a joined value, all of which is in one part.
    fn joined(&mut self, nest: &mut LoopNest, parts: &[Part], more: usize) -> String {
        let mut first = 0;
        for part in parts {
            if more < first + part.width {
                return match &part.filling {
                    Filling::Value(value) => self.value(nest, *value, more - first),
                    Filling::Number(number) => nest.repeated(number, DType::F32, self.at.lanes),
                };
            }
            first += part.width;
        }
        unreachable!("columns of a joined value are in one of its parts")
    }
}
