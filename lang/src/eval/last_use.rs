//! Last uses of local variables: a value that is not read afterwards is moved out of its variable, so that a call may
//! own it exclusively. A compiled program then writes its results in place of the argument.

use smallvec::SmallVec;

use crate::program::{Expr, ExprKind, Pattern, Slot, VarLocation};
use crate::stack::maybe_grow;

/// Marks the last uses in the body of a function, or in a top-level expression.
pub(super) fn mark_last_uses(body: &Expr) {
    walk(body, &mut Live::default(), true);
}

/// Live slots: read later, before they are rebound.
#[derive(Clone, Debug, Default)]
struct Live(SmallVec<[u64; 2]>);

impl Live {
    fn contains(&self, slot: Slot) -> bool {
        self.0.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    fn insert(&mut self, slot: Slot) {
        let word = slot as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (slot % 64);
    }

    fn remove(&mut self, slot: Slot) {
        if let Some(word) = self.0.get_mut(slot as usize / 64) {
            *word &= !(1 << (slot % 64));
        }
    }

    fn join(&mut self, other: &Live) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    /// Binds a pattern: the previous values of its slots are dead.
    fn bind(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Name(slot, _) => self.remove(*slot),
            Pattern::Vector(items, rest, _) => items.iter().chain(rest.as_deref()).for_each(|p| self.bind(p)),
            Pattern::Keys(keys, whole, _) => {
                keys.iter().map(|(_, slot)| slot).chain(whole).for_each(|slot| self.remove(*slot));
            }
        }
    }

    /// Reads the slots of a pattern.
    fn read_pattern(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Name(slot, _) => self.insert(*slot),
            Pattern::Vector(items, rest, _) => {
                items.iter().chain(rest.as_deref()).for_each(|p| self.read_pattern(p));
            }
            Pattern::Keys(keys, whole, _) => {
                keys.iter().map(|(_, slot)| slot).chain(whole).for_each(|slot| self.insert(*slot));
            }
        }
    }

    fn read_place(&mut self, place: VarLocation) {
        if let VarLocation::Frame(slot) = place {
            self.insert(slot);
        }
    }

    /// Reads all variables that an expression may read.
    fn read(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Local(place, _) => self.read_place(*place),
            ExprKind::Fn(code) => {
                code.captures.borrow().iter().for_each(|(place, _)| self.read_place(*place));
            }
            ExprKind::Param { dicts, .. } => {
                dicts.iter().for_each(|place| self.read_place(*place));
                expr.for_each_part(&mut |part| maybe_grow(|| self.read(part)));
            }
            _ => expr.for_each_part(&mut |part| maybe_grow(|| self.read(part))),
        }
    }
}

/// Walks an expression in reverse evaluation order. `live` is the live set after it, then the one before it. Without
/// `mark` nothing is marked: a first pass over the next iteration of a loop.
fn walk(expr: &Expr, live: &mut Live, mark: bool) {
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::Global(_) | ExprKind::Def(_) => {}
        ExprKind::Local(VarLocation::Frame(slot), last) => {
            if mark {
                last.set(!live.contains(*slot));
            }
            live.insert(*slot);
        }
        ExprKind::Local(VarLocation::Captured(_), _)
        | ExprKind::Fn(_)
        | ExprKind::Param { .. }
        | ExprKind::Quasi(_) => {
            live.read(expr);
        }
        ExprKind::If(parts) => {
            let [condition, yes, no] = &**parts;
            branches([yes, no].into_iter(), live, mark);
            maybe_grow(|| walk(condition, live, mark));
        }
        ExprKind::Case { subject, arms, default } => {
            branches(arms.iter().map(|(_, arm)| arm).chain(default.as_deref()), live, mark);
            maybe_grow(|| walk(subject, live, mark));
        }
        ExprKind::Loop { once, traced } => branches([&**once, &**traced].into_iter(), live, mark),
        ExprKind::Let { bindings, body } => {
            maybe_grow(|| walk(body, live, mark));
            for (pattern, value) in bindings.iter().rev() {
                live.bind(pattern);
                maybe_grow(|| walk(value, live, mark));
            }
        }
        ExprKind::Repeat { index, count, state, init, body } => {
            let mut first = live.clone();
            maybe_grow(|| walk(body, &mut first, false));
            first.bind(state);
            first.remove(*index);
            live.join(&first);
            if mark {
                maybe_grow(|| walk(body, &mut live.clone(), true));
            }
            maybe_grow(|| walk(init, live, mark));
            maybe_grow(|| walk(count, live, mark));
        }
        ExprKind::While { condition, state, init, body } => {
            let mut first = live.clone();
            maybe_grow(|| walk(body, &mut first, false));
            maybe_grow(|| walk(condition, &mut first, false));
            first.bind(state);
            live.join(&first);
            if mark {
                maybe_grow(|| walk(body, &mut live.clone(), true));
                // The state is the value of the loop when the condition fails.
                let mut tested = live.clone();
                tested.read_pattern(state);
                maybe_grow(|| walk(condition, &mut tested, true));
            }
            maybe_grow(|| walk(init, live, mark));
        }
        _ => {
            // Evaluated in order; some may be skipped.
            let mut parts: SmallVec<[&Expr; 8]> = SmallVec::new();
            in_order(expr, &mut parts);
            parts.into_iter().rev().for_each(|part| maybe_grow(|| walk(part, live, mark)));
        }
    }
}

/// Walks alternatives, one of which runs.
fn branches<'a>(branches: impl Iterator<Item = &'a Expr>, live: &mut Live, mark: bool) {
    let after = live.clone();
    for branch in branches {
        let mut own = after.clone();
        maybe_grow(|| walk(branch, &mut own, mark));
        live.join(&own);
    }
}

/// The direct subexpressions of an expression that evaluates all of them in source order.
fn in_order<'a>(expr: &'a Expr, parts: &mut SmallVec<[&'a Expr; 8]>) {
    match &expr.kind {
        ExprKind::And(exprs) | ExprKind::Or(exprs) | ExprKind::Do(exprs) => parts.extend(exprs),
        ExprKind::Vector { items, .. } => parts.extend(items),
        ExprKind::Dict(entries) => parts.extend(entries.iter().map(|(_, value)| value)),
        ExprKind::Call { head, args, .. } => {
            parts.push(head);
            parts.extend(args);
        }
        ExprKind::Static(inner) | ExprKind::Cast(inner, _) => parts.push(inner),
        _ => unreachable!("walk has arms for the others"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ustr::Ustr;

    #[test]
    fn slots_of_any_number_are_live_until_they_are_bound() {
        let mut live = Live::default();
        for slot in [0, 63, 64, 200] {
            assert!(!live.contains(slot));
            live.insert(slot);
            assert!(live.contains(slot));
        }
        live.bind(&Pattern::Name(200, Ustr::default()));
        live.bind(&Pattern::Name(1000, Ustr::default()));
        assert!(!live.contains(200) && live.contains(64));
        let mut other = Live::default();
        other.insert(300);
        other.join(&live);
        assert!(other.contains(300) && other.contains(63) && !other.contains(200));
    }
}
