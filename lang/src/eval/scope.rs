//! Scopes during resolution: the slots of names in functions.

use ustr::Ustr;

use crate::program::{Slot, VarLocation};

/// The functions being resolved, outermost first. The first one is the top level of a file.
#[derive(Debug)]
pub(super) struct Scopes {
    functions: Vec<FunctionScope>,
}

#[derive(Debug, Default)]
struct FunctionScope {
    bindings: Vec<Binding>,
    next: Slot,
    size: Slot,
    captures: Vec<(VarLocation, Ustr)>,
}

#[derive(Clone, Copy, Debug)]
enum Binding {
    Name(Ustr, Slot),
    /// The keys of the dictionary in this slot are names.
    Params(Slot),
}

/// Locals that a name may refer to.
#[derive(Debug)]
pub(super) struct Found {
    /// Dictionaries of `with-params` between the use and the binding, innermost first.
    pub dicts: Vec<VarLocation>,
    /// The local of that name.
    pub local: Option<VarLocation>,
}

impl Scopes {
    pub(super) fn new() -> Scopes {
        Scopes { functions: vec![FunctionScope::default()] }
    }

    /// A mark for [`Scopes::close`].
    pub(super) fn open(&self) -> (usize, Slot) {
        let f = self.functions.last().expect("the top level");
        (f.bindings.len(), f.next)
    }

    /// Removes the bindings since `mark`; their slots are reused.
    pub(super) fn close(&mut self, mark: (usize, Slot)) {
        let f = self.functions.last_mut().expect("the top level");
        f.bindings.truncate(mark.0);
        f.next = mark.1;
    }

    fn slot(&mut self) -> Slot {
        let f = self.functions.last_mut().expect("the top level");
        f.next += 1;
        f.size = f.size.max(f.next);
        f.next - 1
    }

    /// Binds a name.
    pub(super) fn bind(&mut self, name: Ustr) -> Slot {
        let slot = self.slot();
        self.functions.last_mut().expect("the top level").bindings.push(Binding::Name(name, slot));
        slot
    }

    /// Binds a slot without a name; the keys of its dictionary are names from here on.
    pub(super) fn bind_params(&mut self) -> Slot {
        let slot = self.slot();
        self.functions.last_mut().expect("the top level").bindings.push(Binding::Params(slot));
        slot
    }

    /// Enters a function.
    pub(super) fn enter(&mut self) {
        self.functions.push(FunctionScope::default());
    }

    /// Leaves a function: the size of its frame and its captures.
    pub(super) fn leave(&mut self) -> (usize, Vec<(VarLocation, Ustr)>) {
        let f = self.functions.pop().expect("entered before");
        (f.size as usize, f.captures)
    }

    /// Number of slots of the top level.
    pub(super) fn frame_size(&self) -> usize {
        self.functions.last().expect("the top level").size as usize
    }

    /// Looks a name up, innermost binding first.
    pub(super) fn find(&mut self, name: Ustr) -> Found {
        let mut dicts = Vec::new();
        for depth in (0..self.functions.len()).rev() {
            for i in (0..self.functions[depth].bindings.len()).rev() {
                match self.functions[depth].bindings[i] {
                    Binding::Name(n, slot) if n == name => {
                        let local = Some(self.place(depth, slot, name));
                        return Found { dicts, local };
                    }
                    Binding::Name(..) => {}
                    Binding::Params(slot) => {
                        let place = self.place(depth, slot, Ustr::from("params"));
                        dicts.push(place);
                    }
                }
            }
        }
        Found { dicts, local: None }
    }

    /// The names of all locals in scope, for suggestions.
    pub(super) fn names(&self) -> Vec<Ustr> {
        let bindings = self.functions.iter().flat_map(|f| &f.bindings);
        bindings.filter_map(|b| if let Binding::Name(n, _) = b { Some(*n) } else { None }).collect()
    }

    /// The location, seen from the innermost function, of a slot of the function at `depth`: captured by every function
    /// in between.
    fn place(&mut self, depth: usize, slot: Slot, name: Ustr) -> VarLocation {
        let mut place = VarLocation::Frame(slot);
        for f in &mut self.functions[depth + 1..] {
            let position = f.captures.iter().position(|(p, _)| *p == place).unwrap_or_else(|| {
                f.captures.push((place, name));
                f.captures.len() - 1
            });
            place = VarLocation::Captured(position as u32);
        }
        place
    }
}
