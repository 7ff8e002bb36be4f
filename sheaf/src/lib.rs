//! The `sheaf` command as a library: the command line, and the engine that joins the rooms.

pub mod cli;
pub mod engine;
mod evaluator;
pub mod expand;
mod messages;
mod progress;
pub mod run;
pub mod test;
mod world;

pub use world::World;
