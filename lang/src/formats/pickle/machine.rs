//! The machine: instructions that build objects on a stack.

use std::collections::HashMap;

use super::numpy::Global;
use super::objects::{Id, Object, Objects};
use super::reader::{Reader, integer, shown, unescaped, unquoted};
use super::{Fault, part_of_file};
use sheaf_graph::tensor::FilePart;

/// The newest protocol.
const MAX_PROTOCOL: u8 = 5;

pub(super) struct Machine<'a> {
    whole: &'a FilePart,
    reader: Reader<'a>,
    objects: Objects,
    stack: Vec<Id>,
    /// Heights of the stack at the marks that are open.
    marks: Vec<usize>,
    memo: HashMap<u64, Id>,
}

impl<'a> Machine<'a> {
    pub fn new(whole: &'a FilePart) -> Machine<'a> {
        Machine {
            whole,
            reader: Reader::new(whole.bytes()),
            objects: Objects::default(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        }
    }

    /// Runs to the end: the objects, and the one that the pickle stands for.
    pub fn run(mut self) -> Result<(Objects, Id), Fault> {
        loop {
            let instruction = self.reader.byte()?;
            if instruction == b'.' {
                let root = self.pop()?;
                return Ok((self.objects, root));
            }
            self.execute(instruction)?;
        }
    }

    fn execute(&mut self, instruction: u8) -> Result<(), Fault> {
        match instruction {
            0x80 => {
                let protocol = self.reader.byte()?;
                if protocol > MAX_PROTOCOL {
                    let what =
                        format!("its protocol is {protocol}, and those up to {MAX_PROTOCOL} are known");
                    return Err(Fault::Broken(what));
                }
                Ok(())
            }
            // The length of a part, which is of use to those who read from a pipe.
            0x95 => self.reader.array::<8>().map(drop),
            b'(' => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            b'0' => self.pop().map(drop),
            b'1' => self.since_mark().map(drop),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
                Ok(())
            }
            b'N' | 0x88 | 0x89 | b'F' | b'G' | b'I' | b'J' | b'K' | b'L' | b'M' | 0x8a | 0x8b => {
                let object = self.number(instruction)?;
                self.push(object)
            }
            b'S' | b'T' | b'U' | b'V' | b'X' | 0x8c | 0x8d | b'B' | b'C' | 0x8e | 0x96 => {
                let object = self.text(instruction)?;
                self.push(object)
            }
            b']' | b'l' | b'}' | b'd' | b')' | b't' | 0x85..=0x87 | 0x8f | 0x91 => {
                self.collection(instruction)
            }
            b'a' | b'e' | 0x90 | b's' | b'u' => self.extend(instruction),
            b'g' | b'h' | b'j' | b'p' | b'q' | b'r' | 0x94 => self.remember(instruction),
            b'c' | 0x93 | b'R' | b'b' => self.call(instruction),
            // A buffer that may not be written to.
            0x98 => self.top().map(drop),
            b'i' => {
                let (module, name) = (self.reader.line()?, self.reader.line()?);
                Err(names(&module, &name))
            }
            b'o' | 0x81 | 0x92 => Err(Fault::Refused("it makes an object of a class".into())),
            b'P' if self.reader.at == 1 && self.whole.bytes().starts_with(b"PK") => {
                Err(Fault::Refused("it is a zip archive, as torch.save writes it, and no pickle".into()))
            }
            b'P' | b'Q' => Err(Fault::Refused("it refers to objects outside of the file".into())),
            0x82..=0x84 => Err(Fault::Refused("it names a class by a number".into())),
            0x97 => Err(Fault::Refused("it refers to buffers outside of the file".into())),
            other => {
                let at = self.reader.at - 1;
                Err(Fault::Broken(format!("byte {at}, {other:#04x}, is no instruction of a pickle")))
            }
        }
    }

    fn number(&mut self, instruction: u8) -> Result<Object, Fault> {
        Ok(match instruction {
            b'N' => Object::None,
            0x88 => Object::Bool(true),
            0x89 => Object::Bool(false),
            b'F' => Object::Float(self.reader.parsed()?),
            b'G' => Object::Float(f64::from_be_bytes(self.reader.array()?)),
            b'I' => match self.reader.line()?.trim() {
                "00" => Object::Bool(false),
                "01" => Object::Bool(true),
                digits => Object::Int(
                    digits.parse().map_err(|_| format!("{:?} is no number of 64 bits", shown(digits)))?,
                ),
            },
            b'J' => Object::Int(i32::from_le_bytes(self.reader.array()?).into()),
            b'K' => Object::Int(self.reader.byte()?.into()),
            b'M' => Object::Int(u16::from_le_bytes(self.reader.array()?).into()),
            b'L' => Object::Int(self.reader.parsed()?),
            0x8a => {
                let length = self.reader.byte()?;
                Object::Int(integer(&self.reader.copy(length.into())?)?)
            }
            _ => {
                let length = u32::from_le_bytes(self.reader.array()?);
                Object::Int(integer(&self.reader.copy(length.into())?)?)
            }
        })
    }

    fn text(&mut self, instruction: u8) -> Result<Object, Fault> {
        let length = match instruction {
            b'S' => return Ok(Object::Native(unquoted(&self.reader.line()?)?)),
            b'V' => return Ok(Object::Text(unescaped(&self.reader.line()?)?)),
            b'U' | 0x8c | b'C' => self.reader.byte()?.into(),
            b'T' | b'X' | b'B' => u32::from_le_bytes(self.reader.array()?).into(),
            _ => u64::from_le_bytes(self.reader.array()?),
        };
        Ok(match instruction {
            b'T' | b'U' => Object::Native(self.reader.copy(length)?),
            b'X' | 0x8c | 0x8d => Object::Text(self.reader.text(length)?),
            _ => {
                let (start, length) = self.reader.skip(length)?;
                Object::Bytes(part_of_file(self.whole, start, length))
            }
        })
    }

    /// Makes a list, a tuple, a set or a dictionary.
    fn collection(&mut self, instruction: u8) -> Result<(), Fault> {
        let object = match instruction {
            b']' | b')' | 0x8f => Object::List(Vec::new()),
            b'}' => Object::Dict(Vec::new()),
            b'd' => Object::Dict(pairs(&self.since_mark()?)?),
            0x85..=0x87 => {
                let count = usize::from(instruction - 0x84);
                let start = self.stack.len().checked_sub(count).filter(|start| *start >= self.floor());
                Object::List(self.stack.split_off(start.ok_or_else(empty)?))
            }
            _ => Object::List(self.since_mark()?),
        };
        self.push(object)
    }

    /// Adds items to the list or dictionary below them.
    fn extend(&mut self, instruction: u8) -> Result<(), Fault> {
        let items = match instruction {
            b'a' => vec![self.pop()?],
            b's' => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.since_mark()?,
        };
        let target = self.top()?;
        match (&mut self.objects[target], instruction) {
            (Object::List(list), b'a' | b'e' | 0x90) => list.extend(items),
            (Object::Dict(dict), b's' | b'u') => dict.extend(pairs(&items)?),
            _ => return Err(Fault::Broken("it adds items to what has none".into())),
        }
        Ok(())
    }

    fn remember(&mut self, instruction: u8) -> Result<(), Fault> {
        let place = match instruction {
            b'g' | b'p' => self.reader.parsed()?,
            b'h' | b'q' => self.reader.byte()?.into(),
            b'j' | b'r' => u32::from_le_bytes(self.reader.array()?).into(),
            _ => self.memo.len() as u64,
        };
        if matches!(instruction, b'g' | b'h' | b'j') {
            let known = self.memo.get(&place).copied();
            self.stack
                .push(known.ok_or_else(|| format!("it refers to object {place}, which it does not have"))?);
        } else {
            let top = self.top()?;
            self.memo.insert(place, top);
        }
        Ok(())
    }

    /// Names a function, calls one, or sets the state of an array.
    fn call(&mut self, instruction: u8) -> Result<(), Fault> {
        match instruction {
            b'c' => {
                let (module, name) = (self.reader.line()?, self.reader.line()?);
                self.global(&module, &name)
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                match (&self.objects[module], &self.objects[name]) {
                    (Object::Text(module), Object::Text(name)) => {
                        let (module, name) = (module.clone(), name.clone());
                        self.global(&module, &name)
                    }
                    _ => Err(Fault::Broken("it names a function by something else than text".into())),
                }
            }
            b'R' => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                let object = self.objects.called(function, arguments)?;
                self.push(object)
            }
            _ => {
                let (state, target) = (self.pop()?, self.top()?);
                self.objects.set_state(target, state)
            }
        }
    }

    fn global(&mut self, module: &str, name: &str) -> Result<(), Fault> {
        match Global::named(module, name) {
            Some(global) => self.push(Object::Global(global)),
            None => Err(names(module, name)),
        }
    }

    fn push(&mut self, object: Object) -> Result<(), Fault> {
        let id = self.objects.add(object)?;
        self.stack.push(id);
        Ok(())
    }

    /// The height of the stack that instructions may take from: what lies below the last mark is not theirs.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Id, Fault> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn top(&self) -> Result<Id, Fault> {
        match self.stack.last() {
            Some(top) if self.stack.len() > self.floor() => Ok(*top),
            _ => Err(empty()),
        }
    }

    /// The objects above the last mark, which ends.
    fn since_mark(&mut self) -> Result<Vec<Id>, Fault> {
        let mark = self.marks.pop().ok_or_else(|| "it ends a group that it did not begin".to_owned())?;
        Ok(self.stack.split_off(mark))
    }
}

fn pairs(items: &[Id]) -> Result<Vec<(Id, Id)>, Fault> {
    let (pairs, []) = items.as_chunks::<2>() else {
        return Err(Fault::Broken("it has a dictionary with a key without value".into()));
    };
    Ok(pairs.iter().map(|[key, value]| (*key, *value)).collect())
}

fn names(module: &str, name: &str) -> Fault {
    Fault::Refused(format!(
        "it asks Python for {}.{}",
        shown(module).escape_debug(),
        shown(name).escape_debug()
    ))
}

fn empty() -> Fault {
    Fault::Broken("it takes an object from an empty stack".into())
}
